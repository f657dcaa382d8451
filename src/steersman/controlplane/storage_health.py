"""Health of a storage."""

from __future__ import annotations

import asyncio

from steersman.storage.interface import Storage, StorageUnavailable


async def not_ready(storage: Storage | None, seconds: float) -> str | None:
    """Return the reason why a storage is not ready, None if it is; the storage has `seconds` to answer.

    Covers faults that a restart may not repair.
    """
    wrong = await storage_fault(storage, seconds)
    return wrong if wrong is not None or storage is None else storage.refusals.wrong()


async def storage_fault(storage: Storage | None, seconds: float) -> str | None:
    """Return the fault of a storage, None if it is healthy; the storage has `seconds` to answer."""
    if storage is None:
        return "storage is closed"
    if storage.knows_newest or storage.refusal:
        return storage.refusal or None
    try:
        async with asyncio.timeout(seconds):
            await storage.current_revision()
    except TimeoutError:
        return "error getting data from etcd: context deadline exceeded"
    except StorageUnavailable as error:
        return f"error getting data from etcd: {error}"
    return None
