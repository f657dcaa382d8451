"""Deletion of namespaces: deletes the objects in a terminating namespace, and then finalizes it.

In a cluster kube-controller-manager's namespace controller does this; a library's server has no controllers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any, Final

from steersman.api.core.v1 import Namespace
from steersman.controlplane.objects import StoreObjects
from steersman.controlplane.stores import Stores
from steersman.machinery.errors.status import StatusError
from steersman.registry.core.namespaces import FINALIZER
from steersman.rest.context import loopback
from steersman.storage.cache.entry import Entry
from steersman.store.follower import Follower
from steersman.store.store import Store
from steersman.work.backoff import Backoff, Retries
from steersman.work.yielding import time_sliced

logger = logging.getLogger(__name__)

_CHECKS: Final = Backoff(0.05, 5.0)
"""Pauses between checks for remaining objects of a namespace."""


class NamespaceDeletion:
    """The controller of terminating namespaces."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._namespaces = stores.objects("", "namespaces")
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """Running deletions by name of the namespace."""

    def start(self) -> None:
        """Start following namespaces."""
        Follower(self._stores.store("", "namespaces"), self._changed).begin()

    async def stop(self) -> None:
        """Stop, and return once nothing runs any more."""
        tasks = list(self._tasks.values())
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _changed(self, _: str, name: str, entry: Entry | None) -> None:
        if entry is None or name in self._tasks or b'"deletionTimestamp":"' not in entry.body:
            return
        task = asyncio.get_running_loop().create_task(
            self._empty_and_finalize(name), name=f"deleting all of namespace {name}"
        )
        self._tasks[name] = task
        task.add_done_callback(lambda _: self._tasks.pop(name))

    async def _empty_and_finalize(self, name: str) -> None:
        """Empty and finalize a namespace, with retries; return once this server's finalizer is gone."""
        checks = Retries(_CHECKS)
        while True:
            try:
                cached = await self._namespaces.get_cached("", name)
                if (
                    cached is None
                    or cached.metadata.deletion_timestamp is None
                    or FINALIZER not in cached.spec.finalizers
                ):
                    return
                if await self._is_empty(name):
                    await self._finalize(name)
                    return
            except Exception:
                logger.exception("the namespace %s cannot be deleted yet", name)
            await checks.pause()

    async def _is_empty(self, namespace: str) -> bool:
        """Delete the objects in a namespace, and return True if none are left."""
        is_empty = True
        for store in self._namespaced():
            await store.warm()
            resource = store.resource
            objects = self._stores.objects(resource.group, resource.plural)
            await _delete_all(objects, [name for _, name in objects.names(namespace)], namespace)
            is_empty = is_empty and not objects.count(namespace)
        return is_empty

    def _namespaced(self) -> Iterable[Store[Any]]:
        return [each for each in self._stores if each.resource.namespaced]

    async def _finalize(self, name: str) -> None:
        def finalized(namespace: Namespace) -> Namespace:
            namespace.spec.finalizers = [each for each in namespace.spec.finalizers if each != FINALIZER]
            return namespace

        await self._namespaces.update(loopback(name, name), name, finalized, subresource="finalize")


async def _delete_all(objects: StoreObjects, names: Iterable[str], namespace: str) -> None:
    async for name in time_sliced(names):
        try:
            await objects.delete(loopback(namespace, name), name)
        except StatusError as error:
            if error.code != 404:
                raise
