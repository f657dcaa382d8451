"""The watch cache against the log: what it shows, and what every watcher has been told, is the log replayed."""

from __future__ import annotations

import asyncio
import random
import tracemalloc
from collections.abc import AsyncIterator, Callable, Sequence
from time import perf_counter
from typing import cast

import pytest

from steersman.storage.cache import cacher as cacher_module
from steersman.storage.cache.cacher import Cacher
from steersman.storage.cache.entry import Change, Entry, Selectable, WatchEvent
from steersman.storage.cache.watcher import HELD_LIMIT, Closed, WatchTooSlow
from steersman.storage.cache.window import EventWindow
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
from tests.storage.storage_model import Clock, Recorder, write_at_random

PODS = "/registry/pods/"


def present(value: bytes, revision: int) -> bytes:
    return b"%s@%d" % (value, revision)


def body_at(body: bytes, revision: int) -> bytes:
    return present(body.rpartition(b"@")[0], revision)


class Log:
    """A watcher that keeps what it is told, as (type, key, body, revision)."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, bytes, int]] = []
        self.errors: list[Exception] = []

    def deliver(self, event: WatchEvent) -> None:
        self.events.append((event.type, event.entry.key, event.entry.body, event.revision))
        assert event.entry.revision == event.revision

    def closed(self, error: Exception) -> None:
        self.errors.append(error)

    @property
    def short(self) -> list[tuple[str, bytes]]:
        return [(type_, body) for type_, _, body, _ in self.events]


@pytest.fixture
async def cacher(store: Storage) -> AsyncIterator[Cacher]:
    cacher = Cacher(store, PODS, present=present, body_at=body_at)
    await cacher.start()
    yield cacher
    await cacher.stop()


async def caught_up(cacher: Cacher, *watchers) -> None:
    """Returns once the watchers' replays are over."""
    for watcher in watchers:
        if watcher.replay is not None:
            await asyncio.gather(watcher.replay, return_exceptions=True)


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

    def names(prefix: str, **options) -> tuple[list[str], bool]:
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
    monkeypatch.setattr("steersman.storage.cache.cacher._LOAD_PAGE", 5)
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


class Window:
    """Makes event windows with small limits."""

    def __init__(self, **limits: int) -> None:
        self._limits = limits

    def __call__(self, start: int) -> EventWindow:
        return EventWindow(start, fresh_seconds=0, **self._limits)


def odd(entry: Entry) -> bool:
    """A selection that objects enter and leave: those whose value ends in an odd digit."""
    return entry.body.partition(b"@")[0][-1] % 2 == 1


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
    """What a watcher is to see, told from the log alone."""
    selected = accept or (lambda entry: True)
    expected = []
    for event in events:
        if event.revision <= after or not (event.key == target or (target[-1] == "/" and event.key.startswith(target))):
            continue
        before, now = event.previous, event.current
        was = before is not None and selected(Entry(event.key, present(before.value, before.mod_revision), 0))
        is_now = now is not None and selected(Entry(event.key, present(now.value, event.revision), 0))
        if is_now:
            body = present(now.value, event.revision)
            expected.append(("MODIFIED" if was else "ADDED", event.key, body, event.revision))
        elif was:
            expected.append(("DELETED", event.key, present(before.value, event.revision), event.revision))
    return expected


# Watching


async def test_a_deleted_object_is_shown_at_the_revision_of_its_delete(store: Storage, cacher: Cacher) -> None:
    log = Log()
    cacher.watch(PODS, after_revision=None, deliver=log.deliver)
    await store.create(PODS + "ns/a", b"1")
    await store.update(PODS + "ns/a", b"2", expected_revision=2)
    await store.delete(PODS + "ns/a", expected_revision=3)
    assert log.short == [("ADDED", b"1@2"), ("MODIFIED", b"2@3"), ("DELETED", b"2@4")]


async def test_an_object_leaving_the_selection_is_deleted_with_its_former_content(
    store: Storage, cacher: Cacher
) -> None:
    log = Log()
    cacher.watch(PODS, after_revision=None, accept=odd, deliver=log.deliver)
    await store.create(PODS + "ns/a", b"2")
    for revision, value in enumerate((b"1", b"3", b"4", b"6"), start=2):
        await store.update(PODS + "ns/a", value, expected_revision=revision)
    await store.delete(PODS + "ns/a", expected_revision=6)
    assert log.short == [("ADDED", b"1@3"), ("MODIFIED", b"3@4"), ("DELETED", b"3@5")]


