"""Plain values into objects as upstream's unstructured converter does it; texts and results are upstream's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from steersman.api.apps.v1 import ControllerRevision, Deployment
from steersman.api.core.v1 import Pod, Secret, Service
from steersman.machinery.codec.serializer import to_plain
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.codec.unstructured import from_unstructured_with_validation


def deployment(**spec: Any) -> Deployment:
    return from_unstructured_with_validation(Deployment, {"spec": spec}).obj


def pod(**spec: Any) -> dict[str, Any]:
    return {"spec": spec}


def test_what_reads_as_json_is_the_same_object() -> None:
    found = from_unstructured_with_validation(
        Service, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
    ).obj
    assert (found.metadata.name, found.spec.ports[0].port) == ("s", 80)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [(5, 5), (2.0, 2), (5_000_000_000, 705_032_704), (-(2**31) - 1, 2**31 - 1), (1e30, 0), (2.0**40, 0)],
)
def test_numbers_are_cut_to_the_size_of_their_field(sent: Any, kept: int) -> None:
    assert deployment(replicas=sent).spec.replicas == kept


def test_null_is_nothing() -> None:
    found = from_unstructured_with_validation(
        Pod, {"metadata": None, **pod(containers=[None, {"name": None, "env": None}], nodeSelector={"a": None})}
    ).obj
    assert found.metadata.name == ""
    assert [each.name for each in found.spec.containers or ()] == ["", ""]
    assert found.spec.node_selector == {"a": ""}


def test_bytes_are_text_or_numbers() -> None:
    found = from_unstructured_with_validation(Secret, {"data": {"a": "eHk=", "b": [120, 377], "c": None, "d": ""}}).obj
    assert to_plain(found)["data"] == {"a": "eHk=", "b": "eHk=", "c": "", "d": ""}


def test_what_is_kept_as_json_has_its_keys_sorted_and_no_needless_fractions() -> None:
    found = from_unstructured_with_validation(ControllerRevision, {"data": {"b": {"d": 1.0, "c": 1.5}, "a": "1.0"}}).obj
    assert found.data is not None
    assert bytes(found.data) == b'{"a":"1.0","b":{"c":1.5,"d":1}}'


def test_numbers_of_other_types_read_as_go_writes_them() -> None:
    spec = {"strategy": {"rollingUpdate": {"maxSurge": 1.0, "maxUnavailable": "10%"}}}
    assert to_plain(deployment(**spec))["spec"]["strategy"] == spec["strategy"] | {
        "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "10%"}
    }


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"kind": 7}, "cannot convert int64 to string"),
        ({"spec": [1]}, "cannot restore struct from: slice"),
        ({"metadata": "x"}, "cannot restore struct from: string"),
        ({"spec": {"replicas": 2.5}}, "cannot convert float64 to int32"),
        ({"spec": {"replicas": "3"}}, "unrecognized type: int32"),
        ({"spec": {"replicas": True}}, "unrecognized type: int32"),
        ({"spec": {"paused": 1}}, "unrecognized type: bool"),
        ({"spec": {"template": {"spec": {"restartPolicy": 1}}}}, "cannot convert int64 to v1.RestartPolicy"),
        ({"spec": {"template": {"spec": {"restartPolicy": 1.5}}}}, "unrecognized type: string"),
        ({"spec": {"template": {"spec": {"restartPolicy": {}}}}}, "unrecognized type: string"),
        ({"spec": {"template": {"spec": {"nodeSelector": []}}}}, "cannot restore map from slice"),
        ({"spec": {"template": {"spec": {"containers": {"a": 1}}}}}, "cannot restore slice from map"),
        ({"spec": {"template": {"spec": {"containers": 1.5}}}}, "cannot restore slice from float64"),
        (
            {"spec": {"strategy": {"rollingUpdate": {"maxSurge": True}}}},
            "json: cannot unmarshal bool into Go value of type int32",
        ),
        (
            {"metadata": {"creationTimestamp": "bad"}},
            'parsing time "bad" as "2006-01-02T15:04:05Z07:00": cannot parse "bad" as "2006"',
        ),
        ({"metadata": {"creationTimestamp": 5}}, "json: cannot unmarshal number into Go value of type string"),
    ],
)
def test_what_a_field_cannot_take_is_told(document: dict[str, Any], told: str) -> None:
    with pytest.raises(DecodeError) as caught:
        from_unstructured_with_validation(Deployment, document)
    assert str(caught.value) == told


def test_bytes_that_are_not_base64_are_told() -> None:
    with pytest.raises(DecodeError, match="error decoding from json: illegal base64 data at input byte 0"):
        from_unstructured_with_validation(Secret, {"data": {"a": "x"}})


def test_the_first_error_in_the_order_of_the_type_is_told() -> None:
    with pytest.raises(DecodeError, match="unrecognized type: bool"):
        from_unstructured_with_validation(
            Deployment, {"spec": {"paused": "x", "template": {}, "progressDeadlineSeconds": "x"}}
        )


def test_unknown_fields_are_told_sorted_and_left_out() -> None:
    containers = [{"name": "a"}, {"name": "b", "zzz": 1, "ports": [{"x": {"y": 1}}]}]
    found = from_unstructured_with_validation(Pod, {"bogus": None, **pod(containers=containers, aaa=[])})
    assert found.warnings == [
        'unknown field "bogus"',
        'unknown field "spec.aaa"',
        'unknown field "spec.containers[1].ports[0].x"',
        'unknown field "spec.containers[1].zzz"',
    ]
    assert [each.name for each in found.obj.spec.containers or ()] == ["a", "b"]


def test_a_document_too_deep_is_told() -> None:
    deep: Any = 1
    for _ in range(3000):
        deep = [deep]
    with pytest.raises(DecodeError, match="exceeded max depth"):
        from_unstructured_with_validation(ControllerRevision, {"data": deep})


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["metadata", "spec", "ports", "port", "name", "labels", "type"]), inner)
    ),
    max_leaves=12,
)


NAMED = st.none() | st.dictionaries(st.sampled_from(["name", "labels", "type", "other"]), PLAIN, max_size=3)
DOCUMENTS = st.fixed_dictionaries(
    {}, optional={"metadata": NAMED, "spec": NAMED, "status": NAMED, "kind": st.text(), "other": PLAIN}
)


@given(DOCUMENTS)
def test_what_becomes_an_object_says_the_same_afterwards(document: Any) -> None:
    try:
        found = from_unstructured_with_validation(Service, document).obj
    except DecodeError:
        reject()
    again = from_unstructured_with_validation(Service, json.loads(json.dumps(to_plain(found))))
    assert (again.obj, again.warnings) == (found, [])
