"""Reads of a store to whose storage others write, and its answers if storage cannot be read or written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from steersman.api.meta.v1 import DeleteOptions
from steersman.machinery.errors.status import StatusError
from steersman.rest.bound import bind
from steersman.storage.interface import Event, FutureRevision, StorageUnavailable
from steersman.storage.memory import MemoryStorage
from steersman.store.store import Store
from tests.store.store_client import CONFIG_MAPS, StoreClient, selecting


class OfMany(MemoryStorage):
    """A storage to which others write, so its newest revision must be requested."""

    knows_newest = False
    has_other_servers = True

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.counted_as_caller = 0
        self.question = asyncio.Event()
        self.ahead = 0
        """Writes of others that are not here yet."""
        self.away = False

    async def current_revision(self) -> int:
        self.counted_as_caller += 1
        self.question.set()
        if self.away:
            raise StorageUnavailable("no connection")
        return self.revision + self.ahead


@pytest.fixture
async def storage() -> AsyncIterator[OfMany]:
    made = OfMany(compaction_interval=0, lease_interval=0)
    yield made
    await made.close()


@pytest.fixture
async def client(storage: OfMany) -> AsyncIterator[StoreClient]:
    store: Store[Any] = Store(bind(CONFIG_MAPS), storage)
    await store.start()
    yield StoreClient(store)
    await store.stop()


async def behind(revision: int) -> None:
    """A cache that does not receive events for too long."""
    raise FutureRevision(revision + 1, revision)


async def refusal(work: Any) -> tuple[int, str]:
    with pytest.raises(StatusError) as caught:
        await work
    return caught.value.code, caught.value.message


async def test_what_must_be_current_is_asked_for_and_what_may_be_old_is_not(
    client: StoreClient, storage: OfMany
) -> None:
    await client.create("a")
    for read in (lambda: client.get("a"), lambda: client.list(selecting()), lambda: client.delete("a", dry_run=True)):
        before = storage.counted_as_caller
        await read()
        assert storage.counted_as_caller == before + 1
    before = storage.counted_as_caller
    await client.set("a", 1)  # storage compares what it replaces
    await client.get("a", version="0")
    await client.list(selecting(resource_version="0"))
    assert storage.counted_as_caller == before


async def test_what_ends_without_a_write_is_held_against_what_is_newest(client: StoreClient, storage: OfMany) -> None:
    made = await client.create("a", metadata={"finalizers": ["example.com/kept"]})
    await client.delete("a")
    old = {**made, "metadata": {**made["metadata"], "resourceVersion": "1"}}
    endings: dict[str, Callable[[], Awaitable[object]]] = {
        "a change of nothing": lambda: client.change("a", lambda old: None),
        "a conflict": lambda: refusal(client.put(old)),
        "nothing there": lambda: refusal(client.set("b", 1)),
        "nothing to delete": lambda: refusal(client.delete("b")),
        "deleted already": lambda: client.delete("a"),
        "another one": lambda: refusal(client.delete("a", preconditions={"uid": "of another"})),
    }
    for name, end in endings.items():
        before = storage.counted_as_caller
        await end()
        assert storage.counted_as_caller == before + 1, name


async def test_objects_of_a_collection_are_asked_for_once(client: StoreClient, storage: OfMany) -> None:
    for name in "abc":
        await client.create(name)
    before = storage.counted_as_caller
    await client.store.delete_collection(client.context(), DeleteOptions(), selecting())
    assert await client.names() == []
    assert storage.counted_as_caller == before + 2  # one of them for the names


async def test_where_servers_write_side_by_side_a_collection_is_deleted_in_order(
    client: StoreClient, storage: OfMany, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"a{number:02}" for number in range(20)]
    for name in names:
        await client.create(name)
    delete, under_way, deleted = storage.delete, 0, []

    async def slower(key: str, *, expected_revision: int) -> Event:
        nonlocal under_way
        under_way += 1
        assert under_way == 1
        await asyncio.sleep(0)
        under_way -= 1
        deleted.append(key.rpartition("/")[2])
        return await delete(key, expected_revision=expected_revision)

    monkeypatch.setattr(storage, "delete", slower)
    await client.store.delete_collection(client.context(), DeleteOptions(), selecting())
    assert deleted == names


async def test_a_read_waits_for_what_another_has_written(client: StoreClient, storage: OfMany) -> None:
    await client.create("a")
    storage.ahead = 1
    storage.question.clear()
    reading = asyncio.create_task(client.get("a"))
    await storage.question.wait()
    assert not reading.done()
    there = await storage.get("/registry/configmaps/ns/a")
    assert there is not None
    value = there.value.replace(b'"name":"a"', b'"name":"a","labels":{"by":"another"}')
    written = await storage.update(there.key, value, expected_revision=there.mod_revision)
    assert (await reading)["metadata"]["resourceVersion"] == str(written.mod_revision)


async def test_one_object_is_read_from_storage_while_the_cache_stays_behind(
    client: StoreClient, storage: OfMany, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.create("a")
    monkeypatch.setattr(client.store.cacher, "wait_fresh", behind)
    monkeypatch.setattr(client.store.cacher, "get", None)  # which has an older one, or none
    assert (await client.get("a"))["metadata"]["name"] == "a"
    assert (await refusal(client.get("b")))[0] == 404
    assert (await refusal(client.list(selecting(resource_version="9"))))[0] == 504


async def test_a_storage_that_cannot_be_asked_is_asked_again_later(client: StoreClient, storage: OfMany) -> None:
    storage.away = True
    assert await refusal(client.get("a")) == (429, "storage is (re)initializing")


async def test_a_storage_that_takes_no_write_is_an_internal_error(
    client: StoreClient, storage: OfMany, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.create("a")

    async def refuse(*_: Any, **__: Any) -> Any:
        raise StorageUnavailable("disk full")

    for verb in ("create", "update", "delete"):
        monkeypatch.setattr(storage, verb, refuse)
    expected = (500, "Internal error occurred: disk full")
    ctx = client.context()
    assert await refusal(client.create("b")) == expected
    assert await refusal(client.set("a", 2)) == expected
    assert await refusal(client.store.delete(ctx, "a", DeleteOptions())) == expected
