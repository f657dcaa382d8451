"""Time that is moved from timer to timer, so that each runs at its own time."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from typing import Final, Generic, NamedTuple, TypeVar

from steersman.work.simulated_time import Timer
from steersman.work.upkeep import is_upkeep

T = TypeVar("T", bound=Timer)

SLACK: Final = 0.1
"""Seconds by which a timer may be due after the target and still run; periodic work loses a little in each round."""
_CALM: Final = 75.0
"""Seconds with nothing but upkeep after which all effects of earlier changes have happened: more than the time without
a heartbeat after which a node counts as lost."""
_ROUND: Final = 25.0
"""Seconds before another timer is due in which every kind of upkeep has one round, in order."""
_WORTH: Final = 10.0
"""Seconds that a skip must save at least."""


class Due(NamedTuple, Generic[T]):
    """Timer in the heap. `number` orders timers of the same moment."""

    when: float
    number: int
    timer: T
    is_upkeep: bool


class SteppedTime(ABC, Generic[T]):
    """Heap of timers whose time is moved by `step_to`.

    Rounds of upkeep (`work.upkeep`) are skipped while nothing else happens, so that an hour costs only what happens in
    it.
    """

    def __init__(self) -> None:
        self._due: list[Due[T]] = []
        """Heap of all timers."""
        self._other: list[Due[T]] = []
        """Heap of timers that are not upkeep."""
        self._calm_since = 0.0
        self._begun = 0

    @abstractmethod
    def time(self) -> float:
        """Return the present in seconds."""

    @abstractmethod
    def _shift(self, seconds: float) -> None:
        """Move time. Timers that are due by then run as soon as the event loop goes on."""

    @abstractmethod
    def _reschedule(self, timers: list[tuple[T, float]]) -> None:
        """Change the times at which timers are due."""

    @abstractmethod
    async def settle(self) -> None:
        """Wait until nothing is in progress."""

    def _came_due(self, timers: list[Due[T]]) -> None:
        """Run timers that are due, unless the event loop does."""

    def _goes_on(self) -> bool:
        """Return False to end `step_to` early."""
        return True

    def _push(self, when: float, timer: T) -> Due[T]:
        due = Due(when, self._begun, timer, is_upkeep())
        heapq.heappush(self._due, due)
        if not due.is_upkeep:
            heapq.heappush(self._other, due)
        self._begun += 1
        return due

    async def step_to(self, target: float) -> None:
        """Move time to `target`, and return once all timers that became due have run, with their consequences."""
        while (due := self._first(self._due)) is not None and due.when <= target + SLACK and self._goes_on():
            if self._skip_repeats(target):
                await self.settle()
                continue
            self._move(due.when - self.time())
            await self.settle()
            if not due.is_upkeep:
                self._calm_since = self.time()
        if self._goes_on():
            self._move(target - self.time())
            await self.settle()

    def _skip_repeats(self, target: float) -> bool:
        """Skip rounds of upkeep, up to shortly before another timer is due.

        Return False if too little would be skipped.

        Skipped timers run once after the skip, in the same order.
        """
        now, other = self.time(), self._first(self._other)
        until = (target if other is None else min(target, other.when)) - _ROUND
        if now - self._calm_since < _CALM or until - now < _WORTH:
            return False
        kept, moved = [], []
        for due in self._due:
            if due.timer.cancelled():
                continue
            if due.when <= until:
                due = due._replace(when=until + min(max(due.when - now, 0.0), _ROUND))
                moved.append((due.timer, due.when))
            kept.append(due)
        self._due = kept
        heapq.heapify(self._due)
        self._reschedule(moved)
        self._move(until - now)
        return True

    def _move(self, seconds: float) -> None:
        if seconds > 0:
            self._shift(seconds)
        self._came_due(self._pop_due())

    def _pop_due(self) -> list[Due[T]]:
        """Remove the timers that are due, and return them in order."""
        now, found = self.time(), []
        while self._due and self._due[0].when <= now:
            found.append(heapq.heappop(self._due))
        while self._other and self._other[0].when <= now:
            heapq.heappop(self._other)
        return found

    def _drop_cancelled(self) -> None:
        """Remove cancelled timers."""
        self._due = [each for each in self._due if not each.timer.cancelled()]
        self._other = [each for each in self._other if not each.timer.cancelled()]
        heapq.heapify(self._due)
        heapq.heapify(self._other)

    def _first(self, heap: list[Due[T]]) -> Due[T] | None:
        """Return the next timer, or None."""
        while heap and heap[0].timer.cancelled():
            heapq.heappop(heap)
        return heap[0] if heap else None
