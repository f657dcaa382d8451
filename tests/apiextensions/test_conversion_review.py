"""The parts of a webhook's answer that are accepted, and the error texts for the others, as recorded from
kube-apiserver.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from steersman.api.meta.v1 import ObjectMeta
from steersman.apiextensions.conversion_review import CALL, ReviewError, accept_converted, converted_objects, review_of
from steersman.kinds.custom import CustomKind
from steersman.kinds.open import OpenObject
from steersman.machinery.identity.schema import GroupVersionKind

UID = "b8d0"
V1, BETA = "apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"
SCHEMA = {
    "type": "object",
    "properties": {"spec": {"type": "object", "properties": {"host": {"type": "string", "default": "none"}}}},
}
FOO = CustomKind(GroupVersionKind("e.x", "v2", "Foo"), "FooList", json.dumps(SCHEMA).encode())
TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


def answer(response: Any = None, **more: Any) -> dict[str, Any]:
    """Return the answer of a webhook that has converted one object, changed by `response` and `more`."""
    whole = {"uid": UID, "result": {"status": "Success"}, "convertedObjects": [{}]}
    if isinstance(response, dict):
        whole |= response
    return {"kind": "ConversionReview", "apiVersion": V1, "response": whole} | more


def without(value: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: each for key, each in value.items() if key != name}


def test_a_review_asks_for_objects_as_they_are() -> None:
    review = json.loads(review_of("v1beta1", UID, "e.x/v2", [b'{"a":1}', b'{"b":2}']))
    assert review == {
        "kind": "ConversionReview",
        "apiVersion": BETA,
        "request": {"uid": UID, "desiredAPIVersion": "e.x/v2", "objects": [{"a": 1}, {"b": 2}]},
        "response": {"uid": "", "convertedObjects": None, "result": {"metadata": {}}},
    }


@pytest.mark.parametrize(
    "data",
    [
        json.dumps(answer()),
        json.dumps(answer())[:-1] + ', "kind": "ConversionReview"}',
        json.dumps(answer(unknown=1)),
        json.dumps(answer(request={"uid": "x", "objects": []}), indent=1),
        "kind: ConversionReview\napiVersion: apiextensions.k8s.io/v1\nresponse:\n  uid: b8d0\n  result: {status: Success}\n"
        "  convertedObjects: [{}]\n",
    ],
)
def test_answers_may_be_written_in_many_ways(data: Any) -> None:
    assert converted_objects(data.encode(), "v1", UID, 1) == [b"{}"]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (
            "not json",
            f"couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type "
            f"{TYPE_META}",
        ),
        (
            "[]",
            f"couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type "
            f"{TYPE_META}",
        ),
        (
            '{"kind": NaN}',
            "couldn't get version/kind; json parse error: invalid character 'N' looking for beginning of value",
        ),
        (
            json.dumps(answer()) + " {}",
            "couldn't get version/kind; json parse error: invalid character '{' after top-level value",
        ),
        ("{}", f"expected webhook response of {V1}, Kind=ConversionReview, got /, Kind="),
        (without(answer(), "kind"), f"expected webhook response of {V1}, Kind=ConversionReview, got {V1}, Kind="),
        (
            without(answer(), "apiVersion"),
            f"expected webhook response of {V1}, Kind=ConversionReview, got /, Kind=ConversionReview",
        ),
        (
            answer(kind="Pod", apiVersion="v1"),
            'no kind "Pod" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
        ),
        (answer(kind="Pod"), f'no kind "Pod" is registered for version "{V1}" in scheme "pkg/runtime/scheme.go:111"'),
        (answer(kind="Status", apiVersion="v1"), "converting (v1.Status) to (v1.ConversionReview): unknown conversion"),
        (answer(apiVersion=BETA), "converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion"),
        (without(answer(), "response"), "no response provided"),
        (
            answer() | {"response": "text"},
            "json: cannot unmarshal string into Go struct field ConversionReview.response of "
            "type v1.ConversionResponse",
        ),
        (
            answer({"convertedObjects": "text"}),
            "json: cannot unmarshal string into Go struct field ConversionResponse."
            "response.convertedObjects of type []runtime.RawExtension",
        ),
        (
            answer({"result": "text"}),
            "json: cannot unmarshal string into Go struct field ConversionResponse.response.result of type v1.Status",
        ),
        (answer({"uid": "other"}), f'expected response.uid="{UID}", got "other"'),
        (answer({"result": {"status": "Failure", "message": "I will not"}}), "I will not"),
        (answer({"result": {"status": "Failure"}}), "response.result.status was 'Failure', not 'Success'"),
        (answer({"result": {}}), "response.result.status was '', not 'Success'"),
    ],
)
def test_answers_that_cannot_be_used(data: Any, text: str) -> None:
    body = data if isinstance(data, str) else json.dumps(data)
    with pytest.raises(ReviewError) as raised:
        converted_objects(body.encode(), "v1", UID, 1)
    assert str(raised.value) == f" failed: {text}"


@pytest.mark.parametrize(("objects", "found"), [([], 0), (None, 0), ([{}, {}], 2)])
def test_there_must_be_as_many_objects_as_were_sent(objects: list[Any] | None, found: int) -> None:
    data = json.dumps(answer({"convertedObjects": objects})).encode()
    with pytest.raises(ReviewError, match=rf"^ returned {found} objects, expected 1$"):
        converted_objects(data, "v1", UID, 1)


def test_the_older_review_is_read_more_leniently() -> None:
    data = json.dumps(answer({"uid": "other"}, apiVersion=BETA)).encode()
    assert converted_objects(data, "v1beta1", UID, 1) == [b"{}"]
    with pytest.raises(ReviewError, match=r"^ failed: no response provided$"):
        converted_objects(b"{}", "v1beta1", UID, 1)
    with pytest.raises(ReviewError) as raised:
        converted_objects(json.dumps(answer()).encode(), "v1beta1", UID, 1)
    text = " failed: converting (v1.ConversionReview) to (v1beta1.ConversionReview): unknown conversion"
    assert (str(raised.value), raised.value.failure) == (text, CALL)


# Objects

ORIGINAL = OpenObject(
    ObjectMeta(
        name="a",
        namespace="ns",
        uid="u",
        generation=3,
        labels={"l": "1"},
        annotations={"a": "1"},
        finalizers=["e.x/wait"],
    )
)
METADATA = {"name": "a", "namespace": "ns", "uid": "u", "labels": {"l": "1"}, "annotations": {"a": "1"}}


def an_object(metadata: Any = None, **more: Any) -> dict[str, Any]:
    """Return a converted object; `metadata` adds to that of the original."""
    return {"apiVersion": "e.x/v2", "kind": "Foo", "metadata": METADATA | (metadata or {}), **more}


def accept(value: Any) -> OpenObject:
    return accept_converted(value if isinstance(value, bytes) else json.dumps(value).encode(), ORIGINAL, FOO)


def test_only_labels_and_annotations_of_an_object_may_be_changed() -> None:
    changed = accept(
        an_object(
            {
                "labels": {"new": "2"},
                "annotations": None,
                "finalizers": [],
                "generation": 9,
                "resourceVersion": "7",
                "ownerReferences": [{"name": "x"}],
                "deletionTimestamp": "2001-01-01T00:00:00Z",
                "managedFields": [],
                "creationTimestamp": "2001-01-01T00:00:00Z",
            }
        )
    ).metadata
    assert changed == ObjectMeta(
        name="a", namespace="ns", uid="u", generation=3, labels={"new": "2"}, finalizers=["e.x/wait"]
    )
    assert ORIGINAL.metadata.labels == {"l": "1"}


def test_what_the_schema_does_not_know_is_pruned_and_nothing_is_defaulted_or_validated() -> None:
    found = accept(an_object({"unknown": 1}, spec={"host": 7, "other": 1}, top=1))
    assert found.content == {"spec": {"host": 7}}
    assert accept(an_object(spec={})).content == {"spec": {}}
    assert accept(an_object(spec="text")).content == {"spec": "text"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            an_object() | {"apiVersion": "e.x/v1"},
            "returned invalid object at index 0: invalid groupVersion (expected e.x/v2, received e.x/v1)",
        ),
        (
            without(an_object(), "apiVersion"),
            "returned invalid object at index 0: invalid groupVersion (expected e.x/v2, received )",
        ),
        (
            an_object() | {"kind": "Bar"},
            "returned invalid object at index 0: invalid kind (expected Foo, received Bar)",
        ),
        (an_object({"name": "z"}), "returned invalid object: must have the same name: a != z"),
        (an_object({"namespace": "z"}), "returned invalid object: must have the same namespace: ns != z"),
        (an_object({"uid": "z"}), "returned invalid object: must have the same UID: u != z"),
        (without(an_object(), "metadata"), "returned invalid object: must have the same name: a != "),
        (an_object() | {"metadata": "t"}, "returned invalid object: must have the same name: a != "),
        (
            an_object({"labels": "t"}),
            "returned invalid metadata: invalid metadata.labels of type string in converted object",
        ),
        (
            an_object({"labels": {"new": 3}}),
            "returned invalid metadata: metadata.labels[new] must be a string, but is int64 in converted object",
        ),
        (
            an_object({"annotations": ["x"]}),
            "returned invalid metadata: invalid metadata.annotations of type []interface {} in converted object",
        ),
    ],
)
def test_objects_that_are_not_what_was_sent(value: Any, text: str) -> None:
    with pytest.raises(ReviewError) as raised:
        accept(value)
    assert str(raised.value) == f" {text}"


@pytest.mark.parametrize(
    ("metadata", "path"),
    [
        ({"labels": {"new": "!!"}}, "metadata.labels"),
        ({"labels": {"!!": "x"}}, "metadata.labels"),
        ({"annotations": {"!!": "x"}}, "metadata.annotation"),
    ],
)
def test_labels_and_annotations_that_are_changed_must_be_valid(metadata: dict[str, Any], path: str) -> None:
    with pytest.raises(ReviewError) as raised:
        accept(an_object(metadata))
    assert str(raised.value).startswith(f' returned invalid metadata: {path}: Invalid value: "!!": ')


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"null", "unexpected end of JSON input"),
        (b'"text"', "json: cannot unmarshal string into Go value of type map[string]interface {}"),
        (b"[1]", "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (b'{"apiVersion": "e.x/v2"}', "Object 'Kind' is missing in '{\"apiVersion\": \"e.x/v2\"}'"),
    ],
)
def test_what_is_no_object_is_told_alone(raw: bytes, text: str) -> None:
    with pytest.raises(ReviewError) as raised:
        accept(raw)
    assert (str(raised.value), raised.value.is_complete) == (text, True)


@pytest.mark.parametrize(
    "response",
    [
        {"convertedObjects": [[]] * 300_000},
        {"convertedObjects": [{"a": [1] * 300_000}]},
        {"result": {"status": "Success", "details": {"causes": [{}] * 300_000}}},
    ],
)
def test_an_answer_of_very_many_values_is_not_decoded(response: Any) -> None:
    """Decoding five million empty lists took 47 seconds, and blocked the event loop for half of them."""
    with pytest.raises(ReviewError, match=r"^ failed: the answer has more than 262144 values$"):
        converted_objects(json.dumps(answer(response)).encode(), "v1", UID, 1)


def test_many_commas_in_texts_are_no_values() -> None:
    found = converted_objects(json.dumps(answer({"convertedObjects": ["," * 300_000]})).encode(), "v1", UID, 1)
    assert len(found[0]) == 300_002


def test_yaml_of_too_many_values_is_told_as_an_answer_that_failed() -> None:
    head = f"# it is YAML\napiVersion: {V1}\nkind: ConversionReview\nresponse:\n  uid: {UID}\n  convertedObjects:\n"
    with pytest.raises(ReviewError, match=r"^ failed: Request entity too large"):
        converted_objects(head.encode() + b"  - {a: 1}\n" * 100_000, "v1", UID, 1)
