"""Work that belongs together whatever becomes of the request that began it."""

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
    """Does `work` to its end also if the caller is cancelled meanwhile, who then does not learn how it ended.

    For a write and what was taken or is to be given back along with it: storage commits what it has begun, cancelled
    or not, so that only the end of the write tells which of the two it was.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(_tell)
        raise


def _tell(task: asyncio.Task[Any]) -> None:
    """Logs how work has failed that nobody waits for any more."""
    error = None if task.cancelled() else task.exception()
    if isinstance(error, StatusError | StorageUnavailable):
        logger.info("a write whose request had gone was refused: %s", error)
    elif error is not None:
        logger.error("a write whose request had gone failed", exc_info=error)
