"""Delivery of events to watchers, to single ones and to many."""

from __future__ import annotations

import asyncio

import pytest

from steersman.storage.cache.cacher import Cacher
from steersman.storage.cache.entry import Entry, Selectable, WatchEvent
from steersman.storage.cache.watcher import HELD_LIMIT, WatchTooSlow
from steersman.storage.interface import (
    Compacted,
    Storage,
    StorageUnavailable,
)
from tests.storage.cache.shown import PODS, Log, body_at, caught_up, odd, present


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


class TestMuchToTell:
    """Other work gets the event loop during long deliveries, and each watcher still gets the same events."""

    @pytest.fixture(autouse=True)
    def no_time(self, monkeypatch: pytest.MonkeyPatch, store: Storage) -> None:
        """A turn is over whenever somebody looks at the clock."""
        if not store.knows_newest:
            pytest.skip("turns pass between an event and the answer to its write")
        monkeypatch.setattr("steersman.storage.cache.watcher.TURN", -1.0)

    async def told(self, cacher: Cacher) -> int:
        """Run the event loop until all events have been delivered, and return the number of iterations."""
        turns = 0
        while cacher.delivered is None:
            turns += 1
            await asyncio.sleep(0)
        return turns

    async def test_each_turn_tells_some_and_all_are_told_in_order(self, store: Storage, cacher: Cacher) -> None:
        logs = [Log() for _ in range(8)]
        for log in logs[:4]:
            cacher.watch(PODS, after_revision=None, accept=odd, deliver=log.deliver)
        for log in logs[4:]:
            cacher.watch(PODS + "ns/", after_revision=None, accept=odd, deliver=log.deliver)
        written = await asyncio.gather(*(store.create(f"{PODS}ns/{value}", str(value).encode()) for value in range(5)))
        assert sum(len(log.events) for log in logs) < 8
        assert cacher.delivered is None
        assert cacher.get(PODS + "ns/4") is not None
        assert await self.told(cacher) >= 7
        expected = [("ADDED", b"%d@%d" % (value, written[value].mod_revision)) for value in (1, 3)]
        assert [sorted(log.short) for log in logs] == [expected] * 8
        assert cacher.delivered == cacher.revision

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
        assert cacher.delivered is None
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
        cacher.reset(RuntimeError("starting over"))
        assert cacher._watchers.all_told
        assert cacher.delivered is None  # there may be more that nobody here has seen
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
        assert cacher.delivered is None
        await self.told(cacher)
        assert [len(log.events) for log in (own, *others)] == [3] * 5

    async def test_what_waits_to_be_told_is_bounded(
        self, store: Storage, cacher: Cacher, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("steersman.storage.cache.watcher.MOST_UNTOLD", 3)
        logs = [Log() for _ in range(4)]
        for log in logs:
            cacher.watch(PODS, after_revision=None, accept=odd, deliver=log.deliver)
        await asyncio.gather(*(store.create(f"{PODS}ns/{number}", b"1") for number in range(20)))
        assert min(len(log.events) for log in logs) >= 17
        await self.told(cacher)
        assert [len(log.events) for log in logs] == [20] * 4
