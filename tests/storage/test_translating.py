"""A storage in which objects lie in other forms: what comes out of it is values, in order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence

import pytest

from steersman.api.core.v1 import ConfigMap
from steersman.api.meta.v1 import ObjectMeta
from steersman.kinds.built_in import built_in
from steersman.kinds.stored_form import JSON, StoredForm
from steersman.machinery.codec.protobuf.documents import MEDIA_TYPE as PROTOBUF
from steersman.storage.interface import Conflict, Event, KeyExists, Undecodable
from steersman.storage.memory import MemoryStorage
from steersman.storage.translating import TranslatingStorage

MAPS = built_in(ConfigMap)
KEYS = "/registry/configmaps/"


def form(media_type: str) -> StoredForm:
    return StoredForm(MAPS, media_type, find=lambda _: None)


def value(name: str, data: str = "") -> bytes:
    return MAPS.value(ConfigMap(metadata=ObjectMeta(name=name, uid="u"), data={"d": data}))


def foreign(name: str, data: str = "") -> bytes:
    return form(PROTOBUF).stored(value(name, data))


LARGE = "x" * 100_000


@pytest.fixture
async def inner() -> AsyncIterator[MemoryStorage]:
    store = await MemoryStorage.open(compaction_interval=0, lease_interval=0)
    yield store
    await store.close()


@pytest.fixture
def json_storage(inner: MemoryStorage) -> TranslatingStorage:
    return TranslatingStorage(inner, form(JSON))


@pytest.fixture
def protobuf_storage(inner: MemoryStorage) -> TranslatingStorage:
    return TranslatingStorage(inner, form(PROTOBUF))


class Told:
    """Takes events, and says what they were."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.changed = asyncio.Event()

    def __call__(self, events: Sequence[Event]) -> None:
        self.events += events
        self.changed.set()

    @property
    def values(self) -> list[bytes | None]:
        return [None if event.current is None else event.current.value for event in self.events]


@pytest.mark.parametrize("data", ["", LARGE])
async def test_what_others_have_stored_is_read_as_values(
    inner: MemoryStorage, json_storage: TranslatingStorage, data: str
) -> None:
    await inner.create(f"{KEYS}a", foreign("a", data))
    await inner.create(f"{KEYS}b", value("b"))
    assert [item.value for item in (await json_storage.range(KEYS)).items] == [value("a", data), value("b")]
    found = await json_storage.get(f"{KEYS}a")
    assert found is not None
    assert found.value == value("a", data)
    event = await json_storage.delete(f"{KEYS}a", expected_revision=found.mod_revision)
    assert event.previous is not None
    assert event.previous.value == value("a", data)


async def test_values_are_handed_on_as_they_are(inner: MemoryStorage, json_storage: TranslatingStorage) -> None:
    told = Told()
    await json_storage.subscribe(KEYS, after_revision=1, deliver=told)
    given = value("a")
    await json_storage.create(f"{KEYS}a", given)
    assert told.events[0].current is not None
    assert told.events[0].current.value is given
    assert not json_storage.seals
    stored = await inner.get(f"{KEYS}a")
    assert stored is not None
    assert stored.value is given


async def test_what_is_written_as_protobuf_is_told_as_it_was_given(
    inner: MemoryStorage, protobuf_storage: TranslatingStorage
) -> None:
    told = Told()
    await protobuf_storage.subscribe(KEYS, after_revision=1, deliver=told)
    given = value("a", LARGE)
    made = await protobuf_storage.create(f"{KEYS}a", given)
    changed = await protobuf_storage.update(f"{KEYS}a", value("a"), expected_revision=made.mod_revision)
    assert (made.value, changed.value) == (given, value("a"))
    assert told.values == [given, value("a")]
    assert told.events[1].previous is not None
    assert told.events[1].previous.value == given
    stored = await inner.get(f"{KEYS}a")
    assert stored is not None
    assert stored.value == foreign("a")
    with pytest.raises(KeyExists) as taken:
        await protobuf_storage.create(f"{KEYS}a", given)
    assert taken.value.current.value == value("a")
    with pytest.raises(Conflict) as lost:
        await protobuf_storage.update(f"{KEYS}a", given, expected_revision=made.mod_revision)
    assert lost.value.current is not None
    assert lost.value.current.value == value("a")


async def test_events_wait_behind_a_large_one_and_so_does_the_revision(
    inner: MemoryStorage, json_storage: TranslatingStorage
) -> None:
    told = Told()
    await json_storage.subscribe(KEYS, after_revision=1, deliver=told)
    small = await inner.create(f"{KEYS}a", foreign("a"))
    large = await inner.create(f"{KEYS}b", foreign("b", LARGE))
    last = await inner.create(f"{KEYS}c", value("c"))
    assert told.values == [value("a")]
    assert (inner.revision, json_storage.revision) == (last.mod_revision, small.mod_revision)
    await json_storage.wait_until(last.mod_revision)
    assert told.values == [value("a"), value("b", LARGE), value("c")]
    assert [event.revision for event in told.events] == [small.mod_revision, large.mod_revision, last.mod_revision]
    assert json_storage.revision == last.mod_revision


async def test_the_past_is_told_before_the_subscription_begins(
    inner: MemoryStorage, json_storage: TranslatingStorage
) -> None:
    made = await inner.create(f"{KEYS}a", foreign("a", LARGE))
    await inner.update(f"{KEYS}a", foreign("a"), expected_revision=made.mod_revision)
    told = Told()
    await json_storage.subscribe(KEYS, after_revision=1, deliver=told)
    assert told.values == [value("a", LARGE), value("a")]
    assert told.events[1].previous is not None
    assert told.events[1].previous.value == value("a", LARGE)


async def test_who_no_longer_follows_is_told_nothing(inner: MemoryStorage, json_storage: TranslatingStorage) -> None:
    told = Told()
    subscription = await json_storage.subscribe(KEYS, after_revision=1, deliver=told)
    made = await inner.create(f"{KEYS}a", foreign("a", LARGE))
    subscription.cancel()
    await json_storage.wait_until(made.mod_revision)
    assert told.events == []
    assert json_storage.revision == made.mod_revision


async def test_what_is_no_object_is_told_by_its_key(inner: MemoryStorage, json_storage: TranslatingStorage) -> None:
    told = Told()
    await json_storage.subscribe(KEYS, after_revision=1, deliver=told)
    await inner.create(f"{KEYS}a", b"spoilt")
    assert told.values == [b"spoilt"]  # which nobody can present
    with pytest.raises(Undecodable, match=f"{KEYS}a cannot be read: it is no object"):
        await json_storage.range(KEYS)
    with pytest.raises(Undecodable):
        await json_storage.subscribe(KEYS, after_revision=1, deliver=told)


async def test_a_value_is_stale_if_it_would_be_stored_in_another_form(
    inner: MemoryStorage, json_storage: TranslatingStorage, protobuf_storage: TranslatingStorage
) -> None:
    await inner.create(f"{KEYS}a", value("a") + b"\n")
    await inner.create(f"{KEYS}b", foreign("b"))
    later = json.dumps({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c"}, "later": 1})
    await inner.create(f"{KEYS}c", later.encode())
    assert [await json_storage.is_stale(f"{KEYS}{name}") for name in "abc"] == [False, True, True]
    assert [await protobuf_storage.is_stale(f"{KEYS}{name}") for name in "abc"] == [True, False, True]
