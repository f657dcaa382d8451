"""Snapshots of the store in memory."""

from __future__ import annotations

import random

import pytest

from steersman.storage.interface import StorageUnavailable
from steersman.storage.memory import MemoryStorage
from tests.storage.storage_model import Clock, Recorder, check_every_revision, write_at_random


async def test_what_was_made_changed_and_deleted_is_as_it_was_and_subscribers_are_told() -> None:
    store = MemoryStorage()
    kept, changed, gone = [await store.create(key, b"1") for key in ("/a", "/b", "/c")]
    snapshot = store.snapshot()
    await store.update("/b", b"2", expected_revision=changed.mod_revision)
    await store.delete("/c", expected_revision=gone.mod_revision)
    await store.create("/d", b"4")
    recorder = Recorder()
    await store.subscribe("/", after_revision=store.revision, deliver=recorder)
    store.restore(snapshot)
    assert [(each.key, each.value) for each in (await store.range("/")).items] == [
        ("/a", b"1"),
        ("/b", b"1"),
        ("/c", b"1"),
    ]
    assert await store.get("/a") == kept
    assert [(each.key, each.current is None, each.previous is None) for each in recorder.events] == [
        ("/d", True, False),
        ("/b", False, False),
        ("/c", False, True),
    ]
    assert recorder.revisions == [8, 9, 10]
    assert store.revision == 10


async def test_a_key_that_was_deleted_and_made_again_is_another_until_it_is_brought_back() -> None:
    store = MemoryStorage()
    first = await store.create("/a", b"1")
    snapshot = store.snapshot()
    await store.delete("/a", expected_revision=first.mod_revision)
    await store.create("/a", b"2")
    recorder = Recorder()
    await store.subscribe("/", after_revision=store.revision, deliver=recorder)
    store.restore(snapshot)
    assert [each.current is None for each in recorder.events] == [True, False]
    again = await store.get("/a")
    assert again is not None
    await store.update("/a", b"3", expected_revision=again.mod_revision)
    store.restore(snapshot)
    assert [each.current is None for each in recorder.events] == [True, False, False, False]


async def test_leases_have_as_long_as_they_had() -> None:
    clock = Clock()
    store = MemoryStorage(clock=clock)
    leased = await store.create("/a", b"1", ttl=10)
    clock.now += 4
    snapshot = store.snapshot()
    await store.delete("/a", expected_revision=leased.mod_revision)
    clock.now += 100
    store.restore(snapshot)
    clock.now += 5
    await store.expire_leases()
    assert await store.get("/a") is not None
    clock.now += 2
    await store.expire_leases()
    assert await store.get("/a") is None


async def test_nothing_is_told_where_nothing_differs_and_nothing_after_the_end() -> None:
    store = MemoryStorage()
    await store.create("/a", b"1")
    snapshot = store.snapshot()
    store.restore(snapshot)
    assert store.revision == 2
    await store.close()
    with pytest.raises(StorageUnavailable):
        store.restore(snapshot)


async def test_after_random_writes_the_log_is_still_the_truth() -> None:
    chance = random.Random(5)
    store = MemoryStorage()
    recorder = Recorder()
    await store.subscribe("/", after_revision=1, deliver=recorder)
    await write_at_random(store, chance, 40)
    snapshot = store.snapshot()
    expected = [(each.key, each.value) for each in (await store.range("")).items]
    for _ in range(5):
        await write_at_random(store, chance, 40)
        store.restore(snapshot)
        assert [(each.key, each.value) for each in (await store.range("")).items] == expected
    await check_every_revision(store, recorder.events)
