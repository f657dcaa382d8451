"""Whether a storage does as it should."""

from __future__ import annotations

import asyncio

from steersman.storage.interface import Storage, StorageUnavailable


async def not_ready(storage: Storage | None, seconds: float) -> str | None:
    """What keeps a storage, which has so long to answer, from doing what is asked: a restart may not mend that."""
    wrong = await wrong_with(storage, seconds)
    return wrong if wrong is not None or storage is None else storage.refusals.wrong()


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
