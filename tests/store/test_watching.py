"""Watches through the store: their starts, the changes that they see, and revisions from which they cannot continue."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.machinery.errors.status import StatusError
from steersman.rest.bound import bind
from steersman.rest.capabilities import ListOptions, WatchStart
from steersman.storage.memory import MemoryStorage
from steersman.store.storage_errors import StorageNotReady
from steersman.store.store import Store
from tests.example_counts import examples
from tests.loop_turns import yield_often
from tests.store.store_client import CLUSTER_WIDE, CONFIG_MAPS, Events, StoreClient, refused, relabel, selecting


def initial(client: StoreClient, start: WatchStart) -> list[str] | None:
    return None if start.initial is None else [client.plain(item)["metadata"]["name"] for item in start.initial]


async def told(client: StoreClient, events: Events) -> list[str]:
    """Return the events of a watch once everything has been delivered."""
    await client.revision()
    for _ in range(20):
        await asyncio.sleep(0)
    return events.seen


def look_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others have the loop after every few objects that are looked at."""
    yield_often(monkeypatch)
    monkeypatch.setattr("steersman.store.listing.SLICE", 4)


async def until_subscribed(client: StoreClient) -> None:
    """Returns once a watch has been made, be it that its first objects are still looked for."""
    for _ in range(1000):
        if client.store.cacher.watchers:
            return
        await asyncio.sleep(0)
    raise AssertionError("no watch has been made")


@pytest.mark.parametrize(
    ("options", "begins_with"),
    [
        ({}, ["a", "b"]),
        ({"resource_version": "0"}, ["a", "b"]),
        ({"send_initial_events": True, "resource_version_match": "NotOlderThan"}, ["a", "b"]),
        ({"send_initial_events": True, "resource_version": "now"}, ["a", "b"]),
        ({"send_initial_events": False}, None),
        ({"send_initial_events": False, "resource_version": "0"}, None),
        ({"resource_version": "now"}, None),
    ],
)
async def test_how_a_watch_begins(client: StoreClient, options: dict[str, Any], begins_with: list[str] | None) -> None:
    await client.create("a")
    await client.create("b")
    now = await client.revision()
    if options.get("resource_version") == "now":
        options = {**options, "resource_version": str(now)}
    events, start = await client.watch(ListOptions(**options))
    assert initial(client, start) == begins_with
    assert start.revision == now
    assert events.seen == []
    await client.create("c")
    assert await told(client, events) == ["ADDED c"]
    assert start.current_revision() == events.revisions[-1]
    start.handle.cancel()
    await client.create("d")
    assert await told(client, events) == ["ADDED c"]


async def test_a_resumed_watch_sees_all_that_happened_since(client: StoreClient) -> None:
    await client.create("a")
    since = await client.revision()
    await client.set("a", 1)
    await client.create("b")
    await client.create("c", namespace="other")
    await client.delete("a")
    events, start = await client.watch(ListOptions(resource_version=str(since)))
    await client.set("b", 2)
    assert await told(client, events) == ["MODIFIED a 1", "ADDED b", "DELETED a 1", "MODIFIED b 2"]
    assert events.revisions == sorted(events.revisions)
    start.handle.cancel()


async def test_a_watch_resumes_from_storage_what_the_cache_has_forgotten(client: StoreClient) -> None:
    await client.create("a")
    since = await client.revision()
    await client.set("a", 1)
    await client.delete("a")
    await client.store.stop()
    await client.store.start()
    assert client.store.cacher.oldest_revision > since
    events, start = await client.watch(ListOptions(resource_version=str(since)))
    await client.create("b")
    await events.until(lambda: len(events.seen) == 3)
    assert events.seen == ["MODIFIED a 1", "DELETED a 1", "ADDED b"]
    start.handle.cancel()


