"""A clock that a test moves, so that waits of minutes end at once."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from steersman.machinery.values import times
from steersman.work.stepped_time import SteppedTime
from steersman.work.threads import awaited_steps

_QUIET: Final = 3
"""Iterations of the event loop in a row in which nothing new was scheduled, after which nothing is in progress."""
_MOST_TURNS: Final = 1_000_000
"""Iterations of the event loop to wait for that."""


class Clock(SteppedTime[asyncio.TimerHandle]):
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
        super().__init__()
        self._loop: Any = loop or asyncio.get_running_loop()
        self._advanced = 0.0
        self._calm_since = self._loop.time()
        self._begun_at_rest = -1
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
            self._push(when, handle)
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
        await self.step_to(target)
        self._begun_at_rest = self._begun

    def time(self) -> float:
        """Return the event loop's time."""
        return float(self._loop.time())

    def _shift(self, seconds: float) -> None:
        self._advanced += seconds
        times.advance(seconds)

    def _reschedule(self, timers: list[tuple[asyncio.TimerHandle, float]]) -> None:
        for timer, when in timers:
            timer._when = when  # type: ignore[attr-defined]
        heapq.heapify(self._loop._scheduled)

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
