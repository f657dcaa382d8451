"""Waits for a task that must go on when its waiter is cancelled, such as a task shared by several requests.

`asyncio.shield` alone is not enough: once the waiter is cancelled nothing retrieves an error of the task, and asyncio
logs a traceback when the task is garbage collected.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, TypeVar

T = TypeVar("T")

logger = logging.getLogger(__name__)


def shielded(task: asyncio.Future[T]) -> asyncio.Future[T]:
    """Return a future of the task's outcome. Cancelling the future does not cancel the task.

    An error of the task after the future was cancelled is logged at -v=2 only, as others may wait for the task as well.
    """
    waiter = asyncio.shield(task)

    def retrieve_error(done: asyncio.Future[Any]) -> None:
        if not done.cancelled() and (error := done.exception()) is not None and waiter.cancelled():
            logger.info("a shared task failed after its waiter was cancelled", exc_info=error)

    if not task.done():
        task.add_done_callback(retrieve_error)
    return waiter
