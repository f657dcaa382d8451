"""Whether a storage does as it should."""

from __future__ import annotations

import asyncio

from steersman.storage.interface import Storage, StorageUnavailable


async def wrong_with(storage: Storage | None, seconds: float) -> str | None:
    """What is wrong with a storage, which has so long to answer."""
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