async def test_what_selectors_look_at_is_made_once_and_follows_a_deleted_object(store: Storage, cacher: Cacher) -> None:
    computed = []

    def accept(entry: Entry) -> bool:
        if entry.selectable is None:
            computed.append(entry.body)
            entry.selectable = Selectable({"app": "x"})
        return True

    looked_at = []
    for _ in range(3):
        cacher.watch(
            PODS, after_revision=None, accept=accept, deliver=lambda event: looked_at.append(event.entry.selectable)
        )
    await store.create(PODS + "ns/a", b"1")
    await store.delete(PODS + "ns/a", expected_revision=2)
    assert computed == [b"1@2"]
    assert looked_at == [Selectable({"app": "x"})] * 6


async def test_all_watchers_of_a_change_share_one_event(store: Storage, cacher: Cacher) -> None:
    events: list[WatchEvent] = []
    for target in (PODS, PODS + "ns/", PODS + "ns/a"):
        cacher.watch(target, after_revision=None, deliver=events.append)
        cacher.watch(target, after_revision=None, accept=lambda entry: True, deliver=events.append)
    await store.create(PODS + "ns/a", b"1")
    assert len(events) == 6
    assert all(event is events[0] for event in events)


async def test_watchers_are_told_only_of_what_they_watch(store: Storage, cacher: Cacher) -> None:
    logs = {target: Log() for target in (PODS, PODS + "ns/", PODS + "ns/a", PODS + "n/", PODS + "cluster")}
    for target, log in logs.items():
        cacher.watch(target, after_revision=None, deliver=log.deliver)
    for name in ("ns/a", "ns/ab", "nsx/a", "cluster"):
        await store.create(PODS + name, b"1")
    seen = {target: [key.removeprefix(PODS) for _, key, _, _ in log.events] for target, log in logs.items()}
    assert seen == {
        PODS: ["ns/a", "ns/ab", "nsx/a", "cluster"],
        PODS + "ns/": ["ns/a", "ns/ab"],
        PODS + "ns/a": ["ns/a"],
        PODS + "n/": [],
        PODS + "cluster": ["cluster"],
    }


@pytest.mark.slow
async def test_list_then_watch_in_one_turn_misses_nothing(store: Storage, cacher: Cacher) -> None:
    stop = asyncio.Event()

    async def write() -> None:
        for number in range(100):
            await store.create(f"{PODS}ns/{number}", b"1")
            await asyncio.sleep(0)
        stop.set()

    async def watch() -> None:
        while not stop.is_set():
            entries, _ = cacher.list(PODS)
            log = Log()
            watches.append((len(entries), log))
            cacher.watch(PODS, after_revision=cacher.revision, deliver=log.deliver)
            await asyncio.sleep(0)

    watches: list[tuple[int, Log]] = []
    await asyncio.gather(write(), watch())
    assert len(watches) > 10
    assert all(listed + len(log.events) == 100 for listed, log in watches)


async def test_nothing_is_delivered_before_watch_returns(store: Storage, cacher: Cacher) -> None:
    await store.create(PODS + "ns/a", b"1")
    log = Log()
    watcher = cacher.watch(PODS, after_revision=1, deliver=log.deliver)
    assert log.events == []
    await caught_up(cacher, watcher)
    assert log.short == [("ADDED", b"1@2")]


async def test_a_cancelled_watch_is_told_nothing_more(store: Storage, cacher: Cacher) -> None:
    await store.create(PODS + "ns/a", b"1")
    log, other = Log(), Log()
    live = cacher.watch(PODS, after_revision=None, deliver=log.deliver, closed=log.closed)
    replayed = cacher.watch(PODS, after_revision=1, deliver=log.deliver, closed=log.closed)
    ahead = cacher.watch(PODS, after_revision=2 + 1, deliver=log.deliver, closed=log.closed)
    cacher.watch(PODS, after_revision=None, deliver=other.deliver)
    for watcher in (live, replayed, ahead):
        watcher.cancel()
        watcher.cancel()
    await store.create(PODS + "ns/b", b"1")
    await store.create(PODS + "ns/c", b"1")
    assert (log.events, log.errors) == ([], [])
    assert len(other.events) == 2
    assert cacher.watchers == 1


async def test_watchers_may_end_each_other_while_an_event_is_delivered(store: Storage, cacher: Cacher) -> None:
    seen: list[str] = []

    def first(event: WatchEvent) -> None:
        seen.append("first")
        second_watch.cancel()
        cacher.watch(PODS, after_revision=None, deliver=lambda event: seen.append("new"))

    cacher.watch(PODS, after_revision=None, deliver=first)
    second_watch = cacher.watch(PODS, after_revision=None, deliver=lambda event: seen.append("second"))
    await store.create(PODS + "ns/a", b"1")
    assert seen == ["first"]


