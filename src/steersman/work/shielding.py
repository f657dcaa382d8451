"""Waiting for a task that goes on without its waiter, such as one that several requests share.

`asyncio.shield` forgets the task with the waiter that is cancelled: an error of the task is then nobody's, and asyncio
logs a traceback when the task is collected.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, TypeVar

T = TypeVar("T")

logger = logging.getLogger(__name__)


def shielded(task: asyncio.Future[T]) -> asyncio.Future[T]:
    """Return a future of the task's outcome, whose cancellation leaves the task alone.

    An error that comes when this future was cancelled is logged at -v=2 only, as others may wait for the task as well.
    """
    waiter = asyncio.shield(task)

    def look(done: asyncio.Future[Any]) -> None:
        if not done.cancelled() and (error := done.exception()) is not None and waiter.cancelled():
            logger.info("a shared task failed after a wait for it was given up", exc_info=error)

    if not task.done():
        task.add_done_callback(look)
    return waiter
