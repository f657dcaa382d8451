"""Background work of a store: compaction of old history, expiry of leases."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Final

from steersman.storage.interface import Compacted, Storage, StorageUnavailable
from steersman.work.periodic import Periodic

COMPACTION_INTERVAL: Final = 300.0
"""Seconds between compactions, the default of kube-apiserver's `--etcd-compaction-interval`."""
LEASE_INTERVAL: Final = 1.0
"""Seconds between checks for expired leases."""
_SAID_EVERY: Final = 60.0
"""Seconds between log lines about the same failure."""


class Compactor:
    """Compaction of history older than one interval: each tick compacts to the revision that was newest at the last
    tick.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._seen = 0

    async def tick(self) -> None:
        """Compact once; called every interval. Nothing is left to do if the history is compacted further already."""
        target, self._seen = self._seen, self._storage.revision
        if target:
            with suppress(Compacted):
                await self._storage.compact(target)


def compaction(interval: float, work: Callable[[], Awaitable[object]]) -> Periodic:
    """Return a periodic task that compacts by calling `work`."""
    return _periodic("compaction", work, interval)


def _periodic(
    name: str, work: Callable[[], Awaitable[object]], interval: float, *, is_simulated: bool = False
) -> Periodic:
    expected = (StorageUnavailable,)
    return Periodic(name, work, interval, expected=expected, repeats_line_after=_SAID_EVERY, is_simulated=is_simulated)


class Background:
    """The background tasks of an open store."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []
        self._periodic: list[Periodic] = []

    def start(
        self,
        compact: Callable[[], Awaitable[object]],
        expire_leases: Callable[[], Awaitable[object]],
        *,
        compaction_interval: float,
        lease_interval: float,
    ) -> None:
        """Start compaction and lease expiry; an interval of 0 disables a task."""
        if compaction_interval > 0:
            self._periodic.append(compaction(compaction_interval, compact))
        if lease_interval > 0:
            self._periodic.append(_periodic("lease expiry", expire_leases, lease_interval, is_simulated=True))
        for each in self._periodic:
            each.start()

    def run(self, work: Coroutine[object, object, None]) -> None:
        """Run `work` until it returns or the store is closed."""
        self._tasks.append(asyncio.create_task(work))

    async def stop(self) -> None:
        """Cancel all tasks and wait for their end."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, *(each.stop() for each in self._periodic), return_exceptions=True)
