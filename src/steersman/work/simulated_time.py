"""Time of controllers, scheduler and nodes: the event loop's, unless a clock of the process moves it.

A clock installed by `use` stops this time, lets it run faster or moves it forward. Connections, time limits of requests
and storage use the event loop itself, which keeps the real time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol


class Timer(Protocol):
    """A call that is due later."""

    def cancel(self) -> None:
        """Do not make the call."""
        ...

    def cancelled(self) -> bool:
        """Return True if the call was cancelled."""
        ...


class Timers(Protocol):
    """Time and timers, as those of an event loop."""

    def time(self) -> float:
        """Return the present in seconds, on a clock that never goes back."""
        ...

    def call_at(self, when: float, callback: Callable[..., object], *args: Any) -> Timer:
        """Call `callback` at a time."""
        ...


_in_use: tuple[asyncio.AbstractEventLoop, Timers] | None = None


def use(timers: Timers | None) -> None:
    """Use these timers on the running event loop, or its own ones again for None."""
    global _in_use
    _in_use = None if timers is None else (asyncio.get_running_loop(), timers)


def _timers() -> Timers:
    loop = asyncio.get_running_loop()
    return loop if _in_use is None or _in_use[0] is not loop else _in_use[1]


def time() -> float:
    """Return the present in seconds, on a clock that never goes back."""
    return _timers().time()


def call_at(when: float, callback: Callable[..., object], *args: Any) -> Timer:
    """Call `callback` at a time of `time`."""
    return _timers().call_at(when, callback, *args)


def call_later(seconds: float, callback: Callable[..., object], *args: Any) -> Timer:
    """Call `callback` after `seconds`."""
    timers = _timers()
    return timers.call_at(timers.time() + seconds, callback, *args)


async def sleep(seconds: float) -> None:
    """Wait for `seconds`; with 0 or less, for one iteration of the event loop."""
    if _in_use is None or seconds <= 0:
        await asyncio.sleep(seconds)
        return
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    timer = call_later(seconds, _wake, future)
    try:
        await future
    finally:
        timer.cancel()


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def timeout(seconds: float) -> AbstractAsyncContextManager[asyncio.Timeout]:
    """Return an `asyncio.timeout` whose seconds are of this time."""
    return asyncio.timeout(seconds) if _in_use is None else _timeout(seconds)


@asynccontextmanager
async def _timeout(seconds: float) -> AsyncIterator[asyncio.Timeout]:
    async with asyncio.timeout(None) as limit:
        timer = call_later(seconds, _end, limit)
        try:
            yield limit
        finally:
            timer.cancel()


def _end(limit: asyncio.Timeout) -> None:
    if not limit.expired():
        limit.reschedule(asyncio.get_running_loop().time())
