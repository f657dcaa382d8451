"""The policy of history: replaced values are kept up to a size and an age."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from steersman.machinery.values.durations import DurationError, format_duration, parse_duration
from steersman.work.patterns import late_pattern

ROW_OVERHEAD: Final = 200
"""Bytes that a row takes in the file beside its value: its key, twice, numbers, and the record of its origin."""
_UNITS: Final = {"KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}
_SIZE: Final = late_pattern(r"([0-9]{1,9})(KiB|MiB|GiB|TiB)", re.ASCII)
_LONGEST: Final = 100
_PARTS: Final = 64
"""Spans of the whole history: the part of its bounds by which history may be shorter than allowed."""


class Retention(Struct, frozen=True):
    """The bounds of history: bytes of replaced values, and seconds since they were replaced; 0 is no bound.

    Without any bound no history is kept.
    """

    size: int = 0
    seconds: float = 0.0

    @property
    def keeps(self) -> bool:
        """True if history is kept."""
        return bool(self.size or self.seconds)

    def __str__(self) -> str:
        """Return the bounds as the flag has them."""
        shown = [_shown_size(self.size)] if self.size else []
        if self.seconds:
            shown.append(format_duration(round(self.seconds * 1e9)))
        return ",".join(shown) or "none"

    @classmethod
    def parse(cls, text: str) -> Retention:
        """Parse a size, an age, or both with a comma between: `256MiB,24h`; or `none`. Raises ValueError."""
        if text == "none":
            return cls()
        size, seconds = 0, 0.0
        for each in text.split(",", 2):
            if match := _SIZE.fullmatch(each):
                if size or not (size := int(match[1]) << _UNITS[match[2]]):
                    raise ValueError(f"{text!r} must have one size above 0 at most")
                continue
            try:
                age = parse_duration(each)
            except DurationError:
                raise ValueError(
                    f"{each[:_LONGEST]!r} is neither a size such as 256MiB nor an age such as 24h"
                ) from None
            if seconds or age <= 0:
                raise ValueError(f"{text!r} must have one age above 0 at most")
            seconds = age / 1e9
        return cls(size, seconds)


def _shown_size(size: int) -> str:
    unit = next(unit for unit, shift in reversed(_UNITS.items()) if not size % (1 << shift))
    return f"{size >> _UNITS[unit]}{unit}"


class Span(Struct):
    """Consecutive revisions: the last one, the times of the first and the last, and the bytes of what they replaced."""

    revision: int
    since: float
    until: float
    size: int


class History:
    """The account of the history in a store, in spans of revisions. It holds at most some hundred spans."""

    def __init__(self, retention: Retention) -> None:
        self._retention = retention
        self._spans: deque[Span] = deque()
        self._cut = 0
        self.size = 0
        """The bytes of replaced values in the account."""

    def add(self, revision: int, now: float, size: int) -> None:
        """Add the next committed revisions, up to `revision`, which replaced `size` bytes at the Unix time `now`."""
        self.size += size
        _extend(self._spans, Span(revision, now, now, size), self._retention)

    def prepend(self, older: Iterable[Span]) -> None:
        """Add the spans before all others, in order: what a file had when it was opened."""
        joined: deque[Span] = deque()
        for each in older:
            self.size += each.size
            _extend(joined, each, self._retention)
        self._spans = joined + self._spans

    def cut(self, now: float) -> int:
        """Return the newest revision whose replaced values are beyond the bounds, 0 if there is none yet.

        They are removed from the account.
        """
        size, seconds = self._retention.size, self._retention.seconds
        spans = self._spans
        while spans and ((size and self.size > size) or (seconds and spans[0].until < now - seconds)):
            oldest = spans.popleft()
            self.size -= oldest.size
            self._cut = oldest.revision
        return self._cut


def _extend(spans: deque[Span], added: Span, retention: Retention) -> None:
    """Append a span, joined with the last one as long as that is a small part of the whole history."""
    if spans:
        last = spans[-1]
        fits = not retention.size or last.size + added.size <= retention.size // _PARTS
        if fits and (not retention.seconds or added.until - last.since <= retention.seconds / _PARTS):
            last.revision, last.until = added.revision, max(last.until, added.until)
            last.size += added.size
            return
    spans.append(added)
