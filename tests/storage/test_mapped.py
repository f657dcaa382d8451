"""A storage that maps values, to the forms of objects and to encrypted bytes: values come out of it, in order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import pytest

from steersman.api.core.v1 import ConfigMap
from steersman.api.meta.v1 import ObjectMeta
from steersman.kinds.built_in import built_in
from steersman.kinds.stored_form import JSON, StoredForm
from steersman.machinery.codec.protobuf.documents import MEDIA_TYPE as PROTOBUF
from steersman.storage import mapped
from steersman.storage.encryption.ciphers import AESGCMCipher
from steersman.storage.encryption.encrypted_values import EncryptedValues
from steersman.storage.encryption.metrics import TransformationMetrics
from steersman.storage.encryption.transformer import NeedsKey, Opened, Prefixed, PrefixedTransformers, TransformError
from steersman.storage.interface import (
    Conflict,
    Event,
    KeyExists,
    StorageUnavailable,
    Undecodable,
    Unreadable,
)
from steersman.storage.lagging import LaggingFeeds
from steersman.storage.mapped import MappedStorage, ValueMap
from steersman.storage.memory import MemoryStorage
from steersman.storage.stored_objects import StoredObjects

MAPS = built_in(ConfigMap)
KEYS = "/registry/configmaps/"
LARGE: Final = "x" * 1_100_000
"""Data of a value that is mapped in the worker threads, whichever way."""


def form(media_type: str) -> StoredForm:
    return StoredForm(MAPS, media_type, find=lambda _: None)


def value(name: str, data: str = "") -> bytes:
    return MAPS.value(ConfigMap(metadata=ObjectMeta(name=name, uid="u"), data={"d": data}))


class KeyService:
    """A cipher whose key has to be fetched for values of names that are in `missing`."""

    def __init__(self) -> None:
        ciphers = [Prefixed(b"k8s:enc:aesgcm:v1:", AESGCMCipher(b"k" * 32))]
        self._cipher = PrefixedTransformers("configmaps", ciphers, "no matching prefix found", TransformationMetrics())
        self.missing: set[str] = set()
        self.asked = asyncio.Event()
        self.answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def seal(self, value: bytes, path: bytes) -> bytes:
        return self._cipher.seal(value, path)

    def open(self, stored: bytes, path: bytes) -> Opened:
        name = path.decode().rpartition("/")[2]
        if name not in self.missing:
            return self._cipher.open(stored, path)

        async def fetch() -> None:
            self.asked.set()
            await self.answer
            self.missing.discard(name)

        raise NeedsKey(fetch)


@dataclass
class Mapping:
    """A way to map values: the map, and what another server stores for a value."""

    values: ValueMap
    stored_elsewhere: Callable[[str, bytes], bytes]


def forms(media_type: str, other: str) -> Mapping:
    return Mapping(StoredObjects(form(media_type)), lambda name, value: form(other).stored(value))


@pytest.fixture(params=["reads protobuf", "writes protobuf", "encrypts"])
def mapping(request: pytest.FixtureRequest) -> Mapping:
    if request.param == "encrypts":
        return Mapping(
            EncryptedValues(AESGCMCipher(b"k" * 32)),
            lambda name, value: AESGCMCipher(b"k" * 32).seal(value, f"{KEYS}{name}".encode()),
        )
    return forms(JSON if request.param == "reads protobuf" else PROTOBUF, PROTOBUF)


@pytest.fixture
async def inner() -> AsyncIterator[MemoryStorage]:
    store = await MemoryStorage.open(compaction_interval=0, lease_interval=0)
    yield store
    await store.close()


@pytest.fixture
def storage(inner: MemoryStorage, mapping: Mapping) -> MappedStorage:
    return MappedStorage(inner, mapping.values)


@pytest.fixture
async def keys() -> KeyService:
    return KeyService()


@pytest.fixture
def encrypted(inner: MemoryStorage, keys: KeyService) -> MappedStorage:
    return MappedStorage(inner, EncryptedValues(keys))


class Told:
    """Collects events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, events: Sequence[Event]) -> None:
        self.events += events

    @property
    def values(self) -> list[bytes | None]:
        return [None if event.current is None else event.current.value for event in self.events]


