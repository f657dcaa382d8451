"""Deferred freeing of large objects in a worker thread: freeing 100,000 parts takes as long as creating them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any


def free_in_thread(*owned: Any) -> None:
    """Free the objects `owned` in a worker thread; for `__del__` of an owner that ends on the event loop.

    Does nothing outside of a thread with an event loop.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return  # this thread has no event loop to hold
    if loop.is_closed():
        return
    loop.call_soon(_clear, loop, list(owned))  # later, when the owner itself holds no reference any more


def _clear(loop: asyncio.AbstractEventLoop, parts: list[Any]) -> None:
    with suppress(RuntimeError):  # the loop's executor was shut down with the server
        loop.run_in_executor(None, parts.clear)
