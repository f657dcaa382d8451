"""Pauses of housekeeping that a process repeats for itself, of which one round after a long time is as good as many.

A test clock that is moved (`steersman.testing.clock`) skips rounds of upkeep where nothing else happens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Final

from steersman.work import simulated_time

_marked: Final[ContextVar[bool]] = ContextVar("upkeep", default=False)


@contextmanager
def upkeep() -> Iterator[None]:
    """Mark the timers that are created inside the block as timers of upkeep."""
    token = _marked.set(True)
    try:
        yield
    finally:
        _marked.reset(token)


def is_upkeep() -> bool:
    """Return True if a timer created now is a timer of upkeep."""
    return _marked.get()


async def sleep(seconds: float) -> None:
    """Wait for `seconds`, as a pause of upkeep."""
    with upkeep():
        await simulated_time.sleep(seconds)


def call_later(
    loop: asyncio.AbstractEventLoop, seconds: float, callback: Callable[..., object], *args: object
) -> asyncio.TimerHandle:
    """Call `callback` after `seconds`, as a round of upkeep. Timers that the callback creates are not marked."""
    context = copy_context()
    with upkeep():
        return loop.call_later(seconds, callback, *args, context=context)
