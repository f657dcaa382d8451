"""Tests of mutating expressions: merged configurations, patches, and errors."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.admission_rules.answers import AuthorizerAnswers
from steersman.admission_rules.mutating import MutatingRules, MutationError
from steersman.api.admissionregistration.v1 import MutatingAdmissionPolicySpec
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.machinery.managed_fields.builtin import schema_of_kind
from tests.admission_rules.requests import Authorizer, inputs

SCHEMA = schema_of_kind(GroupVersionKind("", "v1", "ConfigMap"))


def config_map(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": data}


async def _mutated_object(obj: Any, *, apply: str = "", patch: str = "") -> Any:
    mutation: dict[str, Any] = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": apply}}
    if patch:
        mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}
    rules = MutatingRules(from_plain(MutatingAdmissionPolicySpec, {"mutations": [mutation]}))
    ((mutate, is_patch),) = rules.mutations
    assert is_patch is bool(patch)
    answers = AuthorizerAnswers(Authorizer().ask)
    return await answers.run(mutate, inputs(obj), answers, SCHEMA)


async def test_what_is_merged_leaves_the_object_as_it_is() -> None:
    before = config_map(a="1")
    made = await _mutated_object(before, apply="Object{data: {'b': object.data.a}, ?immutable: optional.none()}")
    assert made == config_map(a="1", b="1")
    assert before == config_map(a="1")


async def test_a_field_that_may_be_missing_is_null() -> None:
    assert (await _mutated_object(config_map(a="1"), apply="Object{immutable: optional.none()}"))["immutable"] is None


async def test_a_configuration_cannot_be_of_another_kind() -> None:
    assert (await _mutated_object(config_map(), apply="Object{kind: 'Foo', apiVersion: 'bar'}"))["kind"] == "ConfigMap"


async def test_a_failed_test_leaves_the_object() -> None:
    before = config_map(a="1")
    patch = "[JSONPatch{op: 'remove', path: '/data/a'}, JSONPatch{op: 'test', path: '/data/a', value: 1}]"
    assert await _mutated_object(before, patch=patch) is before


async def test_objects_in_patches_are_maps() -> None:
    patch = "[JSONPatch{op: 'add', path: '/data', value: Object.data{z: 'a', ?y: optional.of('b')}}]"
    assert (await _mutated_object(config_map(a="1"), patch=patch))["data"] == {"z": "a", "y": "b"}


@pytest.mark.parametrize(
    ("given", "message", "error_type"),
    [
        ({"apply": "object"}, "must evaluate to Object but got dyn", "invalid_error"),
        ({"apply": "nothing"}, "compilation failed: ERROR: <input>:1:1: undeclared reference", "compile_error"),
        (
            {"apply": "Object{data: Object.data{x: object.none}}"},
            "expression 'Object{data: Object.data{x: object.none}}' resulted in error: no such key: none",
            "invalid_error",
        ),
        (
            {"patch": "[JSONPatch{op: 'add', path: '/data', value: Object.data{z: Object.zz{}}}]"},
            'type mismatch: unexpected type name "Object.zz", expected "Object.data.z"',
            "invalid_error",
        ),
        (
            {"patch": "[JSONPatch{op: 'add', path: '/data', value: {1: 'a'}}]"},
            "JSONPath valueExpression evaluated to a type that could not marshal to JSON: unsupported type conversion "
            "from 'int' to string",
            "invalid_error",
        ),
        ({"apply": "Object{data: {1: 'x'}}"}, "invalid return type: *dynamic.ObjectVal", "invalid_error"),
        (
            {"apply": "Object{data: {'p': timestamp('2020-01-01T00:00:00Z')}}"},
            "error applying patch: failed to convert patch object to typed object: .data.p: expected string, got "
            "&value.valueUnstructured{Value:time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC)}",
            "invalid_error",
        ),
        (
            {"apply": "Object{data: null}"},
            "error applying patch: failed to convert patch object to typed object: .data: expected map, got &{NULL_VALUE}",
            "invalid_error",
        ),
        (
            {"apply": "Object{immutable: duration('1s')}"},
            "error applying patch: failed to convert patch object to typed object: .immutable: expected boolean, got "
            "&{1s}",
            "invalid_error",
        ),
        (
            {"apply": "Object{metadata: Object.metadata{creationTimestamp: quantity('1')}}"},
            "error applying patch: failed to convert patch object to typed object: .metadata.creationTimestamp: expected "
            "any scalar, got &{1}",
            "invalid_error",
        ),
        (
            {"apply": "Object{metadata: Object.metadata{finalizers: [null]}}"},
            "error applying patch: failed to convert patch object to typed object: .metadata.finalizers[={{undefined}}]: "
            "expected string, got &value.valueUnstructured{Value:0}",
            "invalid_error",
        ),
        (
            {"apply": "Object{metadata: Object.metadata{ownerReferences: [Object.metadata.ownerReferences{uid: 1u}]}}"},
            "error applying patch: failed to convert patch object to typed object: "
            ".metadata.ownerReferences[uid={{undefined}}].uid: expected string, got &value.valueUnstructured{Value:0x1}",
            "invalid_error",
        ),
        (
            {"apply": "Object{metadata: {'labels': {'a': 'b'}}}"},
            "error applying patch: failed to convert patch object to typed object: .metadata.labels: expected map, got "
            "&{map[a:b]}",
            "invalid_error",
        ),
        (
            {"patch": "[JSONPatch{op: 'add', path: '/data', value: {'a': optional.none()}}]"},
            "JSONPath valueExpression evaluated to a type that could not marshal to JSON: optional.none() dereference",
            "invalid_error",
        ),
        (
            {"patch": "[JSONPatch{op: 'add', path: '/data', value: authorizer.requestResource}]"},
            "JSONPath valueExpression evaluated to a type that could not marshal to JSON: type conversion error from "
            "'kubernetes.authorization.ResourceCheck' to '*structpb.Value'",
            "invalid_error",
        ),
        ({"patch": "[JSONPatch{path: '/data', value: 1}]"}, "JSON Patch: Unexpected kind: ", "invalid_error"),
    ],
)
async def test_why_it_cannot_is_told(given: dict[str, str], message: str, error_type: str) -> None:
    with pytest.raises(MutationError) as caught:
        await _mutated_object(config_map(a="1"), **given)
    assert str(caught.value).startswith(message)
    assert caught.value.error_type == error_type


DOUBLED = "[[1]]" + ".map(x, [x, x])" * 40


@pytest.mark.parametrize(
    "mutation",
    [
        {"patch": f"[JSONPatch{{op: 'add', path: '/data/x', value: {DOUBLED}}}]"},
        {"apply": f"Object{{spec: {DOUBLED}}}"},
        {"apply": "Object{spec: [Object.spec{}]" + ".map(x, Object.spec{a: x, b: x})" * 40 + "}"},
        {"patch": "lists.range(9000).map(i, JSONPatch{op: 'add', path: '/data/x', value: object.data})"},
        {"patch": "lists.range(9000).map(i, JSONPatch{op: 'add', path: '/data/x', value: object.data.text})"},
    ],
)
async def test_what_is_made_is_no_larger_than_any_object_may_be(mutation: dict[str, str]) -> None:
    data = {f"k{each}": "v" for each in range(100)}
    with pytest.raises(StatusError) as caught:
        await _mutated_object(config_map(text="x" * 5000, **data), **mutation)
    assert caught.value.code == 413
