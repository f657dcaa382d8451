"""Between stored values and served bodies, whoever wrote the values."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_client import CONFIG_MAPS, StoreClient

from steersman.api.core.v1 import ConfigMap
from steersman.api.meta.v1 import ObjectMeta, OwnerReference
from steersman.api.rbac.v1 import ClusterRole, PolicyRule
from steersman.api.storage.v1 import CSINode, CSINodeSpec
from steersman.machinery.slow_lane import SlowLane
from steersman.store.encoding import Encoding, labels_of
from steersman.store.store import Store

ENCODING = Encoding(ConfigMap, "", "v1")
TEXT = st.text(st.characters(blacklist_categories=["Cs"]), max_size=20)
NASTY = st.sampled_from(['"uid":"x"', '{"', "[", '","resourceVersion":"1', "\\", "<&>", "\u2028"]) | TEXT
OWNERS = st.builds(OwnerReference, name=NASTY, uid=NASTY)
METADATA = st.builds(
    ObjectMeta,
    name=NASTY,
    generate_name=NASTY,
    namespace=NASTY,
    uid=st.uuids().map(str) | st.just(""),
    resource_version=st.sampled_from(["", "5"]),
    labels=st.dictionaries(NASTY, NASTY, max_size=2),
    annotations=st.dictionaries(NASTY, NASTY, max_size=2),
    owner_references=st.lists(OWNERS, max_size=2),
)
MAPS = st.builds(ConfigMap, metadata=METADATA, data=st.dictionaries(NASTY, NASTY, max_size=2))


@given(MAPS, st.integers(1, 2**63 - 1))
def test_a_presented_value_is_the_object_with_its_revision(obj: ConfigMap, revision: int) -> None:
    before = obj.metadata.resource_version
    value = ENCODING.value(obj)
    assert obj.metadata.resource_version == before
    assert b"resourceVersion" not in value or "resourceVersion" in repr(obj)
    found = ENCODING.decode(ENCODING.present(value, revision))
    assert found.metadata.resource_version == str(revision)
    found.metadata.resource_version = before
    assert found == obj


@given(MAPS, st.integers(1, 2**63 - 1), st.booleans(), st.randoms())
def test_a_value_in_another_order_or_layout_is_presented_alike(obj: ConfigMap, revision: int, spaces, random) -> None:
    document = json.loads(ENCODING.value(obj))
    document["metadata"]["resourceVersion"] = "3"

    def shuffled(value):
        if not isinstance(value, dict):
            return value
        items = [(key, shuffled(each)) for key, each in value.items()]
        random.shuffle(items)
        return dict(items)

    value = json.dumps(shuffled(document), indent=1 if spaces else None).encode()
    found = ENCODING.decode(ENCODING.present(value, revision))
    assert found.metadata.resource_version == str(revision)
    found.metadata.resource_version = obj.metadata.resource_version
    assert found == obj


HEAD = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{'


@pytest.mark.parametrize(
    "value",
    [
        HEAD + b'"name":"a","ownerReferences":[{"apiVersion":"v1","kind":"X","name":"x","uid":"theirs"}]}}',
        HEAD + b'"name":"a","labels":{"uid":"theirs"},"uid":"own"}}',
        HEAD + b'"name":"a","uid":"own","resourceVersion":"3"}}',
        HEAD + b'"name":"a"}}',
        b'{"metadata":{"name":"a","uid":"own"},"kind":"ConfigMap","apiVersion":"v1"}',
    ],
)
def test_foreign_values_have_one_version_which_is_the_objects_own(value: bytes) -> None:
    body = ENCODING.present(value, 9)
    assert body.count(b'"resourceVersion":"9"') == body.count(b"resourceVersion") == 1
    assert json.loads(b"{" + body)["metadata"]["resourceVersion"] == "9"


def test_members_of_a_later_version_harm_nobody() -> None:
    later = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","uid":"u","later":{"x":1}},"also":[1]}'
    assert ENCODING.decode(ENCODING.present(later, 4)).metadata.name == "a"
    own_order = HEAD + b'"name":"a","uid":"u","later":{"x":1}},"data":{"k":"v"},"also":[1]}'
    body = ENCODING.present(own_order, 4)
    assert ENCODING.decode(body).data == {"k": "v"}
    assert labels_of(body) == ({}, "a", "")


def test_empty_lists_are_stored_as_null_where_null_is_printed() -> None:
    encoding = Encoding(CSINode, "storage.k8s.io", "v1")
    node = CSINode(metadata=ObjectMeta(name="n", annotations={"text": '":[]'}), spec=CSINodeSpec(drivers=[]))
    assert json.loads(encoding.value(node))["spec"] == {"drivers": None}


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
    assert (await client.store.storage.get("/registry/configmaps/ns/a")).value.startswith(HEAD)


async def test_objects_survive_a_restart_as_they_were(storage) -> None:
    services = SimpleNamespace(event_ttl=3600, slow_lane=SlowLane())
    first: Store = Store(CONFIG_MAPS, storage, services)
    await first.start()
    made = await StoreClient(first).create("a", data={"k": "v"}, labels={"x": "y"})
    await first.stop()
    second: Store = Store(CONFIG_MAPS, storage, services)
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


def test_an_empty_list_that_is_null_when_it_is_not_set_is_stored_as_null():
    encoding = Encoding(ClusterRole, "rbac.authorization.k8s.io", "v1")
    empty = ClusterRole(metadata=ObjectMeta(name="a", annotations={"says": '{"rules":[]}'}), rules=[])
    stored = json.loads(encoding.value(empty))
    assert stored["rules"] is None
    assert stored["metadata"]["annotations"] == {"says": '{"rules":[]}'}
    nested = ClusterRole(metadata=ObjectMeta(name="a"), rules=[PolicyRule(verbs=[], resources=["pods"])])
    assert json.loads(encoding.value(nested))["rules"] == [{"verbs": None, "resources": ["pods"]}]
