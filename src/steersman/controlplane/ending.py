"""What counted before a configuration changed is ended once what is under way with it has had its time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class Ending:
    """Ends things later, and all that are left at its own end."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def later(self, seconds: float, end: Callable[[], Awaitable[None]]) -> None:
        """Has something ended after this many seconds, or when this is stopped."""
        task = asyncio.get_running_loop().create_task(_end(seconds, end))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Returns once everything has ended."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _end(seconds: float, end: Callable[[], Awaitable[None]]) -> None:
    try:
        await asyncio.sleep(seconds)
    finally:
        await end()
