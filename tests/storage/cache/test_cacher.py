"""The watch cache, compared with the log: its content and the events of every watcher equal the replayed log."""

from __future__ import annotations

import asyncio
import random
import tracemalloc
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, cast

import pytest

from steersman.storage.cache import cacher as cacher_module
from steersman.storage.cache.cacher import Cacher
from steersman.storage.cache.entry import Entry
from steersman.storage.cache.watcher import Closed
from steersman.storage.interface import (
    Compacted,
    Deliver,
    Event,
    FutureRevision,
    Lost,
    Range,
    Storage,
    StorageUnavailable,
    Subscription,
)
from steersman.storage.memory import MemoryStorage
from tests.storage.cache.shown import PODS, Log, Window, body_at, caught_up, odd, present
from tests.storage.storage_model import Recorder, write_at_random

# Reading


async def test_what_was_there_before_is_loaded_in_key_order(store: Storage) -> None:
    numbers = list(range(2500))
    random.Random(1).shuffle(numbers)
    await asyncio.gather(*(store.create(f"{PODS}ns/{number:05}", b"v") for number in numbers))
    await store.create("/registry/podsx/other", b"v")
    cacher = Cacher(store, PODS, present=present, body_at=body_at)
    assert not cacher.ready
    with pytest.raises(StorageUnavailable):
        cacher.list(PODS)
    await cacher.start()
    await asyncio.wait_for(cacher.wait_until_ready(), 5)
    entries, more = cacher.list(PODS)
    assert [entry.key for entry in entries] == [f"{PODS}ns/{number:05}" for number in range(2500)]
    assert not more
    assert cacher.count(PODS) == 2500
    assert cacher.count_from(PODS, f"{PODS}ns/02000") == 500
    assert cacher.count("/registry/podsx/") == 0
    await cacher.stop()


async def test_a_read_follows_the_write_at_once(store: Storage, cacher: Cacher) -> None:
    created = await store.create(PODS + "ns/a", b"1")
    entry = cacher.get(PODS + "ns/a")
    assert entry is not None
    assert (entry.body, entry.revision) == (b"1@2", 2)
    await store.update(PODS + "ns/a", b"2", expected_revision=created.mod_revision)
    assert [each.body for each in cacher.list(PODS)[0]] == [b"2@3"]
    await store.delete(PODS + "ns/a", expected_revision=3)
    assert cacher.get(PODS + "ns/a") is None
    assert cacher.revision == 4
    await store.create("/elsewhere", b"1")
    assert cacher.revision == 5


async def test_lists_are_cut_at_limit_and_prefix(store: Storage, cacher: Cacher) -> None:
    for name in ("a/1", "a/2", "a/3", "a0", "b/1"):
        await store.create(PODS + name, b"v")

    def names(prefix: str, **options: Any) -> tuple[list[str], bool]:
        entries, more = cacher.list(PODS + prefix, **options)
        return [entry.key.removeprefix(PODS) for entry in entries], more

    assert names("a/") == (["a/1", "a/2", "a/3"], False)
    assert names("a/", limit=2) == (["a/1", "a/2"], True)
    assert names("a/", limit=3) == (["a/1", "a/2", "a/3"], False)
    assert names("a/", limit=2, start=PODS + "a/2") == (["a/2", "a/3"], False)
    assert names("", start=PODS + "a0", limit=1) == (["a0"], True)


async def test_waiting_for_freshness_is_bounded(store: Storage, cacher: Cacher) -> None:
    await cacher.wait_fresh(1)
    waiting = asyncio.create_task(cacher.wait_fresh(2))
    await asyncio.sleep(0)
    await store.create("/elsewhere", b"1")
    await asyncio.wait_for(waiting, 5)
    with pytest.raises(FutureRevision) as refused:
        await cacher.wait_fresh(3, timeout=0.01)
    assert (refused.value.requested, refused.value.current) == (3, 2)