# Whatever the mapping


@pytest.mark.parametrize("data", ["", LARGE])
async def test_what_others_have_stored_is_read_as_values(
    inner: MemoryStorage, storage: MappedStorage, mapping: Mapping, data: str
) -> None:
    await inner.create(f"{KEYS}a", mapping.stored_elsewhere("a", value("a", data)))
    await storage.create(f"{KEYS}b", value("b"))
    assert [item.value for item in (await storage.range(KEYS)).items] == [value("a", data), value("b")]
    found = await storage.get(f"{KEYS}a")
    assert found is not None
    assert found.value == value("a", data)
    assert storage.seals
    event = await storage.delete(f"{KEYS}a", expected_revision=found.mod_revision)
    assert event.previous is not None
    assert event.previous.value == value("a", data)


@pytest.mark.parametrize("data", ["", LARGE])
async def test_what_is_written_is_told_as_it_was_given(storage: MappedStorage, data: str) -> None:
    delivered = Told()
    await storage.subscribe(KEYS, after_revision=1, deliver=delivered)
    given = value("a", data)
    made = await storage.create(f"{KEYS}a", given)
    changed = await storage.update(f"{KEYS}a", value("a"), expected_revision=made.mod_revision)
    assert (made.value, changed.value) == (given, value("a"))
    assert delivered.values == [given, value("a")]
    assert delivered.events[0].current is not None
    assert delivered.events[0].current.value is given, "it is not mapped there and back"
    assert delivered.events[1].previous is not None
    assert delivered.events[1].previous.value == given


async def test_who_is_refused_sees_what_is_there(storage: MappedStorage) -> None:
    made = await storage.create(f"{KEYS}a", value("a"))
    with pytest.raises(KeyExists) as taken:
        await storage.create(f"{KEYS}a", value("a", "other"))
    assert taken.value.current == made
    with pytest.raises(Conflict) as lost:
        await storage.update(f"{KEYS}a", value("a", "other"), expected_revision=1)
    assert lost.value.current == made
    with pytest.raises(Conflict) as kept:
        await storage.delete(f"{KEYS}a", expected_revision=1)
    assert kept.value.current == made


async def test_events_wait_behind_a_large_one_and_so_does_the_revision(inner: MemoryStorage, mapping: Mapping) -> None:
    lagging, delivered = LaggingFeeds(), Told()
    storage = MappedStorage(inner, mapping.values, lagging)
    await storage.subscribe(KEYS, after_revision=1, deliver=delivered)
    small = await inner.create(f"{KEYS}a", mapping.stored_elsewhere("a", value("a")))
    large = await inner.create(f"{KEYS}b", mapping.stored_elsewhere("b", value("b", LARGE)))
    last = await inner.create(f"{KEYS}c", mapping.stored_elsewhere("c", value("c")))
    assert delivered.values == [value("a")]
    assert (inner.revision, storage.revision) == (last.mod_revision, small.mod_revision)
    wait_for = lagging.wait_for(last.mod_revision)
    assert wait_for is not None
    await wait_for
    assert delivered.values == [value("a"), value("b", LARGE), value("c")]
    assert [event.revision for event in delivered.events] == [small.mod_revision, large.mod_revision, last.mod_revision]
    assert storage.revision == last.mod_revision
    assert lagging.wait_for(last.mod_revision) is None


async def test_the_past_is_told_before_the_subscription_begins(
    inner: MemoryStorage, storage: MappedStorage, mapping: Mapping
) -> None:
    made = await inner.create(f"{KEYS}a", mapping.stored_elsewhere("a", value("a", LARGE)))
    await inner.update(f"{KEYS}a", mapping.stored_elsewhere("a", value("a")), expected_revision=made.mod_revision)
    delivered = Told()
    await storage.subscribe(KEYS, after_revision=1, deliver=delivered)
    assert delivered.values == [value("a", LARGE), value("a")]
    assert delivered.events[1].previous is not None
    assert delivered.events[1].previous.value == value("a", LARGE)


