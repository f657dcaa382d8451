"""Watches as clients see them: events, Tables, bookmarks, errors, and slow watchers."""

from __future__ import annotations

import asyncio
import gc
from functools import partial
from typing import Any

import pytest

from steersman.endpoints.handlers import watch as watch_module
from steersman.net.message import BodyAborted
from steersman.storage.interface import StorageUnavailable
from steersman.store import listing
from steersman.testing.clock import Clock
from tests.endpoints.small_server import SmallServer, Watch

NOTES = "/api/v1/namespaces/ns/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


async def watching(small: SmallServer, query: str = "", **headers: str) -> Watch:
    response = await small.open("GET", f"{NOTES}?watch=1{query}", **headers)
    assert response.status == 200
    return Watch(response)


async def patch(small: SmallServer, name: str, **data: str) -> None:
    answer = await small.ask("PATCH", f"{NOTES}/{name}", {"data": data}, content_type="application/merge-patch+json")
    assert answer.status == 200


async def test_a_watch_tells_what_is_there_and_what_happens(small: SmallServer) -> None:
    await small.note("a")
    watch = await watching(small)
    assert watch.response.headers["content-type"] == "application/json"
    assert await watch.told() == "ADDED a"
    await small.note("b")
    await patch(small, "a", color="red")
    await small.ask("DELETE", f"{NOTES}/b")
    assert [await watch.told() for _ in range(3)] == ["ADDED b", "MODIFIED a", "DELETED b"]
    await watch.response.aclose()
    assert small.stores["configmaps"].cacher.watchers == 0
    assert not small.server.watches


async def test_all_watchers_share_one_encoding(small: SmallServer) -> None:
    first, second = [await watching(small, "&resourceVersion=1") for _ in range(2)]
    await small.note("a")
    pieces = [await anext(aiter(watch.response)) for watch in (first, second)]
    assert pieces[0] is pieces[1]


async def test_each_watchers_first_table_has_the_columns(small: SmallServer) -> None:
    await small.note("a")
    first = await watching(small, accept=TABLE)

    async def columns(watch: Watch) -> bool:
        event = await watch.next()
        assert event["object"]["kind"] == "Table"
        return event["object"]["columnDefinitions"] is not None

    assert await columns(first)
    second = await watching(small, "&resourceVersion=2", accept=TABLE)
    await small.note("b")
    assert [await columns(first), await columns(second)] == [False, True]
    third = await watching(small, "&resourceVersion=3", accept=TABLE)
    fourth = await watching(small, "&resourceVersion=3", accept=TABLE)
    await small.note("c")
    assert [await columns(each) for each in (first, second, third, fourth)] == [False, False, True, True]
    await small.note("d")
    assert [await columns(each) for each in (first, second, third, fourth)] == [False] * 4


async def test_a_table_watch_of_many_has_the_columns_once(small: SmallServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "SLICE", 2)
    for name in "abcde":
        await small.note(name)
    watch = await watching(small, accept=TABLE)
    events = [await watch.next() for _ in range(5)]
    assert [event["object"]["columnDefinitions"] is None for event in events] == [False, True, True, True, True]


async def test_the_end_of_the_first_objects_can_be_marked(small: SmallServer) -> None:
    await small.note("a")
    query = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    watch = await watching(small, query)
    assert await watch.told() == "ADDED a"
    bookmark = await watch.next()
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"] == {
        "resourceVersion": "2",
        "annotations": {"k8s.io/initial-events-end": "true"},
    }


async def test_a_bookmark_tells_how_far_everything_is(small: SmallServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "BOOKMARK_EVERY", 0.01)
    await small.note("a")
    watch = await watching(small, "&resourceVersion=2&allowWatchBookmarks=true")
    await small.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "x"}, "value": 1})
    for _ in range(2):
        event = await watch.next()
        assert (event["type"], event["object"]["metadata"]["resourceVersion"]) == ("BOOKMARK", "3")


