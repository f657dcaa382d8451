"""Work that must be completed even if its request is cancelled."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from steersman.machinery.errors.status import StatusError
from steersman.storage.interface import StorageUnavailable

logger = logging.getLogger(__name__)

R = TypeVar("R")


async def uninterrupted(work: Coroutine[Any, Any, R]) -> R:
    """Complete `work` even if the caller is cancelled; a cancelled caller does not learn the result.

    Used for a write and the reservations that belong to it: storage commits a started write whether cancelled or not,
    so it is only known at the end of the write whether the reservations are needed.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(_tell)
        raise


def _tell(task: asyncio.Task[Any]) -> None:
    """Log the failure of work whose caller was cancelled."""
    error = None if task.cancelled() else task.exception()
    if isinstance(error, StatusError | StorageUnavailable):
        logger.info("a write was refused after its request had been cancelled: %s", error)
    elif error is not None:
        logger.error("a write failed after its request had been cancelled", exc_info=error)