async def test_who_no_longer_follows_is_told_nothing(
    inner: MemoryStorage, storage: MappedStorage, mapping: Mapping
) -> None:
    delivered = Told()
    subscription = await storage.subscribe(KEYS, after_revision=1, deliver=delivered)
    made = await inner.create(f"{KEYS}a", mapping.stored_elsewhere("a", value("a", LARGE)))
    subscription.cancel()
    await storage.wait_until(made.mod_revision)
    assert delivered.events == []
    assert storage.revision == made.mod_revision


async def test_a_subscriber_that_is_owed_too_much_is_told_as_it_is_stored_and_goes_on(
    inner: MemoryStorage, storage: MappedStorage, mapping: Mapping, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped, "MOST_WAITING", 2)
    delivered = Told()
    await storage.subscribe(KEYS, after_revision=1, deliver=delivered)
    stored = [mapping.stored_elsewhere(name, value(name, LARGE)) for name in "abcd"]
    for name, each in zip("abc", stored, strict=False):
        await inner.create(f"{KEYS}{name}", each)
    assert delivered.values == stored[:3]
    assert storage.revision == inner.revision
    last = await inner.create(f"{KEYS}d", stored[3])
    await storage.wait_until(last.mod_revision)
    assert delivered.values == [*stored[:3], value("d", LARGE)]


async def test_a_subscriber_that_fails_later_is_ended_and_holds_nobody_up(
    inner: MemoryStorage, storage: MappedStorage, mapping: Mapping, caplog: pytest.LogCaptureFixture
) -> None:
    calls = 0

    def fails(events: Sequence[Event]) -> None:
        nonlocal calls
        calls += 1
        raise ValueError("no room")

    await storage.subscribe(KEYS, after_revision=1, deliver=fails)
    for name in "ab":
        last = await inner.create(f"{KEYS}{name}", mapping.stored_elsewhere(name, value(name, LARGE)))
    await storage.wait_until(last.mod_revision)
    await inner.create(f"{KEYS}c", mapping.stored_elsewhere("c", value("c")))
    assert (calls, storage.revision) == (1, inner.revision)
    assert "a subscription failed and is cancelled" in caplog.text


# Forms of objects


async def test_values_are_handed_on_as_they_are(inner: MemoryStorage) -> None:
    storage = MappedStorage(inner, StoredObjects(form(JSON)))
    delivered = Told()
    await storage.subscribe(KEYS, after_revision=1, deliver=delivered)
    given = value("a")
    await storage.create(f"{KEYS}a", given)
    assert delivered.events[0].current is not None
    assert delivered.events[0].current.value is given
    assert not storage.seals
    stored = await inner.get(f"{KEYS}a")
    assert stored is not None
    assert stored.value is given


async def test_values_are_stored_in_the_form_that_is_written(inner: MemoryStorage) -> None:
    await MappedStorage(inner, StoredObjects(form(PROTOBUF))).create(f"{KEYS}a", value("a"))
    stored = await inner.get(f"{KEYS}a")
    assert stored is not None
    assert stored.value == form(PROTOBUF).stored(value("a"))


async def test_what_is_no_object_is_told_by_its_key(inner: MemoryStorage) -> None:
    storage = MappedStorage(inner, StoredObjects(form(JSON)))
    delivered = Told()
    await storage.subscribe(KEYS, after_revision=1, deliver=delivered)
    await inner.create(f"{KEYS}a", b"spoilt")
    assert delivered.values == [b"spoilt"]  # which nobody can present
    with pytest.raises(Undecodable, match=f"{KEYS}a cannot be read: it is no object"):
        await storage.range(KEYS)
    with pytest.raises(Undecodable):
        await storage.subscribe(KEYS, after_revision=1, deliver=delivered)


