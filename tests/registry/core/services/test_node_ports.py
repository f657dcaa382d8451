"""Node port allocation: one stored bitmap, written by several servers, also by kube-apiserver."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from steersman.machinery.errors.status import StatusError, plain_internal
from steersman.registry.core.services.node_ports import (
    KEY,
    NodePorts,
    NoRange,
    PortBitmap,
    PortError,
    PortOperation,
    decode_bitmap,
    encode_bitmap,
)
from steersman.storage.memory import MemoryStorage

RANGE = range(30000, 32768)


@pytest.fixture
async def storage() -> AsyncIterator[MemoryStorage]:
    made = MemoryStorage(compaction_interval=0, lease_interval=0)
    await made.create(KEY, encode_bitmap(PortBitmap(RANGE)))
    yield made
    await made.close()


def test_what_is_stored_is_what_kube_apiserver_stores() -> None:
    taken = PortBitmap(RANGE)
    for port in (30007, 30100):
        taken.allocate(port)
    value = encode_bitmap(taken)
    found = msgspec.json.decode(value)
    bitmap = base64.b64decode(found.pop("data"))
    assert found == {"kind": "RangeAllocation", "apiVersion": "v1", "metadata": {}, "range": "30000-32767"}
    assert int.from_bytes(bitmap) == 1 << 7 | 1 << 100
    assert list(decode_bitmap(value)) == [30007, 30100]


@pytest.mark.parametrize(
    "value",
    [
        # of kube-apiserver 1.36.3 with a service at 30007, as JSON and as protobuf
        b'{"kind":"RangeAllocation","apiVersion":"v1","metadata":{},"range":"30000-32767","data":"gA=="}\n',
        b'k8s\x00\n\x15\n\x02v1\x12\x0fRangeAllocation\x12"\n\x10\n\x00\x12\x00\x1a\x00"\x00*\x002\x008\x00B\x00'
        b'\x12\x0b30000-32767\x1a\x01\x80\x1a\x00"\x00',
    ],
)
def test_what_kube_apiserver_has_stored_is_read(value: bytes) -> None:
    taken = decode_bitmap(value)
    assert (taken.ports, list(taken)) == (RANGE, [30007])


@pytest.mark.parametrize("value", [b"{", b'{"range":"a-b"}', b'{"range":"1-99999999999999999999"}', b"k8s\x00\xff"])
def test_what_is_no_range_is_told(value: bytes) -> None:
    with pytest.raises(ValueError, match="the stored range of node ports"):
        decode_bitmap(value)


def test_every_port_is_given_once_and_those_of_the_lower_band_last() -> None:
    taken = PortBitmap(range(30000, 30100))
    given = [taken.allocate_next() for _ in range(100)]
    assert sorted(given) == list(taken.ports) == list(taken)
    assert set(given[-16:]) == set(range(30000, 30016))
    with pytest.raises(PortError, match="range is full"):
        taken.allocate_next()
    with pytest.raises(PortError, match="The range of valid ports is 30000-30099"):
        taken.allocate(30100)


async def test_two_servers_never_take_one_port(storage: MemoryStorage) -> None:
    servers = [NodePorts(RANGE, storage) for _ in range(3)]

    async def allocate(server: NodePorts) -> list[int]:
        return [await server.change(PortBitmap.allocate_next) for _ in range(50)]

    several = await asyncio.gather(*(allocate(server) for server in servers for _ in range(2)))
    given = [port for each in several for port in each]
    assert len(given) == len(set(given)) == 300
    stored = await storage.get(KEY)
    assert stored is not None
    assert set(decode_bitmap(stored.value)) == set(given)


async def test_what_another_server_has_taken_is_refused_and_what_it_gave_back_is_had(storage: MemoryStorage) -> None:
    one, other = NodePorts(RANGE, storage), NodePorts(RANGE, storage)
    await one.change(lambda taken: taken.allocate(30007))
    with pytest.raises(PortError, match="already allocated"):
        await other.change(lambda taken: taken.allocate(30007))
    await one.change(lambda taken: taken.release(30007))
    await other.change(lambda taken: taken.allocate(30007))  # although its copy has the port as allocated
    assert await one.preview(list) == [30007]


async def test_what_another_server_has_taken_is_given_back(storage: MemoryStorage) -> None:
    one, other = NodePorts(RANGE, storage), NodePorts(RANGE, storage)
    await other.change(lambda taken: taken.allocate(30001))
    await one.change(lambda taken: taken.allocate(30007))
    await other.change(lambda taken: taken.release(30007))  # of which it does not know that it is taken
    await one.change(lambda taken: taken.allocate(30007))


async def test_what_is_refused_takes_nothing(storage: MemoryStorage) -> None:
    ports = NodePorts(RANGE, storage)
    before = storage.revision

    def refused(taken: PortBitmap) -> None:
        taken.allocate(30001)
        raise plain_internal("no")

    with pytest.raises(StatusError, match="no"):
        await ports.change(refused)
    assert await ports.preview(list) == []
    assert storage.revision == before


async def test_one_server_reads_what_it_has_written_no_more(
    storage: MemoryStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports = NodePorts(RANGE, storage)
    await ports.change(lambda taken: taken.allocate(30001))
    monkeypatch.delattr(MemoryStorage, "get")
    before = storage.revision

    def two(taken: Any) -> None:
        taken.allocate(30002)
        taken.allocate(30003)

    await ports.change(two)
    assert storage.revision == before + 1  # one write for all ports of a service


async def test_without_a_range_there_is_nothing_to_take(storage: MemoryStorage) -> None:
    stored = await storage.get(KEY)
    assert stored is not None
    await storage.delete(KEY, expected_revision=stored.mod_revision)
    with pytest.raises(NoRange):
        await NodePorts(RANGE, storage).change(PortBitmap.allocate_next)


async def test_servers_of_two_ranges_do_not_share_one(storage: MemoryStorage) -> None:
    with pytest.raises(PortError, match="the provided range does not match the current range"):
        await NodePorts(range(30000, 30010), storage).change(PortBitmap.allocate_next)


async def test_a_dry_run_takes_nothing_and_sees_what_is_taken(storage: MemoryStorage) -> None:
    ports = NodePorts(RANGE, storage)
    await ports.change(lambda taken: taken.allocate(30007))

    def attempt(taken: PortBitmap) -> list[int]:
        operation = PortOperation(taken, dry_run=True)
        operation.allocate(30008)
        with pytest.raises(PortError, match="already allocated"):
            operation.allocate(30007)
        return [operation.allocate_next(), operation.allocate_next()]

    assert await ports.preview(attempt) == [30009, 30010]
    assert await ports.preview(list) == [30007]
