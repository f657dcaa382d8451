"""Object metadata: what a create and an update may hold."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.meta.v1 import Condition, ManagedFieldsEntry, ObjectMeta, OwnerReference
from steersman.machinery.errors.field import Path
from steersman.machinery.validation import object_meta
from steersman.machinery.validation.conditions import validate_conditions
from steersman.machinery.validation.formats import is_dns1123_label, is_dns1123_subdomain, is_qualified_name
from steersman.machinery.validation.managed_fields import validate_managed_fields

HERE = Path("metadata")


def created(*, namespaced: Any = True, name_validator: Any = object_meta.name_is_dns_subdomain, **members: Any) -> Any:
    meta = ObjectMeta(**{"name": "a", "namespace": "ns" if namespaced else "", **members})
    found = object_meta.validate_object_meta(meta, namespaced=namespaced, name_validator=name_validator, path=HERE)
    return list(map(str, found))


def updated(new: Any, old: Any) -> Any:
    common = {"name": "a", "namespace": "ns", "uid": "u", "resource_version": "1"}
    found = object_meta.validate_object_meta_update(
        ObjectMeta(**{**common, **new}), ObjectMeta(**{**common, **old}), HERE
    )
    return list(map(str, found))


def test_plain_metadata_passes() -> None:
    assert created() == []
    assert created(namespaced=False) == []
    assert created(labels={"a": "b"}, annotations={"Example.com/A": "any\n"}, finalizers=["example.com/x"]) == []


def test_name_is_required_and_checked() -> None:
    assert created(name="") == ["metadata.name: Required value: name or generateName is required"]
    (message,) = is_dns1123_subdomain("A")
    assert created(name="A") == [f'metadata.name: Invalid value: "A": {message}']


def test_generated_name_may_end_in_a_dash() -> None:
    assert created(generate_name="a-") == []
    (message,) = is_dns1123_subdomain("A")
    assert created(generate_name="A-b-") == [f'metadata.generateName: Invalid value: "A-b-": {message}']
    assert len(created(generate_name="é-")) == 1


def test_namespace_belongs_to_namespaced_kinds_only() -> None:
    assert created(namespace="") == ["metadata.namespace: Required value"]
    (message,) = is_dns1123_label("a.b")
    assert created(namespace="a.b") == [f'metadata.namespace: Invalid value: "a.b": {message}']
    assert created(namespaced=False, namespace="ns") == ["metadata.namespace: Forbidden: not allowed on this type"]


def test_generation_is_not_negative() -> None:
    assert created(generation=-1) == ["metadata.generation: Invalid value: -1: must be greater than or equal to 0"]


def test_labels_and_annotations_are_checked() -> None:
    (key,) = is_qualified_name("a b")
    assert created(labels={"a b": "x"}) == [f'metadata.labels: Invalid value: "a b": {key}']
    assert created(annotations={"a b": "x"}) == [f'metadata.annotations: Invalid value: "a b": {key}']
    text = 'metadata.labels: Invalid value: "-": a valid label must be an empty string or consist of '
    assert created(labels={"a": "-"})[0].startswith(text)


def test_annotations_are_bounded_together() -> None:
    limit = 256 * 1024
    assert created(annotations={"a": "x" * (limit - 1)}) == []
    too_long = "metadata.annotations: Too long: may not be more than 262144 bytes"
    assert created(annotations={"a": "x" * limit}) == [too_long]
    assert created(annotations={"a": "é" * (limit // 2)}) == [too_long]


def owner(**members: Any) -> Any:
    return OwnerReference(**{"api_version": "v1", "kind": "Pod", "name": "n", "uid": "u", **members})


@pytest.mark.parametrize(
    ("reference", "error"),
    [
        (owner(api_version=""), '.apiVersion: Invalid value: "": version must not be empty'),
        (owner(api_version="a/b/c"), '.apiVersion: Invalid value: "a/b/c": version must not be empty'),
        (owner(api_version="a/"), '.apiVersion: Invalid value: "a/": version must not be empty'),
        (owner(kind=""), '.kind: Invalid value: "": must not be empty'),
        (owner(name=""), '.name: Invalid value: "": must not be empty'),
        (owner(uid=""), '.uid: Invalid value: "": must not be empty'),
        (
            owner(kind="Event"),
            ': Invalid value: {"apiVersion":"v1","kind":"Event","name":"n","uid":"u"}: '
            "/v1, Kind=Event is disallowed from being an owner",
        ),
    ],
)
def test_owner_reference_is_complete(reference: Any, error: str) -> None:
    assert created(owner_references=[reference]) == [f"metadata.ownerReferences{error}"]


def test_only_one_owner_is_the_controller() -> None:
    references = [owner(controller=True), owner(controller=False), owner(controller=True, name="m")]
    (error,) = created(owner_references=references)
    assert error.startswith('metadata.ownerReferences: Invalid value: [{"apiVersion":"v1",')
    assert error.endswith(
        ': Only one reference can have Controller set to true. Found "true" in references for Pod/n and Pod/m'
    )


def test_finalizers_are_checked() -> None:
    (message,) = is_qualified_name("a b")
    assert created(finalizers=["a b"]) == [f'metadata.finalizers: Invalid value: "a b": {message}']
    assert created(finalizers=["orphan", "foregroundDeletion"]) == [
        'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: '
        "finalizer orphan and foregroundDeletion cannot be both set"
    ]


def test_managed_fields_are_checked() -> None:
    entries = [
        ManagedFieldsEntry(operation="Apply", fields_type="FieldsV1", manager="m"),
        ManagedFieldsEntry(operation="Create", fields_type="FieldsV2", manager="é\x07", subresource="s" * 257),
        ManagedFieldsEntry(operation="Update", manager="m" * 129),
    ]
    assert list(map(str, validate_managed_fields(entries, Path("m")))) == [
        'm[1].operation: Invalid value: "Create": must be `Apply` or `Update`',
        'm[1].fieldsType: Invalid value: "FieldsV2": must be `FieldsV1`',
        'm[1].manager: Invalid value: "é\\a": invalid character U+0007 (at position 2)',
        "m[1].subresource: Too long: may not be more than 256 bytes",
        "m[2].manager: Too long: may not be more than 128 bytes",
    ]


@pytest.mark.parametrize(
    ("new", "old", "errors"),
    [
        ({}, {}, []),
        ({"labels": {"a": "b"}, "generation": 2}, {"generation": 1}, []),
        (
            {"resource_version": ""},
            {},
            ['metadata.resourceVersion: Invalid value: "": must be specified for an update'],
        ),
        ({"generation": 1}, {"generation": 2}, ["metadata.generation: Invalid value: 1: must not be decremented"]),
        ({"name": "b"}, {}, ['metadata.name: Invalid value: "b": field is immutable']),
        ({"namespace": "b"}, {}, ['metadata.namespace: Invalid value: "b": field is immutable']),
        ({"uid": "b"}, {}, ['metadata.uid: Invalid value: "b": field is immutable']),
        (
            {"creation_timestamp": None},
            {"creation_timestamp": "2024-01-01T00:00:00Z"},
            ["metadata.creationTimestamp: Invalid value: null: field is immutable"],
        ),
        (
            {"deletion_timestamp": "2024-01-01T00:00:00Z"},
            {},
            ['metadata.deletionTimestamp: Invalid value: "2024-01-01T00:00:00Z": field is immutable'],
        ),
        (
            {"deletion_grace_period_seconds": 1},
            {},
            ["metadata.deletionGracePeriodSeconds: Invalid value: 1: field is immutable"],
        ),
        ({"finalizers": ["x"]}, {}, []),
    ],
)
def test_update_keeps_what_is_immutable(new: dict[str, Any], old: dict[str, Any], errors: list[Any]) -> None:
    assert updated(new, old) == errors


def test_deleted_object_takes_no_more_finalizers() -> None:
    old = {"deletion_timestamp": "2024-01-01T00:00:00Z", "finalizers": ["x", "y"]}
    assert updated({**old, "finalizers": ["y"]}, old) == []
    assert updated({**old, "finalizers": ["x", "z", "w"]}, old) == [
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"w", "z"}'
    ]


def test_path_segment_names_may_be_almost_anything() -> None:
    assert object_meta.name_is_path_segment("system:a b", False) == []
    assert object_meta.name_is_path_segment("..", False) == ["may not be '..'"]
    assert object_meta.name_is_path_segment("..", True) == []
    assert object_meta.name_is_path_segment("a/b", True) == ["may not contain '/'"]


def condition(**members: Any) -> Any:
    plain = {"type": "Ready", "status": "True", "reason": "R", "last_transition_time": "2024-01-01T00:00:00Z"}
    return Condition(**{**plain, **members})


@pytest.mark.parametrize(
    ("members", "errors"),
    [
        ({}, []),
        ({"status": "yes"}, ['c[0].status: Unsupported value: "yes": supported values: "False", "True", "Unknown"']),
        (
            {"observed_generation": -1},
            ["c[0].observedGeneration: Invalid value: -1: must be greater than or equal to zero"],
        ),
        ({"last_transition_time": None}, ["c[0].lastTransitionTime: Required value"]),
        ({"reason": ""}, ["c[0].reason: Required value"]),
        ({"reason": "x" * 1025}, ["c[0].reason: Too long: may not be more than 1024 bytes"]),
        ({"message": "x" * 32769}, ["c[0].message: Too long: may not be more than 32768 bytes"]),
    ],
)
def test_conditions_are_checked(members: dict[str, Any], errors: list[Any]) -> None:
    assert list(map(str, validate_conditions([condition(**members)], Path("c")))) == errors


def test_condition_types_are_unique() -> None:
    found = validate_conditions([condition(), condition()], Path("c"))
    assert list(map(str, found)) == ['c[1].type: Duplicate value: "Ready"']


def test_condition_reason_has_a_form() -> None:
    (error,) = validate_conditions([condition(reason="1")], Path("c"))
    assert error.detail.startswith("a condition reason must start with alphabetic character, ")
    assert error.detail.endswith(
        "'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"
    )
