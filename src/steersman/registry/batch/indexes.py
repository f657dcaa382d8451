"""Sets of pod indexes of a job as text: `1,3-5,7` (batch/v1 Job, Indexed)."""

from __future__ import annotations

from typing import Final

from steersman.machinery.errors.field import quote
from steersman.work.patterns import late_pattern

_NUMBER: Final = late_pattern(r"[+-]?[0-9]{1,19}")


class IndexesError(ValueError):
    """A text that is no set of indexes; the message is for the client."""


def count_indexes(text: str, completions: int) -> int:
    """Return the number of indexes in `text`; all must be below `completions` and in order. Raises IndexesError."""
    last: int | None = None
    total = 0
    for part in text.split(",") if text else ():
        first, end = _interval(part, completions)
        if last is not None and last >= first:
            raise IndexesError(f"non-increasing order, previous: {last}, current: {first}")
        total += end - first + 1
        last = end
    return total


def overlap(completed: str, failed: str, completions: int) -> int | None:
    """Return the first index that is in both sets, None if there is none; invalid parts count as empty."""
    left, right = _readable(completed, completions), _readable(failed, completions)
    i = j = 0
    while i < len(left) and j < len(right):
        (a, b), (c, d) = left[i], right[j]
        if a <= d and c <= b:
            return max(a, c)
        if a <= c:
            i += 1
        else:
            j += 1
    return None


def _readable(text: str, completions: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for part in text.split(",") if text else ():
        try:
            found.append(_interval(part, completions))
        except IndexesError:
            continue
    return found


def _interval(text: str, completions: int) -> tuple[int, int]:
    limits = text.split("-")
    if len(limits) > 2:
        raise IndexesError(
            f"the fragment {quote(text)} violates the requirement that an index interval "
            "can have at most two parts separated by '-'"
        )
    first = _index(limits[0], completions)
    if len(limits) == 1:
        return first, first
    last = _index(limits[1], completions)
    if first >= last:
        raise IndexesError(f"non-increasing order, previous: {first}, current: {last}")
    return first, last


def _index(text: str, completions: int) -> int:
    if not _NUMBER.fullmatch(text):
        raise IndexesError(f"cannot convert string to integer for index: {quote(text)}")
    if int(text) >= completions:
        raise IndexesError(f"too large index: {quote(text)}")
    return int(text)
