"""Delayed closing of replaced configurations: the work in progress with them may finish first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class Ending:
    """Delayed closing; `stop` closes everything that is still open."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def later(self, seconds: float, end: Callable[[], Awaitable[None]]) -> None:
        """Call `end` after this many seconds, or at `stop`."""
        task = asyncio.get_running_loop().create_task(_end(seconds, end))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Close everything now and wait for it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _end(seconds: float, end: Callable[[], Awaitable[None]]) -> None:
    try:
        await asyncio.sleep(seconds)
    finally:
        await end()
