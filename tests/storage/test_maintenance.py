"""Background jobs of stores: compaction by time, and expiry of leases."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from steersman.storage.interface import Compacted, Event, Storage, StorageUnavailable
from steersman.storage.maintenance import Compactor, compaction
from steersman.storage.memory import MemoryStorage
from steersman.storage.sqlite import SQLiteStorage
from tests.storage.storage_model import Clock


async def test_the_compactor_keeps_what_is_newer_than_its_last_round(store: Storage) -> None:
    compactor = Compactor(store)
    for number in range(5):
        await store.create(f"/{number}", b"1")
    await compactor.tick()
    assert (await store.get("/0", revision=2)) is not None
    for number in range(5, 10):
        await store.create(f"/{number}", b"1")
    await compactor.tick()
    with pytest.raises(Compacted) as refused:
        await store.get("/0", revision=5)
    assert refused.value.revision == 6
    await compactor.tick()
    with pytest.raises(Compacted) as refused:
        await store.get("/0", revision=6)
    assert refused.value.revision == 11


async def test_the_compactor_leaves_history_that_is_compacted_further_already(store: Storage) -> None:
    compactor = Compactor(store)
    for number in range(5):
        await store.create(f"/{number}", b"1")
    await compactor.tick()
    await store.create("/5", b"1")
    await store.compact(store.revision)
    await compactor.tick()
    with pytest.raises(Compacted) as refused:
        await store.get("/0", revision=6)
    assert refused.value.revision == 7


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_an_open_store_expires_leases_and_compacts_by_itself(kind: str, tmp_path: Path) -> None:
    clock = Clock()
    options: dict[str, Any] = {"compaction_interval": 0.01, "lease_interval": 0.01, "clock": clock}
    if kind == "memory":
        store: Storage = await MemoryStorage.open(**options)
    else:
        store = await SQLiteStorage.open(tmp_path / "store.db", **options)
    deleted = asyncio.Event()

    def deliver(events: Sequence[Event]) -> None:
        if events[-1].current is None:
            deleted.set()

    await store.subscribe("/", after_revision=1, deliver=deliver)
    await store.create("/a", b"1", ttl=1)
    clock.now += 5
    await asyncio.wait_for(deleted.wait(), 10)
    async with asyncio.timeout(10):
        while await kept(store, 2):  # noqa: ASYNC110  # compaction tells nobody
            await asyncio.sleep(0.01)
    await store.close()


async def kept(store: Storage, revision: int) -> bool:
    try:
        await store.get("/a", revision=revision)
    except Compacted:
        return False
    return True


async def test_a_refusal_of_the_storage_is_told_once_and_a_fault_as_such(caplog: pytest.LogCaptureFixture) -> None:
    rounds = 0
    fourth = asyncio.Event()

    async def fail() -> None:
        nonlocal rounds
        rounds += 1
        if rounds <= 2:
            raise StorageUnavailable("not now")
        if rounds == 3:
            raise RuntimeError("a bug")
        fourth.set()

    work = compaction(0, fail)
    work.start()
    await asyncio.wait_for(fourth.wait(), 5)
    await work.stop()
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["compaction failed and is tried again: not now", "compaction failed and is tried again"]
