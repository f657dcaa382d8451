"""Leases by which servers on one store know each other."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from steersman.controlplane.kubernetes_service.leases import PREFIX, ServerLeases
from steersman.storage.memory import MemoryStorage


@pytest.fixture
async def storage() -> AsyncIterator[MemoryStorage]:
    made = MemoryStorage(compaction_interval=0, lease_interval=0)
    yield made
    await made.close()


async def test_what_is_stored_is_what_kube_apiserver_stores(storage: MemoryStorage) -> None:
    leases = ServerLeases(storage)
    for _ in range(5):
        await leases.renew("10.77.0.1")
    stored = await storage.get("/registry/masterleases/10.77.0.1")
    assert stored is not None
    assert stored.value == (
        b'{"kind":"Endpoints","apiVersion":"v1","metadata":{"generation":5},'
        b'"subsets":[{"addresses":[{"ip":"10.77.0.1"}]}]}'
    )


async def test_that_of_a_kube_apiserver_counts_as_json_and_as_protobuf(storage: MemoryStorage) -> None:
    await storage.create(
        PREFIX + "10.77.0.1",
        b'k8s\x00\n\x0f\n\x02v1\x12\tEndpoints\x12#\n\x10\n\x00\x12\x00\x1a\x00"\x00*\x002\x008\x01B\x00'
        b'\x12\x0f\n\r\n\t10.77.0.1\x1a\x00\x1a\x00"\x00',
    )
    await storage.create(
        PREFIX + "10.77.0.2",
        b'{"kind":"Endpoints","apiVersion":"v1","metadata":{"generation":2},"subsets":[{"addresses":[{"ip":"10.77.0.2"}]}]}\n',
    )
    leases = ServerLeases(storage)
    assert await leases.addresses() == ["10.77.0.1", "10.77.0.2"]
    await leases.renew("10.77.0.1")
    assert await leases.addresses() == ["10.77.0.1", "10.77.0.2"]


async def test_it_is_gone_when_it_is_not_renewed() -> None:
    now = 100.0
    storage = MemoryStorage(compaction_interval=0, lease_interval=0, clock=lambda: now)
    leases = ServerLeases(storage)
    await leases.renew("10.77.0.1")
    now = 110.0
    await leases.renew("10.77.0.1")
    now = 124.0
    await storage.expire_leases()
    assert await leases.addresses() == ["10.77.0.1"]
    now = 125.0
    await storage.expire_leases()
    assert await leases.addresses() == []


async def test_it_is_taken_away_once(storage: MemoryStorage) -> None:
    leases = ServerLeases(storage)
    await leases.renew("10.77.0.1")
    await leases.remove("10.77.0.1")
    await leases.remove("10.77.0.1")
    assert await leases.addresses() == []


async def test_what_cannot_be_read_is_told(storage: MemoryStorage) -> None:
    await storage.create(PREFIX + "10.77.0.9", b"{")
    with pytest.raises(ValueError, match=r"/registry/masterleases/10\.77\.0\.9 cannot be read"):
        await ServerLeases(storage).addresses()
