"""Errors of storage and its caches, as those are told of them who asked: in Statuses."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable
from typing import Final, TypeVar

from steersman.machinery.errors import status as errors
from steersman.machinery.errors.status import StatusError
from steersman.storage.cache.watcher import WatchTooSlow
from steersman.storage.interface import (
    Compacted,
    Conflict,
    FutureRevision,
    KeyExists,
    OutcomeUnknown,
    StorageUnavailable,
    Undecodable,
    Unreadable,
    Unwritable,
)

logger = logging.getLogger(__name__)

R = TypeVar("R")


class StorageNotReady(StatusError):
    """429: what is stored cannot be read now, and perhaps in a moment."""


def not_ready(why: object) -> StorageNotReady:
    """The client learns no more than that; the log says why."""
    logger.info("%s", why)
    return StorageNotReady(429, "TooManyRequests", "storage is (re)initializing", retry_after=1)


_LONGEST_RETRY: Final = 30
"""Seconds."""
_RETRY_GROWTH: Final = 0.06


def not_decrypted(go_type: str, error: Unreadable, seconds: float) -> StorageNotReady:
    """What lists and watches answer while an object cannot be decrypted, which has been so for these seconds: the
    longer, the later they are to come again."""
    message = f"storage is (re)initializing: failed to list *{go_type}: {error}"
    return StorageNotReady(429, "TooManyRequests", message, retry_after=_retry_after(seconds))


def not_converted(group_version_kind: str, error: StatusError, seconds: float) -> StorageNotReady:
    """Return the answer to lists and watches while what converts the objects has failed for these seconds.

    Upstream answers them from a cache of converted objects, which cannot be filled then.
    """
    message = f"storage is (re)initializing: failed to list {group_version_kind}: {error.message}"
    return StorageNotReady(429, "TooManyRequests", message, retry_after=_retry_after(seconds))


def _retry_after(seconds: float) -> int:
    return int(min(_LONGEST_RETRY, math.exp(min(_RETRY_GROWTH * seconds, _LONGEST_RETRY))))


def not_decoded(error: Undecodable) -> StatusError:
    """500. The client learns which object it is; the log says why it is none."""
    logger.error("%s", error)
    return errors.internal(ValueError(f"{error.key} cannot be read"))


async def available(read: Awaitable[R]) -> R:
    """What is read. Raises StorageNotReady, StatusError 504 for a revision that has not happened yet, 500 for a value
    that cannot be decrypted or decoded."""
    try:
        return await read
    except Unreadable as error:
        raise errors.internal(error) from error
    except Undecodable as error:
        raise not_decoded(error) from error
    except StorageUnavailable as error:
        raise not_ready(error) from error
    except FutureRevision as error:
        raise errors.too_large_resource_version(error.requested, error.current) from None


async def committed(write: Awaitable[R]) -> R | None:
    """What is written, None if another write came first. Raises StatusError 500 if storage takes none, or cannot
    encrypt it."""
    try:
        return await write
    except (KeyExists, Conflict):
        return None
    except (StorageUnavailable, Unwritable, Unreadable) as error:
        raise errors.internal(error) from error
    except Undecodable as error:
        raise not_decoded(error) from error


def may_be_stored(error: StatusError) -> bool:
    """Whether a write that failed with this may have been committed all the same."""
    return isinstance(error.__cause__, OutcomeUnknown)


def too_old(asked: int, oldest: int) -> StatusError:
    """Return 410 for a watch from `asked`, where `oldest` is the first version to begin at. Clients parse the text."""
    return errors.expired(f"too old resource version: {asked} ({oldest})")


def end_of_watch(error: Exception, asked: int, newest: int) -> StatusError | None:
    """Return the error for the client of a watch from the version `asked` that has ended by itself.

    None if the client can go on from where it is. `newest` is the version of the cache.
    """
    if isinstance(error, Compacted):
        return too_old(asked, error.revision)
    if isinstance(error, WatchTooSlow):
        logger.info("a watch from version %d is ended: %s", asked, error)
        return too_old(asked, newest)
    return None