async def test_a_revision_that_is_gone_is_told(client: StoreClient) -> None:
    await client.create("a")
    since = await client.revision()
    await client.set("a", 1)
    await client.set("a", 2)
    await client.store.storage.compact(await client.revision())
    await client.store.stop()
    await client.store.start()
    events, _ = await client.watch(ListOptions(resource_version=str(since)))
    await events.until(lambda: events.error is not None)
    assert events.error is not None
    assert events.error.reason == "Expired"
    assert events.error.message == f"too old resource version: {since} ({client.store.storage.compact_revision})"
    assert events.seen == []


async def test_a_version_of_the_future_ends_in_a_timeout(client: StoreClient, monkeypatch: pytest.MonkeyPatch) -> None:
    cacher = client.store.cacher
    monkeypatch.setattr(cacher, "wait_fresh", partial(cacher.wait_fresh, timeout=0.01))
    now = await client.revision()
    message = f"Timeout: Too large resource version: {now + 100}, current: {now}"
    future = ListOptions(resource_version=str(now + 100))
    with_objects = ListOptions(resource_version=str(now + 100), send_initial_events=True)
    for request in (client.watch(with_objects), client.list(future), client.get("a", version=str(now + 100))):
        error = await refused(request, 504, "Timeout", message)
        assert error.retry_after == 1
        assert [cause.reason for cause in error.causes] == ["ResourceVersionTooLarge"]


async def test_a_watch_from_the_future_begins_there(client: StoreClient) -> None:
    now = await client.revision()
    events, start = await client.watch(ListOptions(resource_version=str(now + 2)))
    assert start.initial is None
    for name in "abc":
        await client.create(name)
    await events.until(lambda: bool(events.seen))
    assert events.seen == ["ADDED c"]


async def test_a_version_that_is_no_number_is_refused(client: StoreClient) -> None:
    with pytest.raises(StatusError) as caught:
        await client.watch(ListOptions(resource_version="x"))
    assert caught.value.code == 500


async def test_objects_come_into_a_selection_and_leave_it(client: StoreClient) -> None:
    await client.create("a", labels={"app": "x"})
    await client.create("b", labels={"app": "y"})
    events, start = await client.watch(selecting("app=x"))
    assert initial(client, start) == ["a"]

    def label(app: str) -> Any:
        return lambda old: old.metadata.labels.update(app=app)

    await client.set("b", 1)
    await client.change("b", label("x"))
    await client.set("b", 2)
    await client.change("b", label("y"))
    await client.change("a", lambda old: old.metadata.labels.clear())
    await client.delete("a")
    await client.delete("b")
    assert await told(client, events) == ["ADDED b 1", "MODIFIED b 2", "DELETED b 2", "DELETED a"]
    start.handle.cancel()


async def test_one_object_can_be_watched_by_its_name(client: StoreClient) -> None:
    await client.create("a")
    await client.create("ab")
    events, start = await client.watch(selecting(field="metadata.name=a"))
    everywhere, start_everywhere = await client.watch(selecting(field="metadata.name=a"), namespace="")
    assert initial(client, start) == initial(client, start_everywhere) == ["a"]
    await client.set("ab", 1)
    await client.set("a", 2)
    await client.create("a", namespace="other")
    assert await told(client, events) == ["MODIFIED a 2"]
    assert everywhere.seen == ["MODIFIED a 2", "ADDED a"]
    for each in (start, start_everywhere):
        each.handle.cancel()
    assert client.store.cacher.watchers == 0


async def test_a_cluster_wide_object_can_be_watched_by_its_name(
    open_client: Callable[..., Awaitable[StoreClient]],
) -> None:
    client = await open_client(CLUSTER_WIDE)
    await client.create("a")
    events, start = await client.watch(selecting(field="metadata.name=b"))
    await client.create("b")
    await client.delete("a")
    assert await told(client, events) == ["ADDED b"]
    start.handle.cancel()


