"""Periodic comparison of watch caches with etcd, as upstream's DetectCacheInconsistency does it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from steersman.controlplane.periodic import periodic
from steersman.machinery.identity.schema import GroupResource
from steersman.storage.cache.consistency import KeysAt, check
from steersman.store.store import Store

INTERVAL: Final = 300.0
"""Seconds between two comparisons of all caches, which are compared one after the other."""


class CacheChecks:
    """Comparison of the caches of `stores`; `keys_of` returns a reader of a resource's keys in etcd."""

    def __init__(self, stores: Iterable[Store[Any]], keys_of: Callable[[GroupResource], KeysAt]) -> None:
        self._stores = stores
        self._keys_of = keys_of
        self.periodic: Final = periodic("comparison of caches with etcd", self.run, INTERVAL)

    async def run(self) -> None:
        """Compare each cache that is in use."""
        for store in list(self._stores):
            if store.cacher.ready:
                await check(store.cacher, self._keys_of(store.resource.group_resource))
