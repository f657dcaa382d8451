"""The amount of history that a cache keeps, and reads of it."""

from __future__ import annotations

import asyncio

import pytest

from steersman.storage.cache.cacher import Cacher
from steersman.storage.cache.entry import CHANGE_BYTES, Change, Entry
from steersman.storage.cache.window import EventWindow
from steersman.storage.interface import (
    Compacted,
    FutureRevision,
    Storage,
)
from tests.storage.cache.shown import PODS, Window, body_at, present
from tests.storage.storage_model import Clock


async def test_window_is_bounded_by_count_age_and_bytes() -> None:
    clock = Clock()

    def add(window: EventWindow, revision: int, size: int = 10) -> None:
        before = Entry("/a", b"x" * size, revision - 1)
        window.add(Change(revision, "/a", before, Entry("/a", b"", revision), clock.now, CHANGE_BYTES + size))

    window = EventWindow(1, count_kept=100, count_limit=1000, bytes_limit=1 << 20, fresh_seconds=75)
    for revision in range(2, 500):
        add(window, revision)
    assert (len(window), window.start) == (498, 1)
    for revision in range(500, 3000):
        add(window, revision)
    assert (len(window), window.start) == (1000, 1999)
    clock.now += 76
    add(window, 3000)
    assert (len(window), window.start) == (100, 2900)
    assert [change.revision for change in window.since(2998)] == [2999, 3000]
    for revision in range(3001, 3010):
        add(window, revision, 400_000)
    assert len(window) == 2
    assert window.start == 3007
    assert window.size < 1 << 20


async def test_large_changes_have_less_room_in_the_window() -> None:
    def filled(size: int) -> EventWindow:
        window = EventWindow(0, count_limit=1000, bytes_limit=1 << 20, bytes_of_large=100_000)
        for revision in range(1, 101):
            window.add(Change(revision, "/a", Entry("/a", b"x" * size, 0), None, 0.0, CHANGE_BYTES + size))
        return window

    assert (len(filled(7_500)), len(filled(9_000)), len(filled(20_000))) == (100, 10, 4)


async def test_a_list_that_is_read_in_pages_goes_on_when_the_window_has_moved_on(store: Storage) -> None:
    cacher = Cacher(store, PODS, present=present, body_at=body_at, new_window=Window(count_kept=2, count_limit=2))
    await cacher.start()
    for number in range(5):
        await store.create(f"{PODS}{number}", b"1")
    revision = cacher.revision
    first, more = cacher.list(PODS, limit=2)
    assert more
    for number in range(5):
        found = await store.get(f"{PODS}{number}")
        assert found is not None
        await store.update(found.key, b"2", expected_revision=found.mod_revision)
    assert cacher.oldest_revision > revision
    rest, more = cacher.list_at(revision, PODS, start=f"{PODS}2")
    assert [entry.key for entry in (*first, *rest)] == [f"{PODS}{number}" for number in range(5)]
    assert {entry.body.partition(b"@")[0] for entry in (*first, *rest)} == {first[0].body.partition(b"@")[0]}
    assert cacher.count_at(revision, PODS, f"{PODS}3") == 2
    with pytest.raises(Compacted):
        cacher.list_at(revision - 1, PODS)
    await store.compact(revision + 1)
    with pytest.raises(Compacted):
        cacher.list_at(revision, PODS)
    await cacher.stop()


async def test_a_recalled_revision_is_there_though_much_has_changed_since(store: Storage, cacher: Cacher) -> None:
    for number in range(20):
        await store.create(f"{PODS}{number:02}", b"1")
    revision = cacher.revision
    await asyncio.gather(*(store.create(f"{PODS}{number:04}", b"1") for number in range(20, 1200)))
    await cacher.recall(revision)
    assert len(cacher.list_at(revision, PODS)[0]) == 20
    assert len(cacher.list(PODS)[0]) == 1200
    with pytest.raises(FutureRevision):
        await cacher.recall(cacher.revision + 1)
