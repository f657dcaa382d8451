"""Allocation of numbers from a range, such as those of addresses."""

from __future__ import annotations

import heapq
from collections.abc import Iterable


class NumberAllocator:
    """A number allocator: numbers from `first` on, of which some are taken."""

    def __init__(self, taken: Iterable[int] = (), *, first: int = 0) -> None:
        self._taken = set(taken)
        self._next = first
        self._released: list[int] = []

    def __contains__(self, number: int) -> bool:
        return number not in self._taken

    def lowest(self) -> int:
        """Return the lowest free number."""
        while self._released and self._released[0] in self._taken:
            heapq.heappop(self._released)
        while self._next in self._taken:
            self._next += 1
        return self._released[0] if self._released else self._next

    def allocate(self, number: int) -> int:
        """Mark a number as taken, and return it."""
        self._taken.add(number)
        return number

    def release(self, number: int) -> None:
        """Make a number free again."""
        self._taken.discard(number)
        if number < self._next:
            heapq.heappush(self._released, number)
