"""Unified diffs of lines, the shortest there is unless finding that takes long."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, Final

LONGEST_DIFF: Final = 4000
"""Lines of a spec up to which the diff is the shortest there is; finding that takes quadratic time."""

_MAX_COMPARED: Final = 3_000_000
"""Equal pairs of lines that are looked at for the shortest diff."""

_CONTEXT: Final = 3


def unified_diff(before: list[str], after: list[str]) -> str:
    """Return the hunks of a unified diff, without the names of files."""
    if max(len(before), len(after)) > LONGEST_DIFF:
        return _rough_diff(before, after)
    try:
        return "".join(_unified_diff(_BoundedMatcher(before, after)))
    except _TooDifferent:
        return _rough_diff(before, after)


class _TooDifferent(Exception):
    """Finding the shortest diff would take too long."""


class _BoundedMatcher(difflib.SequenceMatcher[str]):
    """Looks at a limited number of pairs. Every method that compares raises _TooDifferent beyond that."""

    def __init__(self, before: list[str], after: list[str]) -> None:
        super().__init__(None, before, after)
        self.before, self.after = before, after
        places: dict[str, list[int]] = vars(self)["b2j"]  # which the stubs leave out
        self._pairs = list(accumulate((1 + len(places.get(line, ())) for line in before), initial=0))
        self._left = _MAX_COMPARED

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Any:
        self._left -= self._pairs[-1 if ahi is None else ahi] - self._pairs[alo]
        if self._left < 0:
            raise _TooDifferent
        return super().find_longest_match(alo, ahi, blo, bhi)


def _unified_diff(matcher: _BoundedMatcher) -> Iterator[str]:
    """The hunks of a unified diff, without the names of files before them."""
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        (_, old_start, _, new_start, _), (_, _, old_end, _, new_end) = group[0], group[-1]
        yield f"@@ -{_range(old_start, old_end)} +{_range(new_start, new_end)} @@\n"
        for tag, first, last, new_first, new_last in group:
            if tag == "equal":
                yield from (f" {line}" for line in matcher.before[first:last])
                continue
            yield from (f"-{line}" for line in matcher.before[first:last])
            yield from (f"+{line}" for line in matcher.after[new_first:new_last])


def _range(start: int, end: int) -> str:
    """Lines in the header of a hunk, the first of which is 1."""
    length = end - start
    first = start + 1 if length else start
    return str(first) if length == 1 else f"{first},{length}"


def _rough_diff(before: list[str], after: list[str]) -> str:
    """All lines from the first to the last that differ, in one hunk."""
    shorter = min(len(before), len(after))
    start = next((i for i in range(shorter) if before[i] != after[i]), shorter)
    end = next((i for i in range(shorter - start) if before[-1 - i] != after[-1 - i]), shorter - start)
    removed, added = before[start : len(before) - end], after[start : len(after) - end]
    header = f"@@ -{start + 1},{len(removed)} +{start + 1},{len(added)} @@\n"
    return header + "".join([f"-{line}" for line in removed] + [f"+{line}" for line in added])
