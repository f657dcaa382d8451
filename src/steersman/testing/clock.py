"""A clock that a test moves: what waits for minutes happens at once."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from steersman.machinery.values import times

_QUIET: Final = 3
"""Turns of the loop in a row in which nothing new began, after which nothing is under way."""
_MOST_TURNS: Final = 1_000_000
_SLACK: Final = 0.1
"""Seconds by which something may fall due too late and be done all the same: what comes in turns has lost some each."""


class Clock:
    """Moves the time of an event loop, and that of this process, by which objects are stamped.

    Made for a loop on which nothing waits for long yet. `advance` runs everything that falls due in the meantime, each
    at its own time: waits of asyncio (`sleep`, `timeout`, `call_later`), so heartbeats, back-offs and controllers too.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Raises TypeError for a loop whose time cannot be moved, as uvloop's."""
        self._loop: Any = loop or asyncio.get_running_loop()
        self._advanced = 0.0
        self._due: list[tuple[float, int, asyncio.TimerHandle]] = []
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
            heapq.heappush(self._due, (when, self._begun, handle))
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

    async def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> None:  # fmt: skip
        """Moves time on; returns when all that fell due has been done, and what followed from it at once.

        Raises RuntimeError for what has no end, and after `close`.
        """
        if self._closed:
            raise RuntimeError("the clock is closed")
        wanted = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        target = self._loop.time() + wanted.total_seconds()
        await self.settle()
        while (due := self._next()) is not None and due <= target + _SLACK:
            self._move(due - self._loop.time())
            await self.settle()
        self._move(target - self._loop.time())
        await self.settle()

    async def settle(self) -> None:
        """Returns when nothing is under way any more: everybody waits for time to pass, or for others.

        Raises RuntimeError if that does not happen.
        """
        quiet = 0
        for _ in range(_MOST_TURNS):
            before = self._begun
            await asyncio.sleep(0)
            if self._elsewhere:
                await asyncio.sleep(0.0005)
            elif self._begun - before <= 1:  # what this sleep itself began
                quiet += 1
                if quiet == _QUIET:
                    return
                continue
            quiet = 0
        raise RuntimeError("there is no end of what happens")

    def _next(self) -> float | None:
        """When the next thing falls due."""
        while self._due and self._due[0][2].cancelled():
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def _move(self, seconds: float) -> None:
        if seconds > 0:
            self._advanced += seconds
            times.advance(seconds)
        now = self._loop.time()
        while self._due and self._due[0][0] <= now:
            heapq.heappop(self._due)
