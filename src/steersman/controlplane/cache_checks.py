"""Compares the caches of resources in etcd with etcd, again and again, as upstream's DetectCacheInconsistency does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from steersman.controlplane.periodic import periodic
from steersman.machinery.identity.schema import GroupResource
from steersman.storage.cache.consistency import KeysAt, check
from steersman.store.store import Store

INTERVAL: Final = 300.0
"""Seconds between two comparisons of all caches, which are made one after the other."""


class CacheChecks:
    """`keys_of` gives what tells the keys of a resource as they are in etcd."""

    def __init__(self, stores: Iterable[Store[Any]], keys_of: Callable[[GroupResource], KeysAt]) -> None:
        self._stores = stores
        self._keys_of = keys_of
        self.periodic: Final = periodic("the comparison of caches with etcd", self.run, INTERVAL)

    async def run(self) -> None:
        """Compares each cache that somebody has needed."""
        for store in list(self._stores):
            if store.cacher.ready:
                await check(store.cacher, self._keys_of(store.resource.group_resource))
