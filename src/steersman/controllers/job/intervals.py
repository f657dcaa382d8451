"""Sets of completion indexes in the notation of a Job's status: `1,3-5,7`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Final

from steersman.net.ascii import is_digits


class Indexes:
    """A set of integers as ascending intervals of (first, last)."""

    __slots__ = ("intervals",)

    def __init__(self, intervals: Iterable[tuple[int, int]] = ()) -> None:
        """Create a set from intervals in ascending order of their first numbers; adjacent intervals are joined."""
        joined: list[tuple[int, int]] = []
        for first, last in intervals:
            if joined and first <= joined[-1][1] + 1:
                joined[-1] = joined[-1][0], max(joined[-1][1], last)
            else:
                joined.append((first, last))
        self.intervals: Final = joined

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.intervals)

    def __contains__(self, index: object) -> bool:
        if not isinstance(index, int):
            return False
        at = bisect_left(self.intervals, index, key=lambda each: each[1])
        return at < len(self.intervals) and self.intervals[at][0] <= index

    def __or__(self, other: Indexes) -> Indexes:
        return Indexes(sorted([*self.intervals, *other.intervals]))

    def __str__(self) -> str:
        return ",".join(
            str(first) if first == last else f"{first},{last}" if last == first + 1 else f"{first}-{last}"
            for first, last in self.intervals
        )

    def missing(self, below: int) -> Iterator[int]:
        """Yield the numbers from 0 up to `below` (exclusive) that are not in the set."""
        candidate = 0
        for first, last in self.intervals:
            yield from range(candidate, min(first, below))
            candidate = max(candidate, last + 1)
        yield from range(candidate, below)

    def overlap(self, other: Indexes) -> int:
        """Return the number of common elements."""
        count = mine = theirs = 0
        while mine < len(self.intervals) and theirs < len(other.intervals):
            (first, last), (other_first, other_last) = self.intervals[mine], other.intervals[theirs]
            count += max(min(last, other_last) - max(first, other_first) + 1, 0)
            if last <= other_last:
                mine += 1
            if other_last <= last:
                theirs += 1
        return count


def from_indexes(indexes: Iterable[int]) -> Indexes:
    """Return the set of these numbers."""
    return Indexes((each, each) for each in sorted(set(indexes)))


def parse(text: str, completions: int) -> Indexes:
    """Parse a text into a set of numbers below `completions`. Parts that cannot be parsed are skipped."""
    intervals: list[tuple[int, int]] = []
    digits, most = len(str(completions)), completions - 1
    for part in text.split(","):
        first, has_last, last = part.partition("-")
        if not is_digits(first) or (has_last and not is_digits(last)):
            continue
        if len(first) > digits or (begin := int(first)) > most:
            break
        intervals.append((begin, begin if not has_last else most if len(last) > digits else min(int(last), most)))
    return Indexes(intervals)
