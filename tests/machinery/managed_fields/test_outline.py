"""The cache of the fields of new objects by their outlines: its results must equal computed ones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.kinds.built_in import find_built_in
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.machinery.managed_fields import FieldManager, fields_at
from steersman.machinery.managed_fields.schema import Schema
from tests.machinery.managed_fields.plain_kind import OBJECTS, ROOT, PlainKind

TIME = "2026-01-01T00:00:00Z"
EMPTIES = st.sampled_from([{}, {"metadata": {}}, {"metadata": {}, "items": None, "flag": False}, {"either": {}}])


def made(manager: FieldManager, obj: Any) -> list[Any]:
    """Return the managers and fields in the entries of a new object."""
    return [(each.manager, bytes(each.fields_v1 or b"")) for each in manager.create(obj, "me", TIME)]


@given(st.lists(OBJECTS, min_size=2, max_size=8), EMPTIES, st.booleans())
def test_what_is_remembered_is_what_is_worked_out(objects: list[Any], empty: Any, resets: bool) -> None:
    kind = PlainKind(Schema(ROOT))
    kind.empty = empty
    given_resets = {kind.api_version: fields_at("flag")} if resets else {}
    remembering = FieldManager(kind, resets=given_resets)
    for obj in [*objects, *objects]:
        assert made(remembering, obj) == made(FieldManager(kind, resets=given_resets), obj)


POD: dict[str, Any] = {
    "metadata": {"name": "a", "labels": {"x": "y"}},
    "spec": {
        "containers": [
            {"name": "c", "image": "i", "ports": [{"containerPort": 80, "protocol": "TCP"}], "env": [{"name": "E"}]}
        ],
        "tolerations": [{"key": "k"}],
    },
}


def test_pods_that_differ_in_values_alone_have_one_outline() -> None:
    kind = find_built_in(GroupVersionKind("", "v1", "Pod"))
    assert kind is not None
    manager = FieldManager(kind)
    others: list[Any] = [{**POD, "metadata": {"name": "b", "labels": {"x": "z"}}}, {**POD, "metadata": {"name": "c"}}]
    first, second, third = [made(manager, kind.from_plain(each).obj) for each in (POD, *others)]
    assert first == second != third
    assert manager.fields_by_outline.count == 2


@pytest.mark.parametrize(
    "large", [{"metadata": {"labels": {"x" * 40_000: "y"}}}, {"nested": {str(number): None for number in range(4_000)}}]
)
def test_what_is_large_is_not_remembered(large: Any) -> None:
    manager = FieldManager(PlainKind(Schema(ROOT)))
    assert made(manager, large)
    assert manager.fields_by_outline.count == 0


def test_few_are_remembered() -> None:
    manager = FieldManager(PlainKind(Schema(ROOT)))
    for number in range(1_000):
        made(manager, {"metadata": {"labels": {str(number): ""}}})
    assert manager.fields_by_outline.count <= 128


def test_what_clients_choose_of_an_outline_takes_no_more_room_than_there_is() -> None:
    """Two thousand names in each object: a hundred of them would be thirty megabytes."""
    manager = FieldManager(PlainKind(Schema(ROOT)))
    for number in range(100):
        labels = {f"{number}.{each}": "" for each in range(2_000)}
        made(manager, {"metadata": {"labels": labels}})
    assert manager.fields_by_outline.count == 0
    most = 0
    for number in range(100):
        labels = {f"{number}.{each}": "" for each in range(1_000)}
        made(manager, {"metadata": {"labels": labels}})
        outlines = [*manager.fields_by_outline, *manager.fields_by_outline._old]
        most = max(most, sum(len(part) for outline in outlines for part in outline if isinstance(part, tuple)))
    assert 10_000 < most < 30_000


def test_pods_of_one_spec_have_the_fields_of_their_own_metadata_and_status() -> None:
    """The spec is recognized by its text, the rest by its outline."""
    kind = find_built_in(GroupVersionKind("", "v1", "Pod"))
    assert kind is not None
    remembering = FieldManager(kind)
    spec = {**POD["spec"], "nodeSelector": {f"label-{number}": "x" for number in range(20)}}
    others: list[dict[str, Any]] = [
        {"metadata": {"name": "a"}},
        {"metadata": {"name": "b", "labels": {"x": "y"}}},
        {"metadata": {"name": "c", "annotations": {"x": "y"}}, "status": {"phase": "Running"}},
        {"metadata": {"name": "d", "ownerReferences": [{"uid": "1", "name": "o"}]}},
        {"metadata": {"name": "e", "ownerReferences": [{"uid": "2", "name": "o"}]}},
    ]
    specs = [spec, {**spec, "hostname": "h"}, {**spec, "containers": [{"name": "other", "image": "i"}]}]
    for each in [*specs, *specs]:
        for other in others:
            obj: Any = {"spec": each, **other}
            made_anew = made(FieldManager(kind), kind.from_plain(obj).obj)
            assert made(remembering, kind.from_plain(obj).obj) == made_anew
    assert remembering.fields_by_spec.count == 15


def optional(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy of objects with some of the members."""
    return st.fixed_dictionaries({}, optional=members)


TEXTS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("cd"), max_size=2)
CONTAINERS = st.lists(
    optional(
        name=st.sampled_from("ab"),
        ports=st.lists(optional(containerPort=st.integers(1, 2), protocol=st.sampled_from(["TCP", "UDP"])), max_size=2),
        resources=optional(limits=st.dictionaries(st.sampled_from(["cpu", "memory"]), st.just("1"))),
        securityContext=optional(capabilities=optional(add=st.lists(st.sampled_from("ab"), max_size=2))),
        livenessProbe=optional(httpGet=optional(port=st.sampled_from([80, "http"])), periodSeconds=st.integers(0, 1)),
    ),
    max_size=2,
)
PODS = optional(
    metadata=optional(
        name=st.sampled_from("ab"),
        labels=TEXTS,
        annotations=TEXTS,
        finalizers=st.lists(st.sampled_from("ab"), max_size=2),
        ownerReferences=st.lists(optional(uid=st.sampled_from("ab"), name=st.sampled_from("ab")), max_size=2),
        creationTimestamp=st.sampled_from([None, TIME]),
    ),
    spec=optional(
        containers=st.none() | CONTAINERS,
        nodeSelector=TEXTS,
        hostNetwork=st.booleans(),
        volumes=st.lists(optional(name=st.sampled_from("ab"), emptyDir=optional(medium=st.just("Memory"))), max_size=2),
        securityContext=optional(runAsUser=st.integers(0, 1)),
    ),
    status=optional(phase=st.sampled_from(["", "Running"]), podIPs=st.lists(optional(ip=st.just("1")), max_size=1)),
)


@given(st.lists(PODS, min_size=2, max_size=12), st.booleans())
def test_what_is_remembered_of_a_class_is_what_is_worked_out(objects: list[Any], resets: bool) -> None:
    kind = find_built_in(GroupVersionKind("", "v1", "Pod"))
    assert kind is not None
    given_resets = {kind.api_version: fields_at("status")} if resets else {}
    remembering = FieldManager(kind, resets=given_resets)
    for each in [*objects, *objects]:
        obj = kind.from_plain(each).obj
        assert made(remembering, obj) == made(FieldManager(kind, resets=given_resets), obj)
