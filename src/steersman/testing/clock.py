"""A clock that a test moves, so that waits of minutes end at once."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, NamedTuple

from steersman.machinery.values import times
from steersman.work.threads import awaited_steps
from steersman.work.upkeep import is_upkeep

_QUIET: Final = 3
"""Iterations of the event loop in a row in which nothing new was scheduled, after which nothing is in progress."""
_MOST_TURNS: Final = 1_000_000
"""Iterations of the event loop to wait for that."""
_SLACK: Final = 0.1
"""Seconds by which a timer may be due after the target and still run; periodic work loses a little in each round."""
_CALM: Final = 75.0
"""Seconds with nothing but upkeep after which all effects of earlier changes have happened: more than the time without
a heartbeat after which a node counts as lost."""
_ROUND: Final = 25.0
"""Seconds before another timer is due in which every kind of upkeep has one round, in order."""
_WORTH: Final = 10.0
"""Seconds that a skip must save at least."""


class _Due(NamedTuple):
    """Timer. `number` orders timers of the same moment."""

    when: float
    number: int
    handle: Any
    """The asyncio.TimerHandle."""
    is_upkeep: bool


class Clock:
    """Moves the time of an event loop, and the time of this process by which objects are stamped.

    Create it before anything waits for long on the event loop. `advance` runs everything that becomes due, each timer
    at its own time: waits of asyncio (`sleep`, `timeout`, `call_later`), and so heartbeats, back-offs and controllers.
    Rounds of upkeep (`work.upkeep`) are skipped while nothing else happens, so that an hour costs only what happens in
    it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Take over the time of an event loop.

        Raises TypeError for a loop whose time cannot be moved, such as uvloop's.
        """
        self._loop: Any = loop or asyncio.get_running_loop()
        self._advanced = 0.0
        self._due: list[_Due] = []
        """Heap of all timers."""
        self._other: list[_Due] = []
        """Heap of timers that are not upkeep."""
        self._calm_since = self._loop.time()
        self._begun_at_rest = -1
        self._begun = 0
        self._elsewhere = 0
        self._closed = False
        if not isinstance(self._loop, asyncio.BaseEventLoop):
            raise TypeError(f"the time of a {type(self._loop).__module__} loop cannot be moved")
        self._take_over()

    def _take_over(self) -> None:
        loop = self._loop
        real_time, call_at, call_soon = loop.time, loop.call_at, loop.call_soon
        run_in_executor = loop.run_in_executor

        def moved() -> float:
            return float(real_time()) + self._advanced

        def counted_at(when: float, callback: Callable[..., object], *args: Any, **more: Any) -> asyncio.TimerHandle:
            handle: asyncio.TimerHandle = call_at(when, callback, *args, **more)
            due = _Due(when, self._begun, handle, is_upkeep())
            heapq.heappush(self._due, due)
            if not due.is_upkeep:
                heapq.heappush(self._other, due)
            self._begun += 1
            return handle

        def counted_soon(callback: Callable[..., object], *args: Any, **more: Any) -> asyncio.Handle:
            self._begun += 1
            handle: asyncio.Handle = call_soon(callback, *args, **more)
            return handle

        def counted_elsewhere(*args: Any) -> asyncio.Future[Any]:
            self._elsewhere += 1
            future: asyncio.Future[Any] = run_in_executor(*args)
            future.add_done_callback(self._came_back)
            return future

        loop.time, loop.call_at, loop.call_soon = moved, counted_at, counted_soon
        loop.run_in_executor = counted_elsewhere

    @property
    def moved(self) -> float:
        """Seconds by which time has been moved."""
        return self._advanced

    def close(self) -> None:
        """Restore the time of this process; the time of the event loop stays as it is, and cannot be moved any more."""
        if not self._closed:
            self._closed = True
            times.advance(-self._advanced)

    def _came_back(self, _: asyncio.Future[Any]) -> None:
        self._elsewhere -= 1

    async def advance(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        """Move time, and return once all timers that became due have run, with their immediate consequences.

        Raises RuntimeError if the consequences never end, and after `close`.
        """
        if self._closed:
            raise RuntimeError("the clock is closed")
        span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        target = self._loop.time() + span.total_seconds()
        if self._begun != self._begun_at_rest:
            self._calm_since = self._loop.time()
        await self.settle()
        while (due := _first(self._due)) is not None and due.when <= target + _SLACK:
            if self._skip_repeats(target):
                await self.settle()
                continue
            self._move(due.when - self._loop.time())
            await self.settle()
            if not due.is_upkeep:
                self._calm_since = self._loop.time()
        self._move(target - self._loop.time())
        await self.settle()
        self._begun_at_rest = self._begun

    def _skip_repeats(self, target: float) -> bool:
        """Skip rounds of upkeep, up to shortly before another timer is due.

        Return False if too little would be skipped.

        Skipped timers run once after the skip, in the same order.
        """
        now, other = self._loop.time(), _first(self._other)
        until = (target if other is None else min(target, other.when)) - _ROUND
        if now - self._calm_since < _CALM or until - now < _WORTH:
            return False
        moved = []
        for due in self._due:
            if due.handle.cancelled():
                continue
            if due.when <= until:
                when = until + min(max(due.when - now, 0.0), _ROUND)
                due.handle._when = when
                moved.append(due._replace(when=when))
            else:
                moved.append(due)
        self._due = moved
        heapq.heapify(self._due)
        heapq.heapify(self._loop._scheduled)
        self._move(until - now)
        return True

    async def settle(self) -> None:
        """Wait until nothing is in progress: every task waits for time to pass, or for another.

        Raises RuntimeError if that does not happen.
        """
        quiet = 0
        for _ in range(_MOST_TURNS):
            before = self._begun
            await asyncio.sleep(0)
            if self._elsewhere or awaited_steps(self._loop):
                await asyncio.sleep(0.0005)
            elif self._begun - before <= 1:  # only this sleep's own callback
                quiet += 1
                if quiet == _QUIET:
                    return
                continue
            quiet = 0
        raise RuntimeError("there is no end of what happens")

    def _move(self, seconds: float) -> None:
        if seconds > 0:
            self._advanced += seconds
            times.advance(seconds)
        now = self._loop.time()
        for heap in (self._due, self._other):
            while heap and heap[0].when <= now:
                heapq.heappop(heap)


def _first(heap: list[_Due]) -> _Due | None:
    """Return the next timer, or None."""
    while heap and heap[0].handle.cancelled():
        heapq.heappop(heap)
    return heap[0] if heap else None
