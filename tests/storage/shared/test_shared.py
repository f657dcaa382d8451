"""Tests of a shared storage beyond the contract: several workers, the end of their owner, and large amounts of data."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Sequence

import pytest

from steersman.machinery.shared_words import SharedWords
from steersman.net.link import frame
from steersman.storage.interface import Event, OutcomeUnknown, StorageUnavailable
from steersman.storage.memory import MemoryStorage
from steersman.storage.shared import frames
from steersman.storage.shared import server as server_module
from steersman.storage.shared.client import SharedStorage
from steersman.storage.shared.server import StorageServer


class House:
    """An owner with a storage in memory."""

    def __init__(self, storage: MemoryStorage) -> None:
        self.storage = storage
        self.words = SharedWords.create()
        self.server = StorageServer(storage, self.words)
        self.ended: list[str] = []
        self.workers: list[SharedStorage] = []

    async def worker(self) -> SharedStorage:
        near, far = socket.socketpair()
        await self.server.connect(near, lambda: self.ended.append("worker"))
        worker = await SharedStorage.open(far, self.words, lambda: self.ended.append("owner"))
        self.workers.append(worker)
        return worker


@pytest.fixture
async def house() -> AsyncIterator[House]:
    house = House(await MemoryStorage.open(compaction_interval=0, lease_interval=0))
    await house.server.start()
    yield house
    for each in house.workers:
        with contextlib.suppress(StorageUnavailable):
            await each.close()
    await house.server.stop()
    await house.storage.close()


async def test_the_newest_revision_is_known_before_the_event_has_come(house: House) -> None:
    one, other = await house.worker(), await house.worker()
    written = await one.create("/a", b"1")
    assert await other.current_revision() == written.mod_revision
    await other.wait_until(written.mod_revision)
    assert other.revision == written.mod_revision


async def test_every_worker_is_told_of_every_write_in_one_order(house: House) -> None:
    workers = [await house.worker() for _ in range(3)]
    told: list[list[Event]] = [[] for _ in workers]
    for worker, events in zip(workers, told, strict=True):
        await worker.subscribe("/", after_revision=worker.revision, deliver=events.extend)
    await asyncio.gather(
        *(worker.create(f"/{number}/{index}", b"x") for number in range(30) for index, worker in enumerate(workers))
    )
    for worker in workers:
        await worker.wait_until(91)
    assert [event.revision for event in told[0]] == list(range(2, 92))
    assert told[1] == told[0] == told[2]


async def test_of_two_workers_that_create_the_same_key_one_does(house: House) -> None:
    one, other = await house.worker(), await house.worker()
    results = await asyncio.gather(one.create("/a", b"1"), other.create("/a", b"2"), return_exceptions=True)
    assert [type(each).__name__ for each in results] == ["KeyValue", "KeyExists"]


async def test_a_long_history_is_replayed_in_parts_without_gap_or_repetition(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "ENOUGH", 20_000)
    worker = await house.worker()
    for number in range(600):
        await house.storage.create(f"/pods/{number}", b"x" * 1000)
    await worker.wait_until(601)
    notified: list[int] = []

    def deliver(events: Sequence[Event]) -> None:
        notified.extend(event.revision for event in events)

    await worker.subscribe("/pods/", after_revision=1, deliver=deliver)
    assert notified == list(range(2, 602))


async def test_large_values_come_whole(house: House) -> None:
    one, other = await house.worker(), await house.worker()
    value = bytes(range(256)) * (3 << 12)
    await asyncio.gather(*(one.create(f"/{number}", value) for number in range(4)))
    found = await other.range("/")
    assert [each.value == value for each in found.items] == [True] * 4


async def test_when_the_owner_is_gone_reads_fail_and_of_a_write_nobody_knows(house: House) -> None:
    worker = await house.worker()
    writing = asyncio.ensure_future(worker.create("/a", b"1"))
    reading = asyncio.ensure_future(worker.get("/a"))
    waiting = asyncio.ensure_future(worker.wait_until(100))
    await asyncio.sleep(0)
    for each in tuple(house.server._workers):
        each.link.abort()
    results = await asyncio.gather(writing, reading, waiting, return_exceptions=True)
    assert [type(each) for each in results] == [OutcomeUnknown, StorageUnavailable, StorageUnavailable]
    assert "owner" in house.ended
    with pytest.raises(StorageUnavailable):
        await worker.create("/b", b"1")
    with pytest.raises(StorageUnavailable):
        await worker.current_revision()


async def test_a_worker_that_reads_nothing_is_cut_off_and_holds_up_nobody(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "MOST_UNREAD", 1 << 20)
    monkeypatch.setattr(server_module, "PATIENCE", 0.2)
    worker = await house.worker()
    near, far = socket.socketpair()
    silent = asyncio.Event()
    await house.server.connect(near, silent.set)
    far.sendall(frame(frames.Kind.OPEN, 0))
    for number in range(20):
        await worker.create(f"/{number}", b"x" * 200_000)
    await asyncio.sleep(0.3)
    await worker.create("/last", b"x")
    async with asyncio.timeout(10):
        await silent.wait()
    assert (await worker.get("/19")) is not None
    far.close()


async def test_a_worker_that_is_told_much_at_once_and_reads_it_is_not_cut_off(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "MOST_UNREAD", 1 << 20)
    writer = await house.worker()
    near, far = socket.socketpair()
    cut_off = asyncio.Event()
    await house.server.connect(near, cut_off.set)
    far.setblocking(False)
    far.sendall(frame(frames.Kind.OPEN, 0))
    for number in range(20):
        await writer.create(f"/{number}", b"x" * 500_000)
    left = 20 * 500_000
    async with asyncio.timeout(10):
        while left > 0:
            left -= len(await asyncio.get_running_loop().sock_recv(far, 1 << 20))
    assert not cut_off.is_set()
    far.close()


async def test_what_is_written_before_a_worker_listens_is_not_kept_for_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "MOST_UNREAD_AT_ALL", 1 << 20)
    monkeypatch.setattr(server_module, "MOST_UNREAD", 1 << 20)
    writer = await house.worker()
    near, far = socket.socketpair()
    starting = asyncio.Event()
    await house.server.connect(near, starting.set)
    for number in range(20):
        await writer.create(f"/{number}", b"x" * 200_000)
    late = await SharedStorage.open(far, house.words)
    assert not starting.is_set()
    assert late.revision == writer.revision
    assert await late.get("/19") is not None
    await late.close()


async def test_a_storage_that_takes_no_writes_any_more_is_known_to_all(house: House) -> None:
    one, other = await house.worker(), await house.worker()
    await house.storage.close()
    with pytest.raises(StorageUnavailable):
        await one.create("/a", b"1")
    with pytest.raises(StorageUnavailable):
        await other.create("/a", b"1")