async def test_no_bookmark_runs_ahead_of_what_a_watch_is_still_to_be_told(
    small: SmallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "BOOKMARK_EVERY", 0.001)
    await small.note("a", text="x" * 40_000)
    for number in range(40):
        await patch(small, "a", more=str(number))
    watch = await watching(small, "&resourceVersion=2&allowWatchBookmarks=true")
    versions: list[Any] = []
    while len(versions) < 40 or not versions[-1] == versions[-2] == 42:
        await asyncio.sleep(0.002)
        event = await watch.next()
        versions.append(int(event["object"]["metadata"]["resourceVersion"]))
    assert versions == sorted(versions)
    assert versions[:40] == list(range(3, 43))


@pytest.mark.parametrize("happens", ["nothing", "to another resource", "to this resource"])
async def test_a_bookmark_comes_before_the_end_if_anything_happened_to_the_resource(
    small: SmallServer, monkeypatch: pytest.MonkeyPatch, happens: str
) -> None:
    monkeypatch.setattr(watch_module, "BOOKMARK_BEFORE_END", 2.99)
    await small.note("a")
    watch = await watching(small, "&timeoutSeconds=3&resourceVersion=2&allowWatchBookmarks=true&labelSelector=none")
    if happens == "to another resource":
        await small.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "x"}, "value": 1})
    elif happens == "to this resource":
        await small.note("b")
    await asyncio.sleep(0.05)
    small.server.watches.copy().pop().finish()
    if happens == "to this resource":
        event = await watch.next()
        assert (event["type"], event["object"]["metadata"]["resourceVersion"]) == ("BOOKMARK", "3")
    assert await watch.over()


async def test_a_watch_ends_when_its_time_is_up(small: SmallServer) -> None:
    watch = await watching(small, "&timeoutSeconds=1")
    small.server.watches.copy().pop().finish()
    assert await watch.over()
    watch = await watching(small, "&timeoutSeconds=-1")
    assert await watch.over()
    assert small.stores["configmaps"].cacher.watchers == 0


async def test_a_version_that_is_gone_is_an_event(small: SmallServer) -> None:
    await small.note("a")
    await small.note("b")
    await small.storage.compact(3)
    await small.stores["configmaps"].stop()
    await small.stores["configmaps"].start()
    watch = await watching(small, "&resourceVersion=1")
    event = await watch.next()
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
    assert await watch.over()


