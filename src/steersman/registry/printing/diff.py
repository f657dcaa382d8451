"""Unified diffs of lines: the shortest diff, unless finding that takes too long."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, Final

LONGEST_DIFF: Final = 4000
"""The most lines for which the shortest diff is computed, which takes quadratic time."""

_MAX_COMPARED: Final = 3_000_000
"""The most equal pairs of lines that the computation of the shortest diff may examine."""

_CONTEXT: Final = 3


def unified_diff(before: list[str], after: list[str]) -> str:
    """Return the hunks of a unified diff, without the file names."""
    if max(len(before), len(after)) > LONGEST_DIFF:
        return _rough_diff(before, after)
    try:
        return "".join(_unified_diff(_BoundedMatcher(before, after)))
    except _TooDifferent:
        return _rough_diff(before, after)


class _TooDifferent(Exception):
    """Raised when finding the shortest diff would take too long."""


class _BoundedMatcher(difflib.SequenceMatcher[str]):
    """A matcher that examines a limited number of pairs, beyond which comparing methods raise _TooDifferent."""

    def __init__(self, before: list[str], after: list[str]) -> None:
        super().__init__(None, before, after)
        self.before, self.after = before, after
        positions: dict[str, list[int]] = vars(self)["b2j"]  # missing in the type stubs
        self._pairs = list(accumulate((1 + len(positions.get(line, ())) for line in before), initial=0))
        self._left = _MAX_COMPARED

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Any:
        self._left -= self._pairs[-1 if ahi is None else ahi] - self._pairs[alo]
        if self._left < 0:
            raise _TooDifferent
        return super().find_longest_match(alo, ahi, blo, bhi)


def _unified_diff(matcher: _BoundedMatcher) -> Iterator[str]:
    """Yield the hunks of a unified diff, without the file names before them."""
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
    """Return the line range of a hunk's header; lines count from 1."""
    length = end - start
    first = start + 1 if length else start
    return str(first) if length == 1 else f"{first},{length}"


def _rough_diff(before: list[str], after: list[str]) -> str:
    """Return one hunk with all lines from the first to the last difference."""
    shorter = min(len(before), len(after))
    start = next((i for i in range(shorter) if before[i] != after[i]), shorter)
    end = next((i for i in range(shorter - start) if before[-1 - i] != after[-1 - i]), shorter - start)
    removed, added = before[start : len(before) - end], after[start : len(after) - end]
    header = f"@@ -{start + 1},{len(removed)} +{start + 1},{len(added)} @@\n"
    return header + "".join([f"-{line}" for line in removed] + [f"+{line}" for line in added])
