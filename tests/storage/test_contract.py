"""The storage contract, held to by every implementation."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from steersman.storage.interface import (
    Compacted,
    Conflict,
    Event,
    FutureRevision,
    KeyExists,
    KeyValue,
    Storage,
    StorageUnavailable,
)
from tests.storage.storage_model import Clock, Recorder, check_every_revision, write_at_random

PODS = "/registry/pods/"


# One key


async def test_a_fresh_store_is_empty_at_revision_1(store: Storage) -> None:
    assert store.revision == 1
    assert await store.get("/a") is None
    found = await store.range("")
    assert (list(found.items), found.revision, found.more) == ([], 1, False)
    assert (await store.range("", revision=1)).revision == 1


async def test_the_current_revision_is_that_of_the_last_write(store: Storage) -> None:
    assert await store.current_revision() == 1
    written = await store.create("/a", b"1")
    assert await store.current_revision() == written.mod_revision
    assert store.revision == written.mod_revision or not store.knows_newest


async def test_create_takes_the_next_revision_and_is_read_back(store: Storage) -> None:
    created = await store.create("/a", b"\x00one\xff")
    assert created == KeyValue("/a", b"\x00one\xff", 2, 2)
    assert store.revision == 2
    assert await store.get("/a") == created


async def test_create_of_a_taken_key_is_refused_with_what_is_there(store: Storage) -> None:
    first = await store.create("/a", b"1")
    with pytest.raises(KeyExists) as refused:
        await store.create("/a", b"2")
    assert refused.value.current == first
    assert store.revision == 2


async def test_update_keeps_the_create_revision(store: Storage) -> None:
    first = await store.create("/a", b"1")
    second = await store.update("/a", b"2", expected_revision=first.mod_revision)
    assert second == KeyValue("/a", b"2", 2, 3)
    assert await store.get("/a") == second


async def test_stale_update_is_refused_with_what_is_there(store: Storage) -> None:
    first = await store.create("/a", b"1")
    second = await store.update("/a", b"2", expected_revision=first.mod_revision)
    with pytest.raises(Conflict) as refused:
        await store.update("/a", b"3", expected_revision=first.mod_revision)
    assert refused.value.current == second
    assert await store.get("/a") == second


@pytest.mark.parametrize("expected", [0, 1, 2, 99])
async def test_update_and_delete_of_an_absent_key_conflict_with_nothing(store: Storage, expected: int) -> None:
    with pytest.raises(Conflict) as refused:
        await store.update("/a", b"1", expected_revision=expected)
    assert refused.value.current is None
    with pytest.raises(Conflict) as refused:
        await store.delete("/a", expected_revision=expected)
    assert refused.value.current is None
    assert store.revision == 1


async def test_delete_reports_what_was_deleted(store: Storage) -> None:
    first = await store.create("/a", b"1")
    event = await store.delete("/a", expected_revision=first.mod_revision)
    assert event == Event(3, "/a", None, first)
    assert await store.get("/a") is None


async def test_stale_delete_is_refused(store: Storage) -> None:
    first = await store.create("/a", b"1")
    second = await store.update("/a", b"2", expected_revision=first.mod_revision)
    with pytest.raises(Conflict) as refused:
        await store.delete("/a", expected_revision=first.mod_revision)
    assert refused.value.current == second


async def test_a_deleted_key_can_be_created_anew(store: Storage) -> None:
    first = await store.create("/a", b"1")
    await store.delete("/a", expected_revision=first.mod_revision)
    assert await store.create("/a", b"2") == KeyValue("/a", b"2", 4, 4)


async def test_a_key_is_read_at_every_revision_kept(store: Storage) -> None:
    first = await store.create("/a", b"1")
    other = await store.create("/b", b"x")
    second = await store.update("/a", b"2", expected_revision=first.mod_revision)
    await store.delete("/a", expected_revision=second.mod_revision)
    third = await store.create("/a", b"3")
    found = [await store.get("/a", revision=revision) for revision in range(1, 7)]
    assert found == [None, first, first, second, None, third]
    assert await store.get("/b", revision=6) == other


async def test_a_future_revision_cannot_be_read(store: Storage) -> None:
    for read in (store.get("/a", revision=2), store.range("/", revision=2)):
        with pytest.raises(FutureRevision) as refused:
            await read
        assert (refused.value.requested, refused.value.current) == (2, 1)


async def test_large_values_are_kept_whole(store: Storage) -> None:
    value = random.Random(1).randbytes(2 << 20)
    first = await store.create("/a", value)
    for key in ("/b", "/c", "/d"):
        await store.create(key, value)
    second = await store.update("/a", value[::-1], expected_revision=first.mod_revision)
    assert second.value == value[::-1]
    recorder = Recorder()
    await store.subscribe("/", after_revision=1, deliver=recorder)
    assert recorder.events[-1].previous == first
    assert [item.value for item in (await store.range("/", revision=5)).items] == [value] * 4


@pytest.mark.parametrize("key", ["", "a\0b", "\ud800"])
async def test_impossible_keys_are_refused(store: Storage, key: str) -> None:
    with pytest.raises(ValueError, match=r"key|surrogates"):
        await store.create(key, b"1")
    assert store.revision == 1


async def test_an_empty_value_is_refused(store: Storage) -> None:
    with pytest.raises(ValueError, match="empty"):
        await store.create("/a", b"")


# Ranges


async def test_a_prefix_covers_its_keys_and_no_others(store: Storage) -> None:
    keys = [
        "/registry/pod",
        "/registry/pods",
        "/registry/pods/",
        "/registry/pods/a",
        "/registry/pods/a/b",
        "/registry/pods/\u00ff",
        "/registry/pods/\uffff",
        "/registry/pods/\U0010ffff",
        "/registry/pods/\U0010ffff\U0010ffff",
        "/registry/pods0",
        "/registry/podsx/a",
    ]
    for key in random.Random(3).sample(keys, len(keys)):
        await store.create(key, key.encode())
    found = await store.range(PODS)
    assert [item.key for item in found.items] == [key for key in keys if key.startswith(PODS)]
    assert [item.key for item in (await store.range("")).items] == keys
    assert [item.key for item in (await store.range(PODS + "\U0010ffff")).items] == keys[-4:-2]


async def test_a_prefix_ending_before_the_surrogates_has_an_end(store: Storage) -> None:
    for key in ("a\ud7ff", "a\ud7ffb", "a\ue000"):
        await store.create(key, b"1")
    assert [item.key for item in (await store.range("a\ud7ff")).items] == ["a\ud7ff", "a\ud7ffb"]


async def test_pages_cover_a_range_at_one_revision_while_it_changes(store: Storage) -> None:
    revisions = {}
    for number in range(300):
        key = f"{PODS}ns/{number:04}"
        revisions[key] = (await store.create(key, b"1")).mod_revision
    at = store.revision
    keys: list[str] = []
    start, more = "", True
    while more:
        page = await store.range(PODS, start=start, limit=70, revision=at, count=True)
        assert page.revision == at
        assert page.count == 300 - len(keys)
        keys += [item.key for item in page.items]
        more = page.more
        start = keys[-1] + "\0"
        # The next keys are deleted, changed and added behind the reader's back.
        await store.delete(keys[0], expected_revision=revisions[keys[0]])
        await store.create(f"{PODS}ns/{len(keys):04}-new", b"2")
        revisions[keys[0]] = (await store.create(keys[0], b"3")).mod_revision
    assert keys == [f"{PODS}ns/{number:04}" for number in range(300)]


async def test_more_is_told_exactly(store: Storage) -> None:
    for number in range(5):
        await store.create(f"/{number}", b"1")
    for limit, more in ((4, True), (5, False), (6, False), (0, False)):
        page = await store.range("/", limit=limit)
        assert (len(page.items), page.more) == (min(limit or 5, 5), more)
    await store.delete("/4", expected_revision=6)
    assert not (await store.range("/", limit=4)).more
    assert (await store.range("/", limit=4, revision=6)).more


async def test_start_is_inclusive_and_never_before_the_prefix(store: Storage) -> None:
    for key in ("/a", "/b/1", "/b/2", "/c"):
        await store.create(key, b"1")
    assert [item.key for item in (await store.range("/b/", start="/b/2")).items] == ["/b/2"]
    assert [item.key for item in (await store.range("/b/", start="/a")).items] == ["/b/1", "/b/2"]
    assert [item.key for item in (await store.range("/b/", start="/c")).items] == []


# Concurrency


@pytest.mark.parametrize("writers", [2, 10, 50])
async def test_one_of_many_concurrent_updates_wins_each_round(store: Storage, writers: int) -> None:
    current = await store.create("/a", b"start")
    for round_number in range(5):
        results = await asyncio.gather(
            *(
                store.update("/a", f"{round_number}-{writer}".encode(), expected_revision=current.mod_revision)
                for writer in range(writers)
            ),
            return_exceptions=True,
        )
        winners = [result for result in results if isinstance(result, KeyValue)]
        assert len(winners) == 1
        assert all(isinstance(result, KeyValue | Conflict) for result in results)
        assert all(result.current == winners[0] for result in results if isinstance(result, Conflict))
        current = winners[0]
    assert store.revision == 7
    assert await store.get("/a") == current


@pytest.mark.parametrize("writers", [2, 50])
async def test_concurrent_increments_lose_nothing(store: Storage, writers: int) -> None:
    await store.create("/counter", b"0")

    async def increment() -> None:
        while True:
            current = await store.get("/counter")
            assert current is not None
            try:
                await store.update(
                    "/counter", str(int(current.value) + 1).encode(), expected_revision=current.mod_revision
                )
            except Conflict:
                continue
            return

    await asyncio.gather(*(increment() for _ in range(writers)))
    counter = await store.get("/counter")
    assert counter is not None
    assert counter.value == str(writers).encode()


async def test_concurrent_creates_of_one_key_have_one_winner(store: Storage) -> None:
    results = await asyncio.gather(*(store.create("/a", b"1") for _ in range(20)), return_exceptions=True)
    assert sum(isinstance(result, KeyValue) for result in results) == 1
    assert sum(isinstance(result, KeyExists) for result in results) == 19


async def test_writes_of_one_turn_get_revisions_without_gaps(store: Storage) -> None:
    results = await asyncio.gather(*(store.create(f"/{number}", b"1") for number in range(700)))
    assert sorted(result.mod_revision for result in results) == list(range(2, 702))
    assert len((await store.range("/")).items) == 700


# Subscriptions


async def test_subscribers_are_told_before_the_write_is_acknowledged(store: Storage) -> None:
    recorder = Recorder()
    await store.subscribe(PODS, after_revision=1, deliver=recorder)
    first = await store.create(PODS + "a", b"1")
    assert recorder.events == [Event(2, first.key, first, None)]
    second = await store.update(PODS + "a", b"2", expected_revision=2)
    assert recorder.events[1:] == [Event(3, first.key, second, first)]
    event = await store.delete(PODS + "a", expected_revision=3)
    assert recorder.events[2:] == [event] == [Event(4, first.key, None, second)]


async def test_subscribers_are_told_of_their_prefix_only(store: Storage) -> None:
    prefixes = ("", PODS, PODS + "ns/", PODS + "ns/a", PODS + "ns/a/", PODS + "n", "/registry/podsx/")
    recorders = {prefix: Recorder() for prefix in prefixes}
    for prefix, recorder in recorders.items():
        await store.subscribe(prefix, after_revision=1, deliver=recorder)
    keys = [
        PODS + "ns/a",
        PODS + "ns/ab",
        PODS + "nt/a",
        "/registry/podsx/a",
        PODS + "ns/a/b",
        "plain",
        "/registry/pods0",
        PODS + "ns0",
        PODS + "ns/b",
        PODS + "ns/a0",
    ]
    await asyncio.gather(*(store.create(key, b"1") for key in keys))
    for prefix, recorder in recorders.items():
        assert sorted(event.key for event in recorder.events) == sorted(key for key in keys if key.startswith(prefix))
        assert recorder.revisions == sorted(recorder.revisions)
        replayed = Recorder()
        await store.subscribe(prefix, after_revision=1, deliver=replayed)
        assert replayed.events == recorder.events


async def test_a_cancelled_subscription_is_told_nothing_more(store: Storage) -> None:
    recorder = Recorder()
    subscription = await store.subscribe("/", after_revision=1, deliver=recorder)
    await store.create("/a", b"1")
    subscription.cancel()
    subscription.cancel()
    await store.create("/b", b"1")
    assert recorder.revisions == [2]


async def test_a_failing_subscriber_harms_nobody_else(store: Storage, caplog: pytest.LogCaptureFixture) -> None:
    def fail(events: Sequence[Event]) -> None:
        raise RuntimeError("no")

    recorder = Recorder()
    await store.subscribe("/", after_revision=1, deliver=fail)
    await store.subscribe("/", after_revision=1, deliver=recorder)
    await store.create("/a", b"1")
    await store.create("/b", b"1")
    assert recorder.revisions == [2, 3]
    assert len(caplog.records) == 1


async def test_a_watch_can_start_after_any_revision_kept(store: Storage) -> None:
    whole = Recorder()
    await store.subscribe("", after_revision=1, deliver=whole)
    await write_at_random(store, random.Random(7), 60)
    for after in range(1, store.revision + 1):
        recorder = Recorder()
        (await store.subscribe("", after_revision=after, deliver=recorder)).cancel()
        assert recorder.events == whole.events[after - 1 :]


async def test_a_watch_from_the_future_is_refused(store: Storage) -> None:
    with pytest.raises(FutureRevision):
        await store.subscribe("/", after_revision=2, deliver=Recorder())


@pytest.mark.parametrize("seed", range(4))
async def test_no_gap_and_no_repetition_under_concurrent_writes(store: Storage, seed: int) -> None:
    chance = random.Random(seed)
    whole = Recorder()
    await store.subscribe("", after_revision=1, deliver=whole)
    started: list[tuple[int, str, Recorder]] = []

    async def watch_now_and_then() -> None:
        for _ in range(15):
            after = chance.randint(1, store.revision)
            prefix = chance.choice(["", "/k/", "/k/1"])
            recorder = Recorder()
            started.append((after, prefix, recorder))
            await store.subscribe(prefix, after_revision=after, deliver=recorder)

    await asyncio.gather(
        *(write_at_random(store, random.Random(seed * 100 + writer), 40) for writer in range(6)), watch_now_and_then()
    )
    assert whole.revisions == list(range(2, store.revision + 1))
    for after, prefix, recorder in started:
        expected = [event for event in whole.events if event.revision > after and event.key.startswith(prefix)]
        assert recorder.events == expected
    await check_every_revision(store, whole.events)


async def test_a_cancelled_writer_leaves_a_write_everybody_is_told_of(store: Storage) -> None:
    recorder = Recorder()
    await store.subscribe("/", after_revision=1, deliver=recorder)
    task = asyncio.create_task(store.create("/a", b"1"))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await store.create("/b", b"1")
    found = await store.get("/a")
    told = sorted(event.key for event in recorder.events)  # where others write as well, in either order
    assert told in (["/a", "/b"], ["/b"])
    assert found is None or "/a" in told
    assert recorder.revisions == list(range(2, store.revision + 1))


async def test_waiting_for_a_revision_ends_when_it_comes(store: Storage) -> None:
    await asyncio.wait_for(store.wait_until(1), 5)
    recorder = Recorder()
    await store.subscribe("/", after_revision=1, deliver=recorder)
    waiting = asyncio.create_task(store.wait_until(3))
    await store.create("/a", b"1")
    await asyncio.sleep(0)
    assert not waiting.done()
    await store.create("/b", b"1")
    await asyncio.wait_for(waiting, 5)
    assert recorder.revisions == [2, 3]


# Compaction


async def test_compaction_forgets_the_past_and_keeps_the_rest(store: Storage) -> None:
    whole = Recorder()
    await store.subscribe("", after_revision=1, deliver=whole)
    await write_at_random(store, random.Random(11), 120)
    assert store.compact_revision < 2
    for at in (5, 30, 31, store.revision):
        await store.compact(at)
        assert store.compact_revision == at
        for old in (1, at - 1):
            for read in (store.get("/k/1", revision=old), store.range("/", revision=old)):
                with pytest.raises(Compacted) as refused:
                    await read
                assert refused.value.revision == at
            with pytest.raises(Compacted):
                await store.subscribe("/", after_revision=old, deliver=Recorder())
        recorder = Recorder()
        (await store.subscribe("", after_revision=at, deliver=recorder)).cancel()
        assert recorder.events == [event for event in whole.events if event.revision > at]
        await check_every_revision(store, whole.events, oldest=at)


async def test_compaction_goes_forward_only_and_not_into_the_future(store: Storage) -> None:
    for number in range(5):
        await store.create(f"/{number}", b"1")
    await store.compact(4)
    await store.compact(4)
    with pytest.raises(Compacted):
        await store.compact(3)
    with pytest.raises(FutureRevision):
        await store.compact(7)
    assert len((await store.range("/")).items) == 5


async def test_a_revision_is_not_used_twice_though_the_newest_write_is_compacted(
    open_store: Callable[[], Awaitable[Storage]],
) -> None:
    store = await open_store()
    await store.create("/a", b"1")
    await store.delete("/a", expected_revision=2)
    await store.compact(3)
    if hasattr(store, "_path"):
        await store.close()
        store = await open_store()
    assert store.revision == 3
    assert (await store.create("/a", b"1")).mod_revision == 4
    await store.close()


async def test_compaction_while_writing_loses_nothing(store: Storage) -> None:
    whole = Recorder()
    await store.subscribe("", after_revision=1, deliver=whole)

    async def compact_often() -> None:
        for _ in range(20):
            await store.compact(max(store.revision - 10, 1))
            await asyncio.sleep(0)

    writers = [write_at_random(store, random.Random(writer), 60) for writer in range(5)]
    await asyncio.gather(*writers, compact_often())
    assert whole.revisions == list(range(2, store.revision + 1))
    await store.compact(store.revision - 5)
    await check_every_revision(store, whole.events, oldest=store.revision - 5)


# Leases


async def test_a_key_vanishes_when_its_lease_runs_out(leasing_store: Any, clock: Clock) -> None:
    recorder = Recorder()
    await leasing_store.subscribe("/", after_revision=1, deliver=recorder)
    leased = await leasing_store.create("/a", b"1", ttl=10)
    lasting = await leasing_store.create("/b", b"1")
    clock.now += 9
    await leasing_store.expire_leases()
    assert await leasing_store.get("/a") == leased
    clock.now += 2
    await leasing_store.expire_leases()
    assert await leasing_store.get("/a") is None
    assert await leasing_store.get("/b") == lasting
    assert recorder.events[2:] == [Event(4, "/a", None, leased)]


async def test_an_update_renews_or_takes_away_the_lease(leasing_store: Any, clock: Clock) -> None:
    for key in ("/renewed", "/freed", "/gone"):
        await leasing_store.create(key, b"1", ttl=10)
    await leasing_store.update("/renewed", b"2", expected_revision=2, ttl=100)
    await leasing_store.update("/freed", b"2", expected_revision=3)
    await leasing_store.delete("/gone", expected_revision=4)
    await leasing_store.create("/gone", b"2")
    clock.now += 50
    await leasing_store.expire_leases()
    assert [item.key for item in (await leasing_store.range("/")).items] == ["/freed", "/gone", "/renewed"]
    clock.now += 60
    await leasing_store.expire_leases()
    assert [item.key for item in (await leasing_store.range("/")).items] == ["/freed", "/gone"]


async def test_many_leases_run_out_at_once(leasing_store: Any, clock: Clock) -> None:
    await asyncio.gather(*(leasing_store.create(f"/{number}", b"1", ttl=1) for number in range(1200)))
    clock.now += 5
    await leasing_store.expire_leases()
    assert not (await leasing_store.range("/")).items
    assert leasing_store.revision == 1 + 2400


# The end


async def test_a_closed_store_refuses_everything(open_store: Callable[[], Awaitable[Storage]]) -> None:
    store = await open_store()
    await store.create("/a", b"1")
    assert store.refusal == ""
    await store.close()
    await store.close()
    assert store.refusal == "the store is closed"
    for request in (
        store.get("/a"),
        store.range("/"),
        store.create("/b", b"1"),
        store.update("/a", b"1", expected_revision=2),
        store.delete("/a", expected_revision=2),
        store.subscribe("/", after_revision=1, deliver=Recorder()),
        store.wait_until(3),
        store.compact(1),
    ):
        with pytest.raises(StorageUnavailable):
            await request


async def test_closing_completes_what_was_begun(open_store: Callable[[], Awaitable[Storage]]) -> None:
    store = await open_store()
    recorder = Recorder()
    await store.subscribe("/", after_revision=1, deliver=recorder)
    writes = [asyncio.create_task(store.create(f"/{number}", b"1")) for number in range(400)]
    waiting = asyncio.create_task(store.wait_until(1000))
    await asyncio.sleep(0)
    await store.close()
    assert sorted([(await write).mod_revision for write in writes]) == list(range(2, 402))
    assert recorder.revisions == list(range(2, 402))
    with pytest.raises(StorageUnavailable):
        await waiting


# History


async def history_of(store: Storage, prefix: str, *, is_key: bool = False, limit: int = 100) -> list[Any]:
    """Return all writes page by page, as (revision, key, value, replaced value, is the oldest)."""
    found, before, more = [], 0, True
    while more:
        page = await store.history(prefix, is_key=is_key, before=before, limit=limit)
        assert len(page.items) <= limit
        found += [
            (
                each.event.revision,
                each.event.key,
                each.event.current and each.event.current.value,
                each.event.previous and each.event.previous.value,
                each.is_oldest,
            )
            for each in page.items
        ]
        more = page.more
        before = found[-1][0] if found else 0
    return found


@pytest.mark.parametrize("limit", [1, 2, 100])
async def test_history_has_every_write_of_a_key_newest_first(store: Storage, limit: int) -> None:
    first = await store.create("/a", b"1")
    await store.create("/ab", b"other")
    second = await store.update("/a", b"2", expected_revision=first.mod_revision)
    await store.delete("/a", expected_revision=second.mod_revision)
    await store.create("/a", b"3")
    await store.wait_until(6)
    assert await history_of(store, "/a", is_key=True, limit=limit) == [
        (6, "/a", b"3", None, False),
        (5, "/a", None, b"2", False),
        (4, "/a", b"2", b"1", False),
        (2, "/a", b"1", None, False),
    ]
    assert [each[0] for each in await history_of(store, "/a", limit=limit)] == [6, 5, 4, 3, 2]
    assert await history_of(store, "/b", is_key=True, limit=limit) == []


@pytest.mark.parametrize("limit", [1, 100])
async def test_history_after_compaction_begins_with_the_oldest_readable_value(store: Storage, limit: int) -> None:
    await store.create("/a", b"1")
    second = await store.update("/a", b"2", expected_revision=2)
    await store.create("/gone", b"x")
    await store.delete("/gone", expected_revision=4)
    await store.create("/other", b"x")
    await store.compact(6)
    await store.update("/a", b"3", expected_revision=second.mod_revision)
    await store.wait_until(7)
    assert await history_of(store, "/a", is_key=True, limit=limit) == [
        (7, "/a", b"3", b"2", False),
        (3, "/a", b"2", None, True),
    ]
    assert await history_of(store, "/gone", is_key=True, limit=limit) == []
    assert await history_of(store, "/other", is_key=True, limit=limit) == [(6, "/other", b"x", None, True)]
