"""A clock that a test moves: what waits for minutes happens at once."""

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
"""Turns of the loop in a row in which nothing new began, after which nothing is under way."""
_MOST_TURNS: Final = 1_000_000
_SLACK: Final = 0.1
"""Seconds by which something may fall due too late and be done all the same: what comes in turns has lost some each."""
_CALM: Final = 75.0
"""Seconds in which nothing but upkeep happens, after which nothing else follows from what happened before: longer than
the silence after which a node counts as lost."""
_ROUND: Final = 25.0
"""Seconds before something else falls due in which every kind of upkeep has a round, in its order."""
_WORTH: Final = 10.0
"""Seconds that are left out at least."""


class _Due(NamedTuple):
    """A timer; `number` orders those of the same moment."""

    when: float
    number: int
    handle: Any
    """An asyncio.TimerHandle."""
    is_upkeep: bool


class Clock:
    """Moves the time of an event loop, and that of this process, by which objects are stamped.

    Made for a loop on which nothing waits for long yet. `advance` runs everything that falls due in the meantime, each
    at its own time: waits of asyncio (`sleep`, `timeout`, `call_later`), so heartbeats, back-offs and controllers too.
    Of upkeep (`work.upkeep`) rounds are left out while nothing else happens: an hour costs what happens in it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Raises TypeError for a loop whose time cannot be moved, as uvloop's."""
        self._loop: Any = loop or asyncio.get_running_loop()
        self._advanced = 0.0
        self._due: list[_Due] = []
        """A heap of all timers, and one of those that are not of upkeep."""
        self._other: list[_Due] = []
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
        """The seconds by which time was moved on so far."""
        return self._advanced

    def close(self) -> None:
        """Gives this process its time back; that of the loop stays as it is, and is moved no more."""
        if not self._closed:
            self._closed = True
            times.advance(-self._advanced)

    def _came_back(self, _: asyncio.Future[Any]) -> None:
        self._elsewhere -= 1

    async def advance(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        """Moves time on; returns when all that fell due has been done, and what followed from it at once.

        Raises RuntimeError for what has no end, and after `close`.
        """
        if self._closed:
            raise RuntimeError("the clock is closed")
        wanted = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        target = self._loop.time() + wanted.total_seconds()
        if self._begun != self._begun_at_rest:
            self._calm_since = self._loop.time()
        await self.settle()
        while (due := _first(self._due)) is not None and due.when <= target + _SLACK:
            if self._leave_out(target):
                await self.settle()
                continue
            self._move(due.when - self._loop.time())
            await self.settle()
            if not due.is_upkeep:
                self._calm_since = self._loop.time()
        self._move(target - self._loop.time())
        await self.settle()
        self._begun_at_rest = self._begun

    def _leave_out(self, target: float) -> bool:
        """Move time over rounds of upkeep, to shortly before something else falls due. False if little is left out.

        What falls due in the time that is left out has its round after it, in the same order.
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
        """Returns when nothing is under way any more: everybody waits for time to pass, or for others.

        Raises RuntimeError if that does not happen.
        """
        quiet = 0
        for _ in range(_MOST_TURNS):
            before = self._begun
            await asyncio.sleep(0)
            if self._elsewhere or awaited_steps(self._loop):
                await asyncio.sleep(0.0005)
            elif self._begun - before <= 1:  # what this sleep itself began
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
    """The timer that falls due next."""
    while heap and heap[0].handle.cancelled():
        heapq.heappop(heap)
    return heap[0] if heap else None