async def test_a_compaction_while_loading_only_delays_it(store: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steersman.storage.cache.cacher.LOAD_PAGE", 5)
    await write_at_random(store, random.Random(2), 200)
    cacher = Cacher(store, "/k/", present=present, body_at=body_at)
    loading = asyncio.create_task(cacher.start())
    for number in range(10):
        await store.create(f"/k/during/{number}", b"1")
        await store.compact(store.revision)
    await asyncio.wait_for(loading, 10)
    stored = [(item.key, present(item.value, item.mod_revision)) for item in (await store.range("/k/")).items]
    assert [(entry.key, entry.body) for entry in cacher.list("/k/")[0]] == stored
    await cacher.stop()


async def test_an_object_costs_little_more_than_its_body() -> None:
    store = MemoryStorage()
    values = [random.Random(number).randbytes(1024) for number in range(3000)]
    for number, value in enumerate(values):
        await store.create(f"{PODS}default/object-{number:07}", value)
    cacher = Cacher(store, PODS, present=present, body_at=body_at)
    tracemalloc.start()
    try:
        await cacher.start()
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used / len(values) < 1024 + 350
    await cacher.stop()


# The property: everything is the log replayed


@pytest.mark.parametrize("seed", range(3))
async def test_cache_and_watchers_equal_the_log_replayed(store: Storage, seed: int) -> None:
    chance = random.Random(seed)
    log = Recorder()
    await store.subscribe("", after_revision=1, deliver=log)
    await write_at_random(store, chance, 30)
    prefix = "/k/"
    window = Window(count_kept=40, count_limit=60)
    cacher = Cacher(store, prefix, present=present, body_at=body_at, new_window=window)
    await cacher.start()
    watches: list[tuple[str, int, Callable[[Entry], bool] | None, Log, object]] = []

    async def watch_now_and_then() -> None:
        for _ in range(30):
            after = chance.choice([cacher.revision, chance.randint(1, cacher.revision), cacher.revision + 5])
            target = chance.choice([prefix, prefix + "7", prefix + "12"])
            accept = chance.choice([None, odd])
            seen = Log()
            watcher = cacher.watch(
                target, after_revision=after, accept=accept, deliver=seen.deliver, closed=seen.closed
            )
            watches.append((target, after, accept, seen, watcher))
            await asyncio.sleep(0)
            if chance.random() < 0.3:
                await caught_up(cacher, watcher)
            check_lists(cacher, log.events)

    writers = [write_at_random(store, random.Random(seed * 50 + writer), 60) for writer in range(5)]
    await asyncio.gather(*writers, watch_now_and_then())
    assert any(after < cacher.oldest_revision for _, after, *_ in watches)
    for target, after, accept, seen, watcher in watches:
        await caught_up(cacher, watcher)
        assert seen.errors == []
        expected = expected_events(log.events, target, after, accept)
        assert seen.events == expected
    check_lists(cacher, log.events)
    await cacher.stop()


def state_at(events: Sequence[Event], prefix: str, revision: int) -> dict[str, bytes]:
    state: dict[str, bytes] = {}
    for event in events:
        if event.revision <= revision and event.key.startswith(prefix):
            if event.current is None:
                del state[event.key]
            else:
                state[event.key] = present(event.current.value, event.revision)
    return state


def check_lists(cacher: Cacher, events: Sequence[Event]) -> None:
    """The present, and every revision in the window, is what replaying the log gives."""
    prefix = cacher.prefix
    for revision in range(cacher.oldest_revision, cacher.revision + 1, 7):
        expected = sorted(state_at(events, prefix, revision).items())
        assert [(entry.key, entry.body) for entry in cacher.list_at(revision, prefix)[0]] == expected
        wanted = [pair for pair in expected if pair[0] >= "/k/15"]
        entries, more = cacher.list_at(revision, prefix, start="/k/15", limit=2)
        assert ([(entry.key, entry.body) for entry in entries], more) == (wanted[:2], len(wanted) > 2)
    expected = sorted(state_at(events, prefix, cacher.revision).items())
    assert [(entry.key, entry.body) for entry in cacher.list(prefix)[0]] == expected
    assert cacher.count(prefix) == len(expected)
    with pytest.raises(FutureRevision):
        cacher.list_at(cacher.revision + 1, prefix)
    with pytest.raises(Compacted):
        cacher.list_at(cacher.oldest_revision - 1, prefix)


def expected_events(
    events: Sequence[Event], target: str, after: int, accept: Callable[[Entry], bool] | None
) -> list[tuple[str, str, bytes, int]]:
    """Return the expected events of a watcher, computed from the log alone."""
    selected = accept or (lambda entry: True)
    expected = []
    for event in events:
        if event.revision <= after or not (event.key == target or (target[-1] == "/" and event.key.startswith(target))):
            continue
        before, now = event.previous, event.current
        was = before is not None and selected(Entry(event.key, present(before.value, before.mod_revision), 0))
        is_now = now is not None and selected(Entry(event.key, present(now.value, event.revision), 0))
        if now is not None and is_now:
            body = present(now.value, event.revision)
            expected.append(("MODIFIED" if was else "ADDED", event.key, body, event.revision))
        elif before is not None and was:
            expected.append(("DELETED", event.key, present(before.value, event.revision), event.revision))
    return expected


async def test_a_value_that_cannot_be_presented_ends_watches_and_the_cache_starts_over(
    store: Storage, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steersman.storage.cache.cacher.RELOAD_DELAY", 0)

    def choosy(value: bytes, revision: int) -> bytes:
        if value == b"bad":
            raise ValueError("cannot be decrypted")
        return present(value, revision)

    cacher = Cacher(store, PODS, present=choosy, body_at=body_at)
    await cacher.start()
    log, other = Log(), Recorder()
    cacher.watch(PODS, after_revision=None, deliver=log.deliver, closed=log.closed)
    await store.subscribe("/", after_revision=1, deliver=other)
    await store.create(PODS + "ns/a", b"bad")
    assert not cacher.ready
    assert [str(error) for error in log.errors] == ["cannot be decrypted"]
    assert len(other.events) == 1
    await store.delete(PODS + "ns/a", expected_revision=2)
    await asyncio.wait_for(cacher.wait_until_ready(), 5)
    await store.create(PODS + "ns/b", b"good")
    assert [entry.body for entry in cacher.list(PODS)[0]] == [b"good@4"]
    await cacher.stop()


async def test_a_value_that_cannot_be_read_at_the_start_is_told_until_it_is_gone(
    store: Storage, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steersman.storage.cache.cacher.RELOAD_DELAY", 0)

    def choosy(value: bytes, revision: int) -> bytes:
        if value == b"bad":
            raise ValueError("cannot be decrypted")
        return present(value, revision)

    await store.create(PODS + "ns/a", b"bad")
    await store.create(PODS + "ns/b", b"good")
    cacher = Cacher(store, PODS, present=choosy, body_at=body_at)
    await cacher.start()
    assert not cacher.ready
    with pytest.raises(StorageUnavailable, match=f"not ready: {PODS}ns/a cannot be read: cannot be decrypted"):
        cacher.get(PODS + "ns/b")
    assert cacher.unreadable == f"{PODS}ns/a cannot be read: cannot be decrypted"
    await store.delete(PODS + "ns/a", expected_revision=2)
    await asyncio.wait_for(cacher.wait_until_ready(), 5)
    assert [entry.body for entry in cacher.list(PODS)[0]] == [b"good@3"]
    assert not cacher.unreadable
    assert not caplog.records
    await cacher.stop()


# Bounds


async def test_other_encodings_are_kept_within_a_bound(store: Storage) -> None:
    cacher = Cacher(store, PODS, present=present, body_at=body_at, representations_limit=1000)
    await cacher.start()
    for number in range(10):
        await store.create(f"{PODS}ns/{number}", b"1")
    entries, _ = cacher.list(PODS)
    for entry in entries:
        cacher.remember(entry, "table", b"x" * 200)
        cacher.remember(entry, "protobuf", b"x" * 100)
    whole = {"table": b"x" * 200, "protobuf": b"x" * 100}
    assert [entry.representations for entry in entries] == [whole] * 3 + [{"protobuf": b"x" * 100}] + [None] * 6
    for _ in range(16):  # it is asked for again and again
        cacher.remember(entries[9], "table", b"x" * 200)
    assert [number for number, entry in enumerate(entries) if entry.representations] == [1, 2, 3, 9]
    await store.update(entries[2].key, b"2", expected_revision=entries[2].revision)
    cacher.remember(entries[3], "table", b"x" * 200)
    assert [number for number, entry in enumerate(entries) if entry.representations] == [1, 3, 9]
    await cacher.stop()


async def test_a_page_that_fails_is_asked_for_again_once_there_was_one(
    store: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cacher_module, "FIRST_PAGE", 4)
    monkeypatch.setattr(cacher_module, "LOAD_PAGE", 4)
    monkeypatch.setattr(cacher_module, "RELOAD_DELAY", 0.001)
    for number in range(10):
        await store.create(f"{PODS}{number}", b"1")
    asked: list[int] = []
    range_of = store.range
    failing = {1, 2}

    async def fails(prefix: str, *, start: str, limit: int, revision: int) -> Range:
        asked.append(limit)
        if len(asked) - 1 in failing:
            raise StorageUnavailable("it does not answer")
        return await range_of(prefix, start=start, limit=limit, revision=revision)

    monkeypatch.setattr(store, "range", fails)
    cacher = Cacher(store, PODS, present=present, body_at=body_at)
    await cacher.start()
    assert len(cacher.list(PODS)[0]) == 10
    assert asked[:4] == [4, 4, 2, 1]
    await cacher.stop()
    asked.clear()
    failing.add(0)
    with pytest.raises(StorageUnavailable):
        await Cacher(store, PODS, present=present, body_at=body_at).start()
    assert len(asked) == 1


async def test_many_watchers_are_told_of_the_end_in_turns_and_nothing_after_it(store: Storage) -> None:
    lost: list[Callable[[Exception], None]] = []

    class Losing:
        """The store, which may lose its subscribers."""

        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

        async def subscribe(self, prefix: str, *, after_revision: int, deliver: Deliver, lost: Lost) -> Subscription:
            remember(lost)
            return await store.subscribe(prefix, after_revision=after_revision, deliver=deliver)

    def remember(callback: Lost) -> None:
        lost.append(callback)

    cacher = Cacher(cast(Storage, Losing()), PODS, present=present, body_at=body_at)
    await cacher.start()
    logs = [Log() for _ in range(500)]

    def closed(log: Log) -> Closed:
        def end(error: Exception) -> None:
            until = perf_counter() + 0.0001
            while perf_counter() < until:
                pass
            log.closed(error)

        return end

    for log in logs:
        cacher.watch(PODS, after_revision=None, deliver=log.deliver, closed=closed(log))
    lost[0](Compacted(1))
    told = sum(bool(log.errors) for log in logs)
    assert 0 < told < 500
    await store.create(f"{PODS}a", b"1")
    while not all(log.errors for log in logs):  # noqa: ASYNC110  # turns of the loop are what is waited for
        await asyncio.sleep(0)
    assert [len(log.errors) for log in logs] == [1] * 500
    assert not any(log.events for log in logs)
    assert cacher.watchers == 0
    await cacher.stop()


async def test_what_storage_forgot_is_not_told_by_the_cache_either(store: Storage, cacher: Cacher) -> None:
    for number in range(5):
        await store.create(f"{cacher.prefix}{number}", b"1")
    revision = store.revision
    assert len(cacher.list_at(revision - 1, cacher.prefix)[0]) == 4
    await store.compact(revision)
    assert len(cacher.list_at(revision, cacher.prefix)[0]) == 5
    with pytest.raises(Compacted) as caught:
        cacher.list_at(revision - 1, cacher.prefix)
    assert caught.value.revision == revision
