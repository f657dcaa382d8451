"""What a store does by itself in the background: compaction of old history, expiry of leases."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Final

from steersman.machinery.values.times import monotonic
from steersman.net import upkeep
from steersman.storage.interface import Storage, StorageUnavailable

logger = logging.getLogger(__name__)

COMPACTION_INTERVAL: Final = 300.0
"""Seconds between compactions, as kube-apiserver's `--etcd-compaction-interval`."""
LEASE_INTERVAL: Final = 1.0
"""Seconds between looks for expired leases."""
_SAID_EVERY: Final = 60.0
"""Seconds between lines of the log about the same failure."""


class Compactor:
    """Forgets history older than one interval: each tick compacts to the revision that was newest at the last."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._seen = 0

    async def tick(self) -> None:
        """One round, to be called every interval."""
        target, self._seen = self._seen, self._storage.revision
        if target:
            await self._storage.compact(target)


async def repeat(what: str, interval: float, action: Callable[[], Awaitable[object]]) -> None:
    """Calls `action` every `interval` seconds until cancelled; a failed round is logged, the next is tried anew.

    While the storage refuses it, that is said now and then.
    """
    said_at, said = -_SAID_EVERY, ""
    while True:
        await upkeep.sleep(interval)
        try:
            await action()
        except StorageUnavailable as error:
            if str(error) != said or monotonic() - said_at >= _SAID_EVERY:
                said_at, said = monotonic(), str(error)
                logger.warning("%s: %s", what, error)
        except Exception:
            logger.exception("%s failed", what)


class Background:
    """The tasks a store runs from its opening to its closing."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def start(
        self,
        storage: Storage,
        expire_leases: Callable[[], Awaitable[object]],
        *,
        compaction_interval: float,
        lease_interval: float,
    ) -> None:
        """Starts compaction and expiry; an interval of 0 leaves one out."""
        if compaction_interval > 0:
            self._tasks.append(asyncio.create_task(repeat("compaction", compaction_interval, Compactor(storage).tick)))
        if lease_interval > 0:
            self._tasks.append(asyncio.create_task(repeat("lease expiry", lease_interval, expire_leases)))

    def run(self, work: Coroutine[object, object, None]) -> None:
        """Runs `work` until it returns, or the store closes."""
        self._tasks.append(asyncio.create_task(work))

    async def stop(self) -> None:
        """Cancels all and waits for them to end."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