async def test_a_version_ahead_with_initial_events_is_an_event(
    small: SmallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    cacher = small.stores["configmaps"].cacher
    monkeypatch.setattr(cacher, "wait_fresh", partial(cacher.wait_fresh, timeout=0.01))
    query = "&resourceVersion=1000&sendInitialEvents=1&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1"
    watch = await watching(small, query)
    event = await watch.next()
    assert (event["type"], event["object"]["code"]) == ("ERROR", 504)
    assert event["object"]["message"].startswith("Timeout: Too large resource version: 1000, current: ")
    assert await watch.over()


async def test_a_cache_that_starts_over_ends_its_watches_without_an_error(small: SmallServer) -> None:
    watch = await watching(small)
    small.stores["configmaps"].cacher.reset(StorageUnavailable("starting over"))
    assert await watch.over()


async def test_what_happens_while_the_first_objects_are_sent_comes_after_them(
    small: SmallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "SLICE", 2)
    for name in "abcde":
        await small.note(name, text="x" * 40_000)
    watch = await watching(small)
    await patch(small, "a", more="1")
    await small.note("f")
    names = [await watch.told() for _ in range(7)]
    assert names == ["ADDED a", "ADDED b", "ADDED c", "ADDED d", "ADDED e", "MODIFIED a", "ADDED f"]


async def test_a_watcher_that_never_reads_its_first_objects_is_given_up(
    small: SmallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "SLICE", 2)
    monkeypatch.setattr(watch_module, "BUFFER_LIMIT", 500_000)
    for name in "abcde":
        await small.note(name, text="x" * 40_000)
    watch = await watching(small)
    for number in range(20):
        await patch(small, "a", more=str(number))
    assert small.stores["configmaps"].cacher.watchers == 0
    assert not small.server.watches
    with pytest.raises(BodyAborted):
        await watch.response.read()


async def test_a_watch_whose_first_objects_are_looked_for_keeps_so_much_of_what_happens(
    small: SmallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "BUFFER_LIMIT", 200_000)
    begun, found = asyncio.Event(), asyncio.Event()
    accepted = listing.accepted

    async def slowly(entries: Any, accept: Any, **more: Any) -> Any:
        begun.set()
        await found.wait()
        return await accepted(entries, accept, **more)

    monkeypatch.setattr(listing, "accepted", slowly)
    await small.note("a", text="x" * 40_000)
    waiting = asyncio.ensure_future(watching(small, "&labelSelector=!b"))
    await begun.wait()
    for number in range(20):
        await patch(small, "a", more=str(number))
    found.set()
    watch = await waiting
    assert await watch.over()
    assert small.stores["configmaps"].cacher.watchers == 0


async def test_a_watcher_that_stops_reading_is_given_up_and_others_go_on(
    small: SmallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "BUFFER_LIMIT", 300_000)
    await small.note("a", text="x" * 40_000)
    slow, fast = await watching(small), await watching(small)
    assert await fast.told() == "ADDED a"
    for number in range(20):
        await patch(small, "a", more=str(number))
        assert await fast.told() == "MODIFIED a"
    assert small.stores["configmaps"].cacher.watchers == 1
    with pytest.raises(BodyAborted):
        await slow.response.read()


async def test_a_watcher_that_has_much_unread_and_takes_nothing_for_long_is_given_up(
    small: SmallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A watcher that reads something now and then continues."""
    monkeypatch.setattr(watch_module, "MUCH_UNREAD", 300_000)
    clock = Clock()
    await small.note("a", text="x" * 40_000)
    watches = [await watching(small) for _ in range(2)]
    for number in range(15):
        await patch(small, "a", more=str(number))
    await clock.advance(seconds=20)
    assert small.stores["configmaps"].cacher.watchers == 2
    assert await watches[0].told() == "ADDED a"
    await clock.advance(seconds=15)
    assert small.stores["configmaps"].cacher.watchers == 1
    assert [await watches[0].told() for _ in range(15)] == ["MODIFIED a"] * 15
    with pytest.raises(BodyAborted):
        await watches[1].response.read()
    await clock.advance(seconds=60)
    assert small.stores["configmaps"].cacher.watchers == 1


async def test_a_first_object_that_cannot_be_encoded_ends_the_watch(
    small: SmallServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watch_module, "SLICE", 1)
    for name in "ab":
        await small.note(name)

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("cannot be shown")

    monkeypatch.setattr(watch_module, "table_of", fail)
    watch = await watching(small, accept=TABLE)
    with pytest.raises(BodyAborted):
        await watch.over()
    assert "cannot be shown" in caplog.text
    assert small.stores["configmaps"].cacher.watchers == 0


async def test_watches_of_clients_that_go_away_leave_nothing_behind(small: SmallServer) -> None:
    for name in "abc":
        await small.note(name)
    watches = [await watching(small, "&allowWatchBookmarks=true") for _ in range(20)]
    await asyncio.gather(*(watch.response.aclose() for watch in watches))
    assert small.stores["configmaps"].cacher.watchers == 0
    assert not small.server.watches


async def test_a_watch_that_is_over_leaves_no_circle(small: SmallServer) -> None:
    """Reference cycles stay in memory until a full garbage collection, which may never happen."""
    await small.note("a")

    def left() -> int:
        return sum(isinstance(each, watch_module.WatchStream) for each in gc.get_objects())

    gc.collect()
    before = left()
    gc.disable()
    try:
        for query in ("", "&resourceVersion=1", "&timeoutSeconds=1"):
            watch = await watching(small, query)
            assert await watch.told() == "ADDED a"
            assert left() == before + 1
            await watch.response.aclose()
            del watch
            for _ in range(5):
                await asyncio.sleep(0)
            assert left() == before, query
    finally:
        gc.enable()


async def test_a_watch_can_catch_up_on_more_than_it_may_fall_behind(
    small: SmallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "BUFFER_LIMIT", 500_000)
    await small.note("a", text="x" * 40_000)
    for number in range(300):
        await patch(small, "a", more=str(number))
    watch = await watching(small, "&resourceVersion=2")
    for number in range(300):
        event = await watch.next()
        assert event["object"]["data"]["more"] == str(number)
    await patch(small, "a", more="now")
    assert (await watch.next())["object"]["data"]["more"] == "now"
