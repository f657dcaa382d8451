"""Waits of work that a process does again and again for itself, of which once in a long time is as good as often.

A clock that is moved (`steersman.testing.clock`) leaves rounds of such work out where nothing else happens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Final

_marked: Final[ContextVar[bool]] = ContextVar("upkeep", default=False)


@contextmanager
def upkeep() -> Iterator[None]:
    """Mark the timers that are made inside as those of upkeep."""
    token = _marked.set(True)
    try:
        yield
    finally:
        _marked.reset(token)


def is_upkeep() -> bool:
    """Return True if a timer that is made now is one of upkeep."""
    return _marked.get()


async def sleep(seconds: float) -> None:
    """Wait until the next round of upkeep."""
    with upkeep():
        await asyncio.sleep(seconds)


def call_later(
    loop: asyncio.AbstractEventLoop, seconds: float, callback: Callable[..., object], *args: object
) -> asyncio.TimerHandle:
    """Call `callback` for a round of upkeep; timers that it makes itself are not marked."""
    context = copy_context()
    with upkeep():
        return loop.call_later(seconds, callback, *args, context=context)
