"""The server's own reads of objects: partial ones at once, large ones in worker threads, and each version once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from steersman.api.core.v1 import ConfigMap
from steersman.api.meta.v1 import ObjectMeta
from steersman.controlplane.objects import StoreObjects
from steersman.kinds.structs import StructKind
from steersman.registry.core.configmaps import CONFIG_MAPS
from steersman.rest.bound import bind
from steersman.rest.context import loopback
from steersman.rest.objects import NamespaceCache, Presence, Reading
from steersman.storage.memory import MemoryStorage
from steersman.store.store import Store
from steersman.testing.clock import Clock

LARGE = {f"key-{number}": "" for number in range(2_000)}


@pytest.fixture
async def clock() -> AsyncIterator[Clock]:
    clock = Clock()
    yield clock
    clock.close()


@pytest.fixture
async def objects() -> AsyncIterator[StoreObjects]:
    storage = await MemoryStorage.open(compaction_interval=0, lease_interval=0)
    store: Store[ConfigMap] = Store(bind(CONFIG_MAPS), storage)
    await store.start()
    made = StoreObjects(store)
    for name, data in (("large", LARGE), ("small", {"a": "b"})):
        await made.create(loopback("ns"), ConfigMap(metadata=ObjectMeta(name=name, namespace="ns"), data=data))
    yield made
    await store.stop()
    await storage.close()


class Seen:
    """The decoded part, and True if the event loop's thread decoded it."""

    def __init__(self) -> None:
        loop = threading.get_ident()
        self.here: list[bool] = []

        def make(config_map: ConfigMap) -> int:
            self.here.append(threading.get_ident() == loop)
            return len(config_map.data)

        self.reading: Reading[int] = Reading(make, "data")


async def changed(objects: StoreObjects, name: str) -> None:
    def change(old: ConfigMap) -> ConfigMap:
        old.data["another"] = ""
        return old

    await objects.update(loopback("ns", name), name, change)


async def test_whoever_asks_first_fills_the_cache() -> None:
    storage = await MemoryStorage.open(compaction_interval=0, lease_interval=0)
    first: Store[ConfigMap] = Store(bind(CONFIG_MAPS), storage)
    await StoreObjects(first).create(loopback("ns"), ConfigMap(metadata=ObjectMeta(name="a", namespace="ns")))
    stores = [first]

    def cold() -> StoreObjects:
        stores.append(Store(bind(CONFIG_MAPS), storage))
        return StoreObjects(stores[-1])

    cached = await cold().get_cached("ns", "a")
    assert cached is not None
    assert cached.metadata.name == "a"
    assert [each.metadata.name async for each, _ in cold().iterate_cached()] == ["a"]
    assert await cold().read_all("ns", Reading(lambda each: each.metadata.name, "metadata")) == ["a"]
    for each in stores:
        await each.stop()
    await storage.close()


async def test_a_version_is_read_once(objects: StoreObjects) -> None:
    seen = Seen()
    assert [objects.read_cached("ns", "small", seen.reading) for _ in range(3)] == [1, 1, 1]
    assert seen.here == [True]
    await changed(objects, "small")
    assert objects.read_cached("ns", "small", seen.reading) == 2
    assert objects.read_cached("ns", "nothing", seen.reading) is None
    assert objects.read_cached("ns", "a/b", seen.reading) is None


async def test_large_objects_are_read_beside_the_loop_once_for_all_who_ask(objects: StoreObjects) -> None:
    seen = Seen()
    results = await asyncio.gather(*(objects.read_all("ns", seen.reading) for _ in range(3)))
    assert results == [[2_000, 1]] * 3
    assert sorted(seen.here) == [False, True]
    assert objects.read_all_cached("ns", seen.reading) == [2_000, 1]
    assert len(seen.here) == 2


async def test_a_reading_decodes_no_more_than_its_members(
    objects: StoreObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StructKind, "decode_struct", None)
    name: Reading[str] = Reading(lambda config_map: config_map.metadata.name, "metadata.name")
    assert objects.read_all_cached("", name) == ["large", "small"]
    assert list(objects.names()) == list(objects.names("ns")) == [("ns", "large"), ("ns", "small")]
    assert (objects.is_cached("ns", "large"), objects.is_cached("ns", "b")) == (True, False)


async def test_whole_objects_are_the_callers_own(objects: StoreObjects) -> None:
    found = [obj async for obj, _ in objects.iterate_cached("ns")]
    assert [(len(obj.data), is_large) async for obj, is_large in objects.iterate_cached()] == [
        (2_000, True),
        (1, False),
    ]
    for obj in (*found, await objects.get_cached("ns", "large"), await objects.get(loopback("ns"), "large")):
        obj.data.clear()
    assert [len(obj.data) async for obj, _ in objects.iterate_cached()] == [2_000, 1]
    assert await objects.get_cached("ns", "nothing") is None


async def test_what_is_made_of_a_namespace_is_kept_until_an_object_changes(objects: StoreObjects) -> None:
    seen = Seen()
    of = NamespaceCache(objects, seen.reading, tuple).get
    for _ in range(2):
        made, is_much = await of("ns")
        assert (made, is_much) == ((2_000, 1), True)
    assert await of("empty") == ((), False)
    await changed(objects, "small")
    assert (await of("ns"))[0] == (2_000, 2)
    assert len(seen.here) == 3, "what did not change was not read again"


async def test_followers_are_told_of_each_change_before_the_write_is_acknowledged(clock: Clock) -> None:
    storage = await MemoryStorage.open(compaction_interval=0, lease_interval=0)
    store: Store[ConfigMap] = Store(bind(CONFIG_MAPS), storage)
    objects = StoreObjects(store)
    told: list[bool] = []
    presence: list[bool] = []
    followed = Presence(objects, lambda: presence.append(followed.is_empty))
    objects.subscribe(lambda: told.append(objects.is_empty()))
    assert not followed.is_empty, "what is stored is not known yet"
    await store.start()
    assert (told, presence) == ([True], [True])
    await objects.create(loopback("ns"), ConfigMap(metadata=ObjectMeta(name="a", namespace="ns")))
    assert (told[1:], presence[1:]) == ([False], [False])
    await changed(objects, "a")
    assert (told[2:], presence[2:]) == ([False], [])
    await objects.delete(loopback("ns", "a"), "a")
    assert (told[3:], presence[2:]) == ([True], [True])
    store.cacher.start_over(ValueError("what it shows is not what is stored"))
    assert (told[4:], presence[3:]) == ([False], [False])
    await clock.advance(seconds=10)  # it waits before it starts over
    await store.cacher.wait_until_ready()
    assert (told[5:], presence[4:]) == ([True], [True])
    await store.stop()
    await storage.close()
