"""Conversion between stored values and served bodies, also for values from other servers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.core.v1 import ConfigMap
from steersman.api.meta.v1 import ObjectMeta, OwnerReference
from steersman.api.rbac.v1 import ClusterRole, PolicyRule
from steersman.api.storage.v1 import CSINode, CSINodeSpec
from steersman.kinds.built_in import built_in
from steersman.kinds.labels import labels_of

MAPS_KIND = built_in(ConfigMap)
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
    value = MAPS_KIND.value(obj)
    assert obj.metadata.resource_version == before
    assert b"resourceVersion" not in value or "resourceVersion" in repr(obj)
    body = MAPS_KIND.present(value, revision)
    found = MAPS_KIND.decode(body)
    assert found.metadata.resource_version == str(revision)
    found.metadata.resource_version = before
    assert found == obj
    assert MAPS_KIND.body_at(body, 7) == MAPS_KIND.present(value, 7)


@given(MAPS, st.integers(1, 2**63 - 1), st.booleans(), st.randoms())
def test_a_value_in_another_order_or_layout_is_presented_alike(
    obj: ConfigMap, revision: int, spaces: Any, random: Any
) -> None:
    document = json.loads(MAPS_KIND.value(obj))
    document["metadata"]["resourceVersion"] = "3"

    def shuffled(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        items = [(key, shuffled(each)) for key, each in value.items()]
        random.shuffle(items)
        return dict(items)

    value = json.dumps(shuffled(document), indent=1 if spaces else None).encode()
    body = MAPS_KIND.present(value, revision)
    found = MAPS_KIND.decode(body)
    assert found.metadata.resource_version == str(revision)
    found.metadata.resource_version = obj.metadata.resource_version
    assert found == obj
    assert MAPS_KIND.body_at(body, 7) == MAPS_KIND.present(value, 7)


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
    body = MAPS_KIND.present(value, 9)
    assert body.count(b'"resourceVersion":"9"') == body.count(b"resourceVersion") == 1
    assert json.loads(b"{" + body)["metadata"]["resourceVersion"] == "9"


def test_members_of_a_later_version_harm_nobody() -> None:
    later = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","uid":"u","later":{"x":1}},"also":[1]}'
    assert MAPS_KIND.decode(MAPS_KIND.present(later, 4)).metadata.name == "a"
    own_order = HEAD + b'"name":"a","uid":"u","later":{"x":1}},"data":{"k":"v"},"also":[1]}'
    body = MAPS_KIND.present(own_order, 4)
    assert MAPS_KIND.decode(body).data == {"k": "v"}
    assert labels_of(body) == ({}, "a", "")


def test_empty_lists_are_stored_as_null_where_null_is_printed() -> None:
    kind = built_in(CSINode)
    node = CSINode(metadata=ObjectMeta(name="n", annotations={"text": '":[]'}), spec=CSINodeSpec(drivers=[]))
    assert json.loads(kind.value(node))["spec"] == {"drivers": None}


def test_an_empty_list_that_is_null_when_it_is_not_set_is_stored_as_null() -> None:
    kind = built_in(ClusterRole)
    empty = ClusterRole(metadata=ObjectMeta(name="a", annotations={"says": '{"rules":[]}'}), rules=[])
    stored = json.loads(kind.value(empty))
    assert stored["rules"] is None
    assert stored["metadata"]["annotations"] == {"says": '{"rules":[]}'}
    nested = ClusterRole(metadata=ObjectMeta(name="a"), rules=[PolicyRule(verbs=[], resources=["pods"])])
    assert json.loads(kind.value(nested))["rules"] == [{"verbs": None, "resources": ["pods"]}]
