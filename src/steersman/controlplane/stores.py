"""The stores of a control plane, by resource: made, filled, found, ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from steersman.controlplane.computed import ComputedStorage
from steersman.controlplane.objects import StoreObjects
from steersman.registry.services import Services
from steersman.rest.resource import Resource
from steersman.storage.interface import Storage
from steersman.store.store import Store


class Stores:
    """What implements each resource, by the group of its stored version and its plural."""

    def __init__(self) -> None:
        self._stores: dict[tuple[str, str], Store[Any]] = {}
        self._objects: dict[tuple[str, str], StoreObjects] = {}
        self._computed: dict[tuple[str, str], ComputedStorage] = {}

    def add(self, resource: Resource[Any], storage: Storage, services: Services) -> Store[Any] | ComputedStorage:
        """Makes what implements a resource; a store fills its cache when it is first used, if nobody starts it."""
        key = (resource.group, resource.plural)
        if resource.creater is not None or resource.reader is not None:
            self._computed[key] = computed = ComputedStorage(resource, services)
            return computed
        self._stores[key] = store = Store(resource, storage, services)
        self._objects[key] = StoreObjects(store)
        return store

    async def start(self) -> None:
        """Fills the caches of all stores, side by side."""
        await asyncio.gather(*(store.start() for store in self._stores.values()))

    async def remove(self, group: str, plural: str) -> None:
        """Ends a store, its watches and its cache. Raises KeyError if there is none."""
        del self._objects[group, plural]
        await self._stores.pop((group, plural)).stop()

    async def stop(self) -> None:
        """Ends all of them."""
        for store in self._stores.values():
            await store.stop()

    def store(self, group: str, plural: str) -> Store[Any]:
        """The store of a resource. Raises KeyError for one that is not there, or not stored."""
        return self._stores[group, plural]

    def objects(self, group: str, plural: str) -> StoreObjects:
        """Typed access to a resource's objects. Raises KeyError."""
        return self._objects[group, plural]

    def of(self, resource: Resource[Any]) -> Any:
        """What implements a resource. Raises KeyError."""
        key = (resource.group, resource.plural)
        return self._stores.get(key) or self._computed[key]

    def __iter__(self) -> Iterator[Store[Any]]:
        return iter(self._stores.values())
