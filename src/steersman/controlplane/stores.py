"""The stores of a control plane, by resource."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from sortedcontainers import SortedDict

from steersman.controlplane.computed import AnsweringStorage, ComputedStorage
from steersman.controlplane.objects import StoreObjects
from steersman.controlplane.stored_forms import stored_form
from steersman.kinds.stored_form import JSON, StoredForm
from steersman.machinery.identity.schema import GroupResource
from steersman.rest.bound import BoundResource
from steersman.rest.capabilities import ResourceStorage
from steersman.storage.interface import Storage, StorageUnavailable
from steersman.storage.lagging import LaggingFeeds
from steersman.storage.mapped import MappedStorage
from steersman.storage.stored_objects import StoredObjects
from steersman.store.store import Store

if TYPE_CHECKING:  # spares most servers the import: they encrypt nothing
    from steersman.controlplane.encryption import Encryption

logger = logging.getLogger(__name__)

_JUDGED_BY: Final = frozenset(
    GroupResource(group, plural)
    for group, plurals in {
        "": ("namespaces", "resourcequotas", "limitranges", "serviceaccounts"),
        "admissionregistration.k8s.io": (
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
            "mutatingwebhookconfigurations",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "validatingwebhookconfigurations",
        ),
        "apiextensions.k8s.io": ("customresourcedefinitions",),
        "apiregistration.k8s.io": ("apiservices",),
        "node.k8s.io": ("runtimeclasses",),
        "rbac.authorization.k8s.io": ("clusterrolebindings", "clusterroles", "rolebindings", "roles"),
        "scheduling.k8s.io": ("priorityclasses",),
    }.items()
    for plural in plurals
)
"""Resources whose objects decide about requests for other resources."""
RETRY: Final = 1.0
"""Seconds before another attempt to fill a cache."""


class Stores:
    """The stores by the group of their stored version and their plural.

    `encryption` encrypts values, `media_type` is the media type for writing objects of built-in kinds. All stores share
    one storage, unless `located` returns the storage of each resource; `has_own_storage` then returns True for another
    storage.
    """

    def __init__(
        self,
        storage: Storage,
        encryption: Encryption | None = None,
        media_type: str = JSON,
        located: Callable[[GroupResource], Storage] | None = None,
        has_own_storage: Callable[[GroupResource], bool] | None = None,
    ) -> None:
        self._storage = storage
        self._located = located
        self._has_own_storage = has_own_storage
        self._encryption = encryption
        self._media_type = media_type
        self._stores: dict[tuple[str, str], Store[Any]] = {}
        self._objects: dict[tuple[str, str], StoreObjects] = {}
        self._prefixes: SortedDict = SortedDict()
        """Resources by the prefix of their keys; no prefix begins with another."""
        self._filling: list[asyncio.Task[None]] = []
        self.lagging: Final = LaggingFeeds()
        """Subscribers for resources that decide about requests, which may still have to be notified of a write."""
        self.forms: Final[dict[GroupResource, StoredForm]] = {}
        """Stored forms of built-in kinds."""

    def add(self, bound: BoundResource[Any]) -> ResourceStorage:
        """Create and return the implementation of a resource; a store fills its cache on first use unless it is
        started.

        Raises ValueError if the resource's prefix of keys overlaps with another's: each resource would then serve the
        other's objects to users without the right to read them.
        """
        resource = bound.resource
        if bound.answerer is not None:
            return AnsweringStorage(resource.kind, bound.answerer)
        if bound.reader is not None:
            return ComputedStorage(resource.kind, resource.group_resource, bound.reader)
        self._claim(resource.key_prefix, resource.group_resource)
        key = (resource.group, resource.plural)
        self._stores[key] = store = self._create_store(bound)
        self._objects[key] = StoreObjects(store)
        return store

    def _create_store(self, bound: BoundResource[Any]) -> Store[Any]:
        kind: type[Store[Any]] = Store
        if bound.resource.conversion is not None:
            from steersman.store.converting_store import ConvertingStore  # which servers of one version do without

            kind = ConvertingStore
        lagging = self.lagging if bound.resource.group_resource in _JUDGED_BY else None
        storage = self.storage_of(bound.resource.group_resource, lagging)
        form = stored_form(bound.resource, self._media_type)
        if form is not None:
            self.forms[bound.resource.group_resource] = form
            storage = MappedStorage(storage, StoredObjects(form), lagging)
        store: Store[Any] = kind(bound, storage)
        store.has_own_storage = self._has_own_storage is not None and self._has_own_storage(
            bound.resource.group_resource
        )
        return store

    def storage_of(self, resource: GroupResource, lagging: LaggingFeeds | None = None) -> Storage:
        """Return the storage for the values of a resource, with encryption if configured.

        `lagging` counts the subscribers that still have to be notified.
        """
        storage = self._storage if self._located is None else self._located(resource)
        return storage if self._encryption is None else self._encryption.storage_of(resource, storage, lagging)

    def replace(self, bound: BoundResource[Any]) -> tuple[Store[Any], Store[Any] | None]:
        """Replace the store of a resource; return the new store and the old one, which runs until it is stopped.

        The old one is None if there was none. Raises ValueError if the prefix of keys overlaps with another resource's.
        """
        resource = bound.resource
        key = (resource.group, resource.plural)
        before = self._stores.get(key)
        if before is None or before.prefix != resource.key_prefix:
            if before is not None:
                raise ValueError(f"{resource.group_resource} is stored in {before.prefix}")
            self._claim(resource.key_prefix, resource.group_resource)
        self._stores[key] = store = self._create_store(bound)
        self._objects[key] = StoreObjects(store)
        return store, before

    async def start(self) -> None:
        """Fill the caches of all stores concurrently."""
        await asyncio.gather(*(store.start() for store in self._stores.values()))

    def fill_later(self) -> None:
        """Continue filling the unfilled caches in the background, without a time limit."""
        late = [store for store in self if not store.cacher.ready]
        self._filling = [asyncio.get_running_loop().create_task(_filled(store)) for store in late]

    def _claim(self, prefix: str, resource: GroupResource) -> None:
        """Reserve a prefix of keys for a resource. Raises ValueError if it overlaps with another."""
        if (other := self._overlapping(prefix)) is not None:
            holder = self._prefixes[other]
            raise ValueError(f"{resource} cannot be stored in {prefix}: {holder} is stored in {other}")
        self._prefixes[prefix] = resource

    def _overlapping(self, prefix: str) -> str | None:
        """Return the prefix of keys of a resource that overlaps with this one, None if there is none."""
        at = self._prefixes.bisect_left(prefix)
        for other in self._prefixes.keys()[max(at - 1, 0) : at + 1]:
            if other.startswith(prefix) or prefix.startswith(other):
                return str(other)
        return None

    def storage_of_removed(self, resource: GroupResource, prefix: str) -> Storage | None:
        """Return the storage that had the values of a resource under this prefix; None if others are stored there."""
        return None if self._overlapping(prefix) is not None else self.storage_of(resource)

    def remove(self, group: str, plural: str) -> Store[Any] | None:
        """Remove and return a store, which runs until it is stopped; return None for a resource that is not stored."""
        store = self._stores.pop((group, plural), None)
        if store is not None:
            del self._objects[group, plural]
            del self._prefixes[store.prefix]
        return store

    async def stop(self) -> None:
        """Stop all stores."""
        for task in self._filling:
            task.cancel()
        await asyncio.gather(*self._filling, return_exceptions=True)
        for store in list(self._stores.values()):
            await store.stop()

    def store(self, group: str, plural: str) -> Store[Any]:
        """Return the store of a resource. Raises KeyError if there is none."""
        return self._stores[group, plural]

    def objects(self, group: str, plural: str) -> StoreObjects:
        """Return typed access to a resource's objects. Raises KeyError."""
        return self._objects[group, plural]

    def __iter__(self) -> Iterator[Store[Any]]:
        return iter(self._stores.values())


async def _filled(store: Store[Any]) -> None:
    """Fill the cache of a store; storage errors are logged and retried."""
    while True:
        try:
            await store.start()
        except StorageUnavailable as error:
            logger.warning("filling the cache of %s failed and will be retried: %s", store.prefix, error)
            await asyncio.sleep(RETRY)
        else:
            return
