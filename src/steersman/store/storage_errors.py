"""Errors of storage and its caches, as those are told of them who asked: in Statuses."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import TypeVar

from steersman.machinery.errors import status as errors
from steersman.machinery.errors.status import StatusError
from steersman.storage.cache.watcher import WatchTooSlow
from steersman.storage.interface import Compacted, Conflict, FutureRevision, KeyExists, StorageUnavailable

logger = logging.getLogger(__name__)

R = TypeVar("R")


class StorageNotReady(StatusError):
    """429: what is stored cannot be read now, and perhaps in a moment."""


def not_ready(why: object) -> StorageNotReady:
    """The client learns no more than that; the log says why."""
    logger.info("%s", why)
    return StorageNotReady(429, "TooManyRequests", "storage is (re)initializing", retry_after=1)


async def available(read: Awaitable[R]) -> R:
    """What is read. Raises StorageNotReady, and StatusError 504 for a revision that has not happened yet."""
    try:
        return await read
    except StorageUnavailable as error:
        raise not_ready(error) from error
    except FutureRevision as error:
        raise errors.too_large_resource_version(error.requested, error.current) from None


async def committed(write: Awaitable[R]) -> R | None:
    """What is written, None if another write came first. Raises StatusError 500 if storage takes none."""
    try:
        return await write
    except (KeyExists, Conflict):
        return None
    except StorageUnavailable as error:
        raise errors.internal(error) from error


def end_of_watch(error: Exception) -> StatusError | None:
    """What the client of a watch that has ended by itself is told: why it cannot go on from where it is, else None."""
    if isinstance(error, Compacted):
        return errors.expired(f"too old resource version: {error.revision}")
    if isinstance(error, WatchTooSlow):
        return errors.expired(f"too old resource version: {error}")
    return None
