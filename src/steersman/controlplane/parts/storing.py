"""Parts that store objects: the storage, its encryption, the stores of resources, their caches."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from steersman.controlplane.data_folder import encryption_of, etcd_clusters, fill, make_data_folder, open_storage
from steersman.controlplane.options import Options
from steersman.controlplane.parts.basis import Common, Embedding
from steersman.controlplane.stores import Stores
from steersman.rest.resource import KEYS
from steersman.storage.interface import Storage
from steersman.work.parts import Part, offered

if TYPE_CHECKING:
    from steersman.controlplane.encryption import Encryption
    from steersman.controlplane.etcd_cluster import EtcdClusters
    from steersman.controlplane.stored_versions.agreement import Agreement


async def is_empty(storage: Storage) -> bool:
    """Return True if a storage has no object."""
    return not (await storage.range(f"{KEYS}/", limit=1)).items


def before_caches(part: type[Part], parts: Sequence[type[Part]]) -> Sequence[type[Part]]:
    """Return the parts of a control plane with one that stores objects before the caches are filled."""
    at = parts.index(FilledCaches)
    return (*parts[:at], part, *parts[at:])


class EncryptionAtRest(Part):
    """The encryption of stored values (--encryption-provider-config)."""

    options: Options
    common: Common
    encryption: Encryption | None = offered()

    async def start(self, ending: AsyncExitStack) -> None:
        self.encryption = await encryption_of(self.options, self.common.registry, ending)


class OpenStorage(Part):
    """The data folder, which is locked, and the storage in it or elsewhere."""

    options: Options
    embedding: Embedding
    common: Common
    storage: Storage = offered()
    clusters: EtcdClusters | None = offered()

    async def start(self, ending: AsyncExitStack) -> None:
        make_data_folder(self.options)
        self.clusters = etcd_clusters(self.options, self.common.registry)
        self.storage = await self.open()
        ending.push_async_callback(self.storage.close)
        if self.clusters is not None:
            await self.clusters.open_overrides(ending)

    async def open(self) -> Storage:
        """Open the storage, which locks out other processes, and return it.

        Raises OSError, and StorageLocked, StorageFormatError or StorageUnavailable.
        """
        worker = self.embedding.worker
        open_it = open_storage if worker is None else worker.open_storage
        return await open_it(self.options, self.clusters)


class ObjectStores(Part):
    """The registry of stores, still empty."""

    options: Options
    at_rest: EncryptionAtRest
    opened: OpenStorage
    stores: Stores = offered()

    async def start(self, ending: AsyncExitStack) -> None:
        storage, clusters = self.opened.storage, self.opened.clusters
        located, has_own_storage = (None, None) if clusters is None else (clusters.storage_of, clusters.has_own_storage)
        self.stores = Stores(
            storage, self.at_rest.encryption, self.options.storage_media_type, located, has_own_storage
        )
        ending.push_async_callback(self.stores.stop)


class StoredVersions(Part):
    """The agreement with other servers on the storage about stored versions."""

    opened: OpenStorage
    objects: ObjectStores
    agreement: Agreement | None = None

    async def start(self, ending: AsyncExitStack) -> None:
        storage = self.opened.storage
        if storage.has_other_servers:
            from steersman.controlplane.stored_versions.rewriting import agreement_on  # which most servers never need

            self.agreement = agreement_on(storage, self.objects.stores)
            await self.agreement.join()
            ending.push_async_callback(self.agreement.leave)


class FilledCaches(Part):
    """The filled watch caches of all stores."""

    options: Options
    objects: ObjectStores

    async def start(self, ending: AsyncExitStack) -> None:
        await fill(self.objects.stores, self.options)


class CacheConsistency(Part):
    """Comparison of watch caches with etcd, for storage in etcd."""

    opened: OpenStorage
    objects: ObjectStores

    async def start(self, ending: AsyncExitStack) -> None:
        if self.opened.clusters is not None:
            from steersman.controlplane.cache_checks import CacheChecks  # which most servers never need

            checks = CacheChecks(self.objects.stores, self.opened.clusters.keys_of)
            ending.push_async_callback(checks.periodic.stop)
            checks.periodic.start()
