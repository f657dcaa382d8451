"""End states, and their differences."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steersman.storage.interface import KeyValue
from steersman.stress.masking import Masker
from steersman.stress.state import Expectation, State, differences, state_of

UID = "0d9d5e5a-8c3f-4a8e-9a59-0c2a5d1f3b7{}"


def stored(*objects: dict[str, Any]) -> dict[str, KeyValue]:
    """Return objects as a store has them, by keys of their own."""
    keys = (f"/registry/{each['kind']}/{each['metadata']['name']}" for each in objects)
    return {
        key: KeyValue(key, json.dumps(each, separators=(",", ":")).encode(), 1, 1)
        for key, each in zip(keys, objects, strict=True)
    }


def obj(kind: str, name: str, uid: int = 0, **rest: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": UID.format(uid), **rest.pop("metadata", {})}
    return {"kind": kind, "apiVersion": "v1", "metadata": metadata, **rest}


def state(*objects: dict[str, Any]) -> State:
    return state_of({}, stored(*objects), Masker())


def texts(expected: State, actual: State) -> list[str]:
    return list(map(str, differences(expected, actual)))


def test_what_differs_between_equal_runs_does_not_count() -> None:
    one = obj(
        "ConfigMap",
        "a",
        1,
        metadata={
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "generation": 3,
            "managedFields": [{"manager": "x"}],
            "labels": {"pod-template-hash": "577b7c957b"},
        },
        status={
            "observedGeneration": 3,
            "pods": ["b", "a"],
            "conditions": [
                {"type": "A", "lastTransitionTime": "2026-01-01T00:00:00Z"},
                {"type": "B", "message": f"made {UID.format(5)}"},
            ],
            "pod": "web-7c5ddbdf54",
        },
    )
    other = obj(
        "ConfigMap",
        "a",
        2,
        metadata={
            "creationTimestamp": "2026-01-02T00:00:00Z",
            "generation": 5,
            "labels": {"pod-template-hash": "5bcb8584c6"},
            "annotations": {"stress.steersman.dev/touched": "1"},
        },
        status={
            "observedGeneration": 5,
            "pods": ["a", "b"],
            "conditions": [
                {"type": "B", "message": f"made {UID.format(6)}"},
                {"type": "A", "lastTransitionTime": "2026-01-02T00:00:00Z"},
            ],
            "pod": "web-7c5ddbdf99",
        },
    )
    assert texts(state(one), state(other)) == []


def test_differences_are_named_by_object_and_path() -> None:
    one = state(obj("ConfigMap", "a", data={"x": "1", "y": "1"}), obj("ConfigMap", "b"))
    other = state(obj("ConfigMap", "a", data={"x": "2", "z": "1"}), obj("ConfigMap", "c"))
    assert texts(one, other) == [
        'ConfigMap default/a: data.x: "2", was "1"',
        'ConfigMap default/a: data.y: missing, was "1"',
        'ConfigMap default/a: data.z: extra: "1"',
        "ConfigMap default/b: missing",
        "ConfigMap default/c: extra",
    ]


def test_objects_with_random_names_are_counted() -> None:
    one = state(obj("Pod", "web-7c5dd", metadata={"generateName": "web-"}))
    two = state(
        obj("Pod", "web-aaaaa", metadata={"generateName": "web-"}),
        obj("Pod", "web-x2k9z", metadata={"generateName": "web-"}),
    )
    assert texts(one, two) == ["Pod default/web-*: there are 2, not 1"]


def test_the_order_of_a_list_in_the_specification_counts() -> None:
    one, other = state(obj("A", "a", spec={"args": ["x", "y"]})), state(obj("A", "a", spec={"args": ["y", "x"]}))
    assert texts(one, other) == ['A default/a: spec.args[0]: "y", was "x"', 'A default/a: spec.args[1]: "x", was "y"']


def test_data_of_secrets_are_not_shown() -> None:
    one, other = (
        state(obj("Secret", "a", data={"key": "aGlkZGVu"})),
        state(obj("Secret", "a", data={"key": "b3BlbmVk"})),
    )
    assert texts(one, other) == ["Secret default/a: data.key: <hidden>, was <hidden>"]


def test_a_reference_to_an_owner_that_is_gone_counts() -> None:
    def owned(uid: int) -> dict[str, Any]:
        reference = {"kind": "ConfigMap", "name": "owner", "uid": UID.format(uid)}
        return obj("Pod", "a", 3, metadata={"ownerReferences": [reference]})

    one = state(obj("ConfigMap", "owner", 1), owned(1))
    other = state(obj("ConfigMap", "owner", 2), owned(1))
    assert texts(one, other) == [
        'Pod default/a: metadata.ownerReferences[0].uid: "<uid of no object>", was "<uid>"',
    ]


@pytest.mark.parametrize("kind", ["Event", "ConfigMap"])
def test_objects_of_the_start_count_only_if_they_change(kind: str) -> None:
    start = stored(obj(kind, "a", data={"x": "1"}))
    assert state_of(start, start, Masker()) == {}
    found = state_of(start, {}, Masker())
    assert list(found.values()) == ([] if kind == "Event" else [[{"removed": True}]])


def test_what_the_cluster_assigns_or_makes_by_itself_does_not_count() -> None:
    slices = obj(
        "EndpointSlice",
        "a-x2k9z",
        metadata={"labels": {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}},
    )
    lock = obj("ConfigMap", "lock", metadata={"annotations": {"control-plane.alpha.kubernetes.io/leader": "{}"}})
    one = state(obj("Service", "a", spec={"clusterIP": "10.0.0.1"}), slices, lock, obj("Endpoints", "a"))
    assert texts(one, state(obj("Service", "a", spec={"clusterIP": "10.0.0.2"}))) == []
    headless = state(obj("Service", "a", spec={"clusterIP": "None"}))
    assert texts(one, headless) == ['Service default/a: spec.clusterIP: "None", was "<assigned>"']


def test_places_that_differ_without_faults_do_not_count() -> None:
    expected = Expectation(["ConfigMap default/a: data.ignored"])
    expected.add(state(obj("ConfigMap", "a", data={"x": "1", "y": "1"}), obj("Pod", "a")))
    expected.add(state(obj("ConfigMap", "a", data={"x": "2", "y": "1"})))
    assert expected.unstable == ["ConfigMap default/a: data.x", "Pod default/a"]
    found = expected.differences(state(obj("ConfigMap", "a", data={"x": "3", "y": "2", "ignored": "1"})))
    assert list(map(str, found)) == ['ConfigMap default/a: data.y: "2", was "1"']