async def test_a_value_is_stale_if_it_would_be_stored_in_another_form(inner: MemoryStorage) -> None:
    await inner.create(f"{KEYS}a", value("a") + b"\n")
    await inner.create(f"{KEYS}b", form(PROTOBUF).stored(value("b")))
    later = json.dumps({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c"}, "later": 1})
    await inner.create(f"{KEYS}c", later.encode())
    for media_type, expected in ((JSON, [False, True, True]), (PROTOBUF, [True, False, True])):
        storage = MappedStorage(inner, StoredObjects(form(media_type)))
        assert [await storage.is_stale(f"{KEYS}{name}") for name in "abc"] == expected


# Encrypted values


async def test_events_wait_for_a_key_that_is_fetched_in_order(
    inner: MemoryStorage, encrypted: MappedStorage, keys: KeyService
) -> None:
    delivered = Told()
    await encrypted.subscribe(KEYS, after_revision=1, deliver=delivered)
    keys.missing.add("b")
    for name in "abc":
        last = await inner.create(f"{KEYS}{name}", keys.seal(value(name), f"{KEYS}{name}".encode()))
    assert delivered.values == [value("a")]
    await keys.asked.wait()
    assert encrypted.revision == last.mod_revision - 2
    keys.answer.set_result(None)
    await encrypted.wait_until(last.mod_revision)
    assert delivered.values == [value("a"), value("b"), value("c")]


async def test_an_event_whose_key_cannot_be_had_is_told_as_it_is_stored_in_its_place(
    inner: MemoryStorage, encrypted: MappedStorage, keys: KeyService, caplog: pytest.LogCaptureFixture
) -> None:
    delivered = Told()
    await encrypted.subscribe(KEYS, after_revision=1, deliver=delivered)
    keys.missing.add("a")
    sealed = keys.seal(value("a"), f"{KEYS}a".encode())
    await inner.create(f"{KEYS}a", sealed)
    last = await inner.create(f"{KEYS}b", keys.seal(value("b"), f"{KEYS}b".encode()))
    keys.answer.set_exception(TransformError("the plugin is away"))
    await encrypted.wait_until(last.mod_revision)
    assert delivered.values == [sealed, value("b")]
    assert f"{KEYS}a cannot be decrypted for its watchers" in caplog.text
    assert "the plugin is away" in caplog.text


async def test_a_subscription_is_refused_if_too_much_comes_while_a_key_of_the_past_is_fetched(
    inner: MemoryStorage, encrypted: MappedStorage, keys: KeyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped, "MOST_WAITING", 2)
    await encrypted.create(f"{KEYS}a", value("a"))
    keys.missing.add("a")
    delivered = Told()
    subscribing = asyncio.ensure_future(encrypted.subscribe(KEYS, after_revision=1, deliver=delivered))
    await keys.asked.wait()
    for name in "bcde":
        await encrypted.create(f"{KEYS}{name}", value(name))
    keys.answer.set_result(None)
    with pytest.raises(StorageUnavailable, match="too many events wait"):
        await subscribing
    assert delivered.events == []
    await encrypted.create(f"{KEYS}f", value("f"))
    assert delivered.events == []


async def test_who_is_refused_is_not_kept_waiting_for_a_key(encrypted: MappedStorage, keys: KeyService) -> None:
    await encrypted.create(f"{KEYS}a", value("a"))
    keys.missing.add("a")
    with pytest.raises(KeyExists) as taken:
        await encrypted.create(f"{KEYS}a", value("a"))
    assert taken.value.current.value.startswith(b"k8s:enc:"), "nobody takes it for a value"


async def test_what_cannot_be_decrypted_is_told_by_its_key(inner: MemoryStorage, encrypted: MappedStorage) -> None:
    await inner.create(f"{KEYS}a", b"k8s:enc:aesgcm:v1:spoilt")
    for read in (encrypted.get(f"{KEYS}a"), encrypted.range(KEYS), encrypted.is_stale(f"{KEYS}a")):
        with pytest.raises(Unreadable, match=f'unable to transform key "{KEYS}a"'):
            await read