async def test_a_sink_that_fails_harms_nobody_else(client: StoreClient, caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Events):
        def deliver(self, event: Any) -> None:
            raise RuntimeError("no")

    bad = Failing()
    await client.store.watch(client.context(), ListOptions(), bad)
    events, start = await client.watch()
    await client.create("a")
    await client.create("b")
    assert await told(client, events) == ["ADDED a", "ADDED b"]
    assert (bad.ended, bad.error) == (True, None)
    assert caplog.text.count("failed and its watch has ended") == 1
    start.handle.cancel()


async def test_the_end_of_the_store_ends_its_watches(client: StoreClient) -> None:
    events, _ = await client.watch()
    await client.store.stop()
    assert (events.ended, events.error) == (True, None)


STEP = st.tuples(st.sampled_from("abcd"), st.integers(0, 3))


@settings(max_examples=examples(40), deadline=None)
@given(
    before=st.lists(STEP, max_size=10),
    unseen=st.lists(STEP, max_size=10),
    after=st.lists(STEP, max_size=10),
    label=st.sampled_from(["", "n=1", "n in (1,2)"]),
    restart=st.booleans(),
)
async def test_a_list_and_a_watch_from_it_lead_to_what_is_there(
    before: list[Any], unseen: list[Any], after: list[Any], label: str, restart: bool
) -> None:
    storage = MemoryStorage(compaction_interval=0, lease_interval=0)
    store: Store[Any] = Store(bind(CONFIG_MAPS), storage)
    await store.start()
    client = StoreClient(store)

    async def write(steps: list[Any]) -> None:
        for name, n in steps:
            there = store.cacher.get(store.key("ns", name)) is not None
            if n == 3 and there:
                await client.delete(name)
            elif there:
                await client.change(name, partial(relabel, n))
            else:
                await client.create(name, labels={"n": str(n)})

    await write(before)
    listing = await client.list(selecting(label))
    known = {client.plain(item)["metadata"]["name"]: client.plain(item) for item in listing.items}
    await write(unseen)
    if restart:
        await store.stop()
        await store.start()

    class Cache(Events):
        def deliver(self, event: Any) -> None:
            obj = client.plain(event.entry)
            name = obj["metadata"]["name"]
            assert (event.type == "ADDED") is (name not in known)
            if event.type == "DELETED":
                del known[name]
            else:
                known[name] = obj

    cache = Cache()
    start = await store.watch(client.context(), selecting(label, resource_version=str(listing.revision)), cache)
    await write(after)
    for _ in range(50):
        await asyncio.sleep(0)
    assert cache.error is None
    expected = (await client.list(selecting(label))).items
    assert known == {client.plain(item)["metadata"]["name"]: client.plain(item) for item in expected}
    start.handle.cancel()
    await store.stop()
    await storage.close()


async def test_what_happens_while_the_first_objects_are_looked_for_is_told_after_them(
    client: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_slowly(monkeypatch)
    for number in range(40):
        await client.create(f"a{number:02}", labels={"a": "b"})
    watching = asyncio.create_task(client.watch(selecting("a=b")))
    await until_subscribed(client)
    assert not watching.done()
    await client.create("late", labels={"a": "b"})
    await client.create("other")
    events, start = await watching
    assert initial(client, start) == [f"a{number:02}" for number in range(40)]
    assert await told(client, events) == ["ADDED late"]
    start.handle.cancel()


async def test_a_watch_that_is_given_up_while_its_first_objects_are_looked_for_is_over(
    client: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_slowly(monkeypatch)
    for number in range(40):
        await client.create(f"a{number:02}")
    watching = asyncio.create_task(client.watch(selecting("!a")))
    await until_subscribed(client)
    watching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watching
    assert client.store.cacher.watchers == 0


async def test_a_watch_whose_cache_stops_while_its_first_objects_are_looked_for_fails(
    client: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_slowly(monkeypatch)
    for number in range(40):
        await client.create(f"a{number:02}")
    watching = asyncio.create_task(client.watch(selecting("!a")))
    await until_subscribed(client)
    await client.store.stop()
    with pytest.raises(StorageNotReady):
        await watching