async def test_a_failing_watcher_is_ended_and_harms_nobody_else(
    store: Storage, cacher: Cacher, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(event: WatchEvent) -> None:
        raise RuntimeError("no")

    failed, good = Log(), Log()
    await store.create(PODS + "ns/a", b"1")
    live = cacher.watch(PODS, after_revision=None, deliver=fail, closed=failed.closed)
    replayed = cacher.watch(PODS, after_revision=1, deliver=fail, closed=failed.closed)
    cacher.watch(PODS, after_revision=None, deliver=good.deliver)
    await caught_up(cacher, replayed)
    await store.create(PODS + "ns/b", b"1")
    await store.create(PODS + "ns/c", b"1")
    assert [str(error) for error in failed.errors] == ["no", "no"]
    assert not live.active
    assert len(good.events) == 2
    assert len(caplog.records) == 2


async def test_a_watch_from_before_what_is_kept_ends_with_compacted(store: Storage) -> None:
    for number in range(10):
        await store.create(f"{PODS}ns/{number}", b"1")
    await store.compact(5)
    cacher = Cacher(store, PODS, present=present, body_at=body_at)
    await cacher.start()
    old, kept = Log(), Log()
    watchers = [
        cacher.watch(PODS, after_revision=4, deliver=old.deliver, closed=old.closed),
        cacher.watch(PODS, after_revision=5, deliver=kept.deliver, closed=kept.closed),
    ]
    await caught_up(cacher, *watchers)
    assert [type(error) for error in old.errors] == [Compacted]
    assert old.events == []
    assert [revision for *_, revision in kept.events] == [6, 7, 8, 9, 10, 11]
    await cacher.stop()
    assert [type(error) for error in kept.errors] == [StorageUnavailable]


async def test_a_replay_that_falls_too_far_behind_is_ended(store: Storage, cacher: Cacher) -> None:
    await store.create(PODS + "ns/a", b"1")
    log = Log()
    watcher = cacher.watch(PODS, after_revision=1, deliver=log.deliver, closed=log.closed)
    event = WatchEvent("ADDED", Entry(PODS + "ns/b", b"", 3), 3)
    for _ in range(HELD_LIMIT + 1):
        watcher.deliver(event)
    assert [type(error) for error in log.errors] == [WatchTooSlow]
    await caught_up(cacher, watcher)
    assert log.events == []


async def test_a_target_elsewhere_is_refused(cacher: Cacher) -> None:
    with pytest.raises(ValueError, match="not under"):
        cacher.watch("/registry/podsx/", after_revision=None, deliver=lambda event: None)


# Failure of the cache itself


async def test_a_value_that_cannot_be_presented_ends_watches_and_the_cache_starts_over(
    store: Storage, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steersman.storage.cache.cacher._RELOAD_DELAY", 0)

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
    monkeypatch.setattr("steersman.storage.cache.cacher._RELOAD_DELAY", 0)

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


async def test_window_is_bounded_by_count_age_and_bytes() -> None:
    clock = Clock()

    def add(window: EventWindow, revision: int, size: int = 10) -> None:
        before = Entry("/a", b"x" * size, revision - 1)
        window.add(Change(revision, "/a", before, Entry("/a", b"", revision), clock.now))

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
            window.add(Change(revision, "/a", Entry("/a", b"x" * size, 0), None, 0.0))
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
    for number in range(20, 1200):
        await store.create(f"{PODS}{number:04}", b"1")
    await cacher.recall(revision)
    assert len(cacher.list_at(revision, PODS)[0]) == 20
    assert len(cacher.list(PODS)[0]) == 1200
    with pytest.raises(FutureRevision):
        await cacher.recall(cacher.revision + 1)


async def test_a_page_that_fails_is_asked_for_again_once_there_was_one(
    store: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cacher_module, "_FIRST_PAGE", 4)
    monkeypatch.setattr(cacher_module, "_LOAD_PAGE", 4)
    monkeypatch.setattr(cacher_module, "_RELOAD_DELAY", 0.001)
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


# Many watchers


class TestMuchToTell:
    """Where telling takes long, others have the loop in between; each watcher is told the same as ever."""

    @pytest.fixture(autouse=True)
    def no_time(self, monkeypatch: pytest.MonkeyPatch, store: Storage) -> None:
        """A turn is over whenever somebody looks at the clock."""
        if not store.knows_newest:
            pytest.skip("turns pass between an event and the answer to its write")
        monkeypatch.setattr("steersman.storage.cache.watcher._TURN", -1.0)

    async def told(self, cacher: Cacher) -> int:
        """Lets the loop turn until everybody has been told, and returns how often."""
        turns = 0
        while cacher.told is None:
            turns += 1
            await asyncio.sleep(0)
        return turns

    async def test_each_turn_tells_some_and_all_are_told_in_order(self, store: Storage, cacher: Cacher) -> None:
        logs = [Log() for _ in range(8)]
        for log in logs[:4]:
            cacher.watch(PODS, after_revision=None, accept=odd, deliver=log.deliver)
        for log in logs[4:]:
            cacher.watch(PODS + "ns/", after_revision=None, accept=odd, deliver=log.deliver)
        written = await asyncio.gather(
            *(store.create(f"{PODS}ns/{value}", str(value).encode()) for value in range(5))
        )  # fmt: skip
        assert sum(len(log.events) for log in logs) < 8
        assert cacher.told is None
        assert cacher.get(PODS + "ns/4") is not None
        assert await self.told(cacher) >= 7
        expected = [("ADDED", b"%d@%d" % (value, written[value].mod_revision)) for value in (1, 3)]
        assert [sorted(log.short) for log in logs] == [expected] * 8
        assert cacher.told == cacher.revision

    async def test_deliveries_alone_are_counted_in_sixteens(self, store: Storage, cacher: Cacher) -> None:
        logs = [Log() for _ in range(40)]
        for log in logs:
            cacher.watch(PODS, after_revision=None, deliver=log.deliver)
        await store.create(PODS + "ns/a", b"1")
        assert len([log for log in logs if log.events]) in (16, 32)
        await self.told(cacher)
        assert [log.short for log in logs] == [[("ADDED", b"1@2")]] * 40

    async def test_who_comes_meanwhile_misses_nothing_and_hears_nothing_twice(
        self, store: Storage, cacher: Cacher
    ) -> None:
        for _ in range(10):
            cacher.watch(PODS, after_revision=None, accept=odd, deliver=Log().deliver)
        for value in range(3):
            await store.create(f"{PODS}ns/{value}", b"1")
        assert cacher.told is None
        now, from_first, from_next = Log(), Log(), Log()
        cacher.watch(PODS, after_revision=None, accept=odd, deliver=now.deliver)
        replayed = cacher.watch(PODS, after_revision=2, accept=odd, deliver=from_first.deliver)
        cacher.watch(PODS, after_revision=5, accept=odd, deliver=from_next.deliver)
        await store.create(PODS + "ns/3", b"3")
        await store.create(PODS + "ns/4", b"5")
        await caught_up(cacher, replayed)
        await self.told(cacher)
        assert [body for _, body in now.short] == [b"3@5", b"5@6"]
        assert [body for _, body in from_first.short] == [b"1@3", b"1@4", b"3@5", b"5@6"]
        assert [body for _, body in from_next.short] == [b"5@6"]

    async def test_who_has_gone_is_told_nothing_more(self, store: Storage, cacher: Cacher) -> None:
        logs = [Log() for _ in range(4)]
        watchers = [cacher.watch(PODS, after_revision=None, accept=odd, deliver=log.deliver) for log in logs]
        await store.create(PODS + "ns/a", b"1")
        assert not logs[3].events
        watchers[3].cancel()
        await self.told(cacher)
        assert [len(log.events) for log in logs] == [1, 1, 1, 0]

    async def test_nobody_is_told_of_what_was_before_the_cache_started_over(
        self, store: Storage, cacher: Cacher
    ) -> None:
        logs = [Log() for _ in range(4)]
        for log in logs:
            cacher.watch(PODS, after_revision=None, accept=odd, deliver=log.deliver, closed=log.closed)
        await store.create(PODS + "ns/a", b"1")
        cacher._reset(RuntimeError("starting over"))
        assert cacher._watchers.all_told
        assert cacher.told is None  # there may be more that nobody here has seen
        assert sum(len(log.events) for log in logs) < 4
        assert all(len(log.errors) == 1 for log in logs)

    async def test_the_server_s_own_watches_are_told_at_once(self, store: Storage, cacher: Cacher) -> None:
        own = Log()
        others = [Log() for _ in range(4)]
        for log in others:
            cacher.watch(PODS, after_revision=None, accept=odd, deliver=log.deliver)
        cacher.watch(PODS, after_revision=None, deliver=own.deliver, prompt=True)
        for value in range(3):
            await store.create(f"{PODS}ns/{value}", b"1")
            assert len(own.events) == value + 1
        assert cacher.told is None
        await self.told(cacher)
        assert [len(log.events) for log in (own, *others)] == [3] * 5

    async def test_what_waits_to_be_told_is_bounded(
        self, store: Storage, cacher: Cacher, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("steersman.storage.cache.watcher._UNTOLD", 3)
        logs = [Log() for _ in range(4)]
        for log in logs:
            cacher.watch(PODS, after_revision=None, accept=odd, deliver=log.deliver)
        await asyncio.gather(*(store.create(f"{PODS}ns/{number}", b"1") for number in range(20)))
        assert min(len(log.events) for log in logs) >= 17
        await self.told(cacher)
        assert [len(log.events) for log in logs] == [20] * 4
