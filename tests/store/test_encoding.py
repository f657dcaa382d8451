"""The encodings of values that the store serves, whoever wrote the values."""

from __future__ import annotations

from steersman.api.core.v1 import ConfigMap
from steersman.rest.bound import bind
from steersman.storage.interface import Storage
from steersman.store.store import Store
from tests.store.store_client import CONFIG_MAPS, StoreClient


async def test_what_another_program_wrote_is_served_and_can_be_written(client: StoreClient) -> None:
    value = (
        b'{"apiVersion":"v1","kind":"ConfigMap","data":{"n":"1"},"metadata":{"uid":"u","namespace":"ns","name":"a"}}'
    )
    written = await client.store.storage.create("/registry/configmaps/ns/a", value)
    found = await client.get("a")
    assert found["metadata"] == {
        "name": "a",
        "namespace": "ns",
        "uid": "u",
        "resourceVersion": str(written.mod_revision),
    }
    assert (await client.set("a", 2))["data"] == {"n": "2"}
    stored = await client.store.storage.get("/registry/configmaps/ns/a")
    assert stored is not None
    assert stored.value.startswith(b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{')


async def test_objects_survive_a_restart_as_they_were(storage: Storage) -> None:
    first: Store[ConfigMap] = Store(bind(CONFIG_MAPS), storage)
    await first.start()
    made = await StoreClient(first).create("a", data={"k": "v"}, labels={"x": "y"})
    await first.stop()
    second: Store[ConfigMap] = Store(bind(CONFIG_MAPS), storage)
    await second.start()
    assert await StoreClient(second).get("a") == made
    await second.stop()


async def test_encodings_kept_with_objects_stay_within_their_bound(client: StoreClient) -> None:
    cacher = client.store.cacher
    cacher.representations_limit = 5_000
    for number in range(30):
        await client.create(f"a{number:02}")
    entries, _ = cacher.list("/registry/configmaps/")
    entries[0].representations = {"own": b"x"}  # made by somebody else

    def size() -> int:
        return sum(len(each) for entry in entries for each in (entry.representations or {}).values())

    def walk() -> int:
        """Return how many of the encodings were cached; missing ones are cached by this."""
        found = 0
        for entry in entries:
            if entry.representations and "table" in entry.representations:
                found += 1
            else:
                client.store.remember(entry, "table", b"x" * 200)
            assert cacher.encoded_size == size() <= 5_000
        return found

    assert walk() == 0
    assert entries[0].representations == {"own": b"x", "table": b"x" * 200}
    for _ in range(5):
        assert walk() >= 22  # of the 24 that there is room for
    client.store.remember(entries[0], "table", b"x" * 10_000)
    assert cacher.encoded_size == size() > 4_000
    kept = [entry for entry in entries if entry.representations]
    for entry in kept[:10]:
        await client.delete(entry.key.rpartition("/")[2])
    assert cacher.encoded_size == size()
    (missing, *_) = (entry for entry in entries if not entry.representations)
    client.store.remember(missing, "table", b"x" * 1_500)
    assert missing.representations
    assert len([entry for entry in kept[:10] if entry.representations]) < 10
    assert cacher.encoded_size == size() <= 5_000
