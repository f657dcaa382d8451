"""What the store serves of values, whoever wrote them."""

from __future__ import annotations

from steersman.machinery.large_work.slow_lane import SlowLane
from steersman.rest.bound import bind
from steersman.store.store import Store
from tests.store.store_client import CONFIG_MAPS, StoreClient


async def test_what_another_program_wrote_is_served_and_can_be_written(client: StoreClient) -> None:
    value = (
        b'{"apiVersion":"v1","kind":"ConfigMap","data":{"n":"1"},"metadata":{"uid":"u","namespace":"ns","name":"a"}}'
    )
    written = await client.store.storage.create("/registry/configmaps/ns/a", value)
    found = await client.get("a")
    assert found["metadata"] == {
        "name": "a", "namespace": "ns", "uid": "u", "resourceVersion": str(written.mod_revision),
    }  # fmt: skip
    assert (await client.set("a", 2))["data"] == {"n": "2"}
    assert (await client.store.storage.get("/registry/configmaps/ns/a")).value.startswith(
        b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{'
    )


async def test_objects_survive_a_restart_as_they_were(storage) -> None:
    first: Store = Store(bind(CONFIG_MAPS), storage, SlowLane())
    await first.start()
    made = await StoreClient(first).create("a", data={"k": "v"}, labels={"x": "y"})
    await first.stop()
    second: Store = Store(bind(CONFIG_MAPS), storage, SlowLane())
    await second.start()
    assert await StoreClient(second).get("a") == made
    await second.stop()


async def test_encodings_kept_with_objects_stay_within_their_bound(client: StoreClient) -> None:
    cacher = client.store.cacher
    cacher._representations_limit = 5_000
    for number in range(30):
        await client.create(f"a{number}")
    entries, _ = cacher.list("/registry/configmaps/")
    entries[0].representations = {"own": b"x"}  # made by somebody else
    for entry in entries:
        for _ in range(3):
            client.store.remember(entry, "table", b"x" * 200)

    def size() -> int:
        kept = [entry for entry in entries if entry.representations]
        return sum(len(entry.body) + sum(map(len, entry.representations.values())) for entry in kept)

    assert 3_000 < size() <= 5_000
    assert entries[0].representations is None
    assert entries[-1].representations == {"table": b"x" * 200}
    assert cacher._encoded_size == size()
    client.store.remember(entries[0], "table", b"x" * 10_000)
    assert cacher._encoded_size == size() == 0
