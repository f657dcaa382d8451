"""Conversion of errors of storage and the watch cache into Statuses."""

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
    """The status 429: storage cannot be read now, but perhaps soon."""


def not_ready(why: object) -> StorageNotReady:
    """Return 429; the log has the reason, which is not sent to the client."""
    logger.info("%s", why)
    return StorageNotReady(429, "TooManyRequests", "storage is (re)initializing", retry_after=1)


_LONGEST_RETRY: Final = 30
"""The longest Retry-After, in seconds."""
_RETRY_GROWTH: Final = 0.06


def not_decrypted(go_type: str, error: Unreadable, seconds: float) -> StorageNotReady:
    """Return the answer to lists and watches while an object cannot be decrypted.

    The longer that has lasted (`seconds`), the later the client is asked to retry.
    """
    message = f"storage is (re)initializing: failed to list *{go_type}: {error}"
    return StorageNotReady(429, "TooManyRequests", message, retry_after=_retry_after(seconds))


def not_converted(group_version_kind: str, error: StatusError, seconds: float) -> StorageNotReady:
    """Return the answer to lists and watches while objects cannot be converted, which has lasted for `seconds`.

    Upstream answers them from a cache of converted objects, which cannot be filled then.
    """
    message = f"storage is (re)initializing: failed to list {group_version_kind}: {error.message}"
    return StorageNotReady(429, "TooManyRequests", message, retry_after=_retry_after(seconds))


def _retry_after(seconds: float) -> int:
    return int(min(_LONGEST_RETRY, math.exp(min(_RETRY_GROWTH * seconds, _LONGEST_RETRY))))


def not_decoded(error: Undecodable) -> StatusError:
    """Return 500 with the key of the object; the log has the reason."""
    logger.error("%s", error)
    return errors.internal(ValueError(f"{error.key} cannot be read"))


async def available(read: Awaitable[R]) -> R:
    """Return the result of a read.

    Raises StorageNotReady, StatusError 504 for a revision that is not reached yet, and 500 for a value that cannot be
    decrypted or decoded.
    """
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
    """Return the result of a write, None if another write came first.

    Raises StatusError 500 if storage accepts no write, or cannot encrypt the value.
    """
    try:
        return await write
    except (KeyExists, Conflict):
        return None
    except (StorageUnavailable, Unwritable, Unreadable) as error:
        raise errors.internal(error) from error
    except Undecodable as error:
        raise not_decoded(error) from error


def may_be_stored(error: StatusError) -> bool:
    """Return True if a write that failed with this error may have been committed nevertheless."""
    return isinstance(error.__cause__, OutcomeUnknown)


def too_old(requested: int, oldest: int) -> StatusError:
    """Return 410 for a watch from `asked`, where `oldest` is the first possible version. Clients parse the message."""
    return errors.expired(f"too old resource version: {requested} ({oldest})")


def end_of_watch(error: Exception, requested: int, newest: int) -> StatusError | None:
    """Return the error for the client of a watch that started at version `asked` and has ended with `error`.

    Returns None if the client can resume from its last version. `newest` is the version of the cache.
    """
    if isinstance(error, Compacted):
        return too_old(requested, error.revision)
    if isinstance(error, WatchTooSlow):
        logger.info("a watch from version %d is ended: %s", requested, error)
        return too_old(requested, newest)
    return None
