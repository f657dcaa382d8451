"""Reconcilers of the endpoints of the Service `kubernetes`."""

from __future__ import annotations

from typing import NoReturn

import pytest

from steersman.controlplane.kubernetes_service.leases import ServerLeases
from steersman.controlplane.kubernetes_service.reconcilers import LeaseReconciler
from steersman.machinery.errors.status import StatusError
from steersman.storage.interface import StorageUnavailable
from steersman.storage.memory import MemoryStorage


class FullStorage(MemoryStorage):
    """A storage that answers reads and refuses every write."""

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> NoReturn:
        raise StorageUnavailable("nothing was written: the disk or its quota is full")

    async def delete(self, key: str, *, expected_revision: int) -> NoReturn:
        raise StorageUnavailable("nothing was written: the disk or its quota is full")


def no_objects(group: str, resource: str) -> NoReturn:
    raise AssertionError("endpoints are not asked for before the lease is written")


async def test_a_lease_that_cannot_be_written_fails_with_the_reason_of_storage() -> None:
    storage = FullStorage(compaction_interval=0, lease_interval=0)
    reconciler = LeaseReconciler(ServerLeases(storage), no_objects)
    with pytest.raises(StatusError, match="nothing was written: the disk or its quota is full") as raised:
        await reconciler.reconcile("10.77.0.1", 6443, at_start=True)
    assert raised.value.code == 500
    await storage.close()


async def test_a_lease_that_cannot_be_removed_fails_with_the_reason_of_storage() -> None:
    storage = FullStorage(compaction_interval=0, lease_interval=0)
    await MemoryStorage.create(storage, "/registry/masterleases/10.77.0.1", b'{"kind":"Endpoints","apiVersion":"v1"}')
    reconciler = LeaseReconciler(ServerLeases(storage), no_objects)
    with pytest.raises(StatusError, match="nothing was written: the disk or its quota is full") as raised:
        await reconciler.remove("10.77.0.1", 6443)
    assert raised.value.code == 500
    await storage.close()
