"""Tests of mutating policies: apply configurations, patches, refusals, and reinvocation."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from steersman.cel.regular import compile_pattern
from steersman.kinds.structs import StructKind
from steersman.machinery.large_work.sizes import is_large
from steersman.testing import Client
from tests.admission_plugins.policy.policies import CONFIG_MAPS, applying, create, define, enforce, patching


async def test_a_configuration_is_merged_and_owned_by_who_writes(client: Client) -> None:
    await enforce(client, "p", applying("Object{metadata: Object.metadata{labels: {'team': 'a'}}, data: {'x': 'y'}}"))
    made = (await create(client, "x", {"a": "b"}, labels={"app": "web"})).json()
    assert made["metadata"]["labels"] == {"app": "web", "team": "a"}
    assert made["data"] == {"a": "b", "x": "y"}
    assert len(made["metadata"]["managedFields"]) == 1


async def test_a_patch_is_applied_unless_a_test_of_it_fails(client: Client) -> None:
    key = "'/metadata/annotations/' + jsonpatch.escapeKey('a/b')"
    await enforce(
        client,
        "p",
        patching(
            "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {}}, "
            f"JSONPatch{{op: 'add', path: {key}, value: 'd'}}]",
            "[JSONPatch{op: 'test', path: '/data/a', value: 'z'}, JSONPatch{op: 'remove', path: '/data/a'}]",
            "[JSONPatch{op: 'copy', from: '/data/a', path: '/data/copy'}]",
        ),
    )
    made = (await create(client, "x", {"a": "b"})).json()
    assert made["metadata"]["annotations"] == {"a/b": "d"}
    assert made["data"] == {"a": "b", "copy": "b"}


async def test_mutations_see_what_those_before_have_made(client: Client) -> None:
    await enforce(client, "a", applying("Object{data: {'n': '1'}}", "Object{data: {'m': object.data.n + '2'}}"))
    await enforce(client, "b", applying("Object{data: {'o': object.data.m + '3'}}"))
    assert (await create(client, "x")).json()["data"] == {"n": "1", "m": "12", "o": "123"}


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (
            applying("Object{data: {'x': object.data.none}}"),
            "expression 'Object{data: {'x': object.data.none}}' resulted in error: no such key: none",
        ),
        (
            applying("Object{data: Object.metadata{x: 'o'}}"),
            'type mismatch: unexpected type name "Object.metadata", expected "Object.data", which matches field name path '
            "from root Object type",
        ),
        (
            applying("Object{wrong: 1}"),
            "error applying patch: failed to convert patch object to typed object: .wrong: field not declared in schema",
        ),
        (
            applying("Object{data: {'x': null}}"),
            "error applying patch: failed to convert patch object to typed object: .data.x: expected string, got "
            "&value.valueUnstructured{Value:0}",
        ),
        (
            applying(
                "Object{metadata: Object.metadata{ownerReferences: "
                "[Object.metadata.ownerReferences{uid: 'a', name: 'n'}]}}"
            ),
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: "
            ".metadata.ownerReferences[0]",
        ),
        (
            patching("[JSONPatch{op: 'remove', path: '/data/zz'}]"),
            "JSON Patch: error in remove for path: '/data/zz': Unable to remove nonexistent key: zz: missing value",
        ),
        (
            patching("[JSONPatch{op: 'add', path: '/data/x', value: quantity('1')}]"),
            "JSONPath valueExpression evaluated to a type that could not marshal to JSON: type conversion error from "
            "'Quantity' to '*structpb.Value'",
        ),
    ],
)
async def test_what_cannot_be_made_refuses_the_request(client: Client, policy: dict[str, Any], message: str) -> None:
    await enforce(client, "p", policy)
    refused = await create(client, "x", {"a": "b"})
    text = f"policy 'p' with binding 'p-0' denied request: {message}"
    assert (refused.status, refused.json()["reason"], refused.json()["message"]) == (403, "Invalid", text)
    assert refused.json()["details"]["causes"] == [{"message": text}]


async def test_what_cannot_be_made_is_left_out_where_the_policy_says_so(client: Client) -> None:
    await enforce(client, "p", applying("Object{wrong: 1}", "Object{data: {'x': 'y'}}", failurePolicy="Ignore"))
    assert (await create(client, "x")).json()["data"] == {"x": "y"}


async def test_a_patch_that_makes_no_such_object_is_an_error_whatever_the_policy_says(client: Client) -> None:
    await enforce(client, "p", patching("[JSONPatch{op: 'add', path: '/q', value: 'y'}]", failurePolicy="Ignore"))
    failed = await create(client, "x")
    assert failed.status == 500
    assert failed.json()["message"] == 'Internal error occurred: strict decoding error: unknown field "q"'


@pytest.mark.parametrize(
    ("value", "becomes"),
    [
        ("duration('90s')", "90s"),
        ("timestamp('2020-01-01T00:00:00Z')", "2020-01-01T00:00:00Z"),
        ("b'abc'", "YWJj"),
        ("9007199254740993", "9007199254740993"),
        ("optional.of('a')", "a"),
    ],
)
async def test_values_of_patches_become_json_as_protobufs_do(client: Client, value: str, becomes: str) -> None:
    await enforce(client, "p", patching(f"[JSONPatch{{op: 'add', path: '/data/x', value: {value}}}]"))
    assert (await create(client, "x", {"a": "b"})).json()["data"]["x"] == becomes


async def test_who_wants_it_is_asked_again_when_the_object_was_changed_after_it(client: Client) -> None:
    count = "Object{data: {'count': has(object.data.count) ? object.data.count + 'i' : 'i'}}"
    await enforce(client, "a-again", applying(count, reinvocationPolicy="IfNeeded"))
    await enforce(client, "b-once", applying("Object{data: {'other': 'x'}}"))
    made = await create(client, "x", {"a": "b"})
    assert made.json()["data"] == {"a": "b", "count": "ii", "other": "x"}


async def test_who_does_not_want_it_is_asked_once(client: Client) -> None:
    count = "Object{data: {'count': has(object.data.count) ? object.data.count + 'i' : 'i'}}"
    await enforce(client, "a", applying(count))
    await enforce(client, "b", applying("Object{data: {'other': 'x'}}", reinvocationPolicy="IfNeeded"))
    assert (await create(client, "x", {"a": "b"})).json()["data"]["count"] == "i"


async def test_a_policy_is_asked_once_for_each_parameter(client: Client) -> None:
    for name in ("one", "two"):
        await create(client, name, {"key": name}, labels={"param": "yes"})
    policy = applying(
        "Object{data: {params.data.key: 'x'}}",
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        matchConditions=[{"name": "not-one", "expression": "object.metadata.name != 'y' || params.data.key != 'one'"}],
    )
    binding = {"paramRef": {"selector": {"matchLabels": {"param": "yes"}}, "parameterNotFoundAction": "Deny"}}
    await enforce(client, "p", policy, binding)
    assert (await create(client, "x")).json()["data"] == {"one": "x", "two": "x"}
    assert (await create(client, "y")).json()["data"] == {"two": "x"}


async def test_custom_resources_are_changed_and_pruned(client: Client) -> None:
    spec = {"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "integer"}}}
    path = await define(client, "things", "Thing", spec=spec)
    rule = {"operations": ["CREATE"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["things"]}
    await enforce(client, "a", applying("Object{spec: Object.spec{a: 'x'}}", rules=[rule]))
    await enforce(client, "b", patching("[JSONPatch{op: 'add', path: '/spec/n', value: 3}]", rules=[rule]))
    made = await client.post(path, {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}})
    assert made.json()["spec"] == {"a": "x", "n": 3}


async def test_updates_are_changed_too_and_mutations_are_counted(own_client: Client) -> None:
    rule = {"operations": ["UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    await enforce(own_client, "p", applying("Object{data: {'old': oldObject.data.a}}", rules=[rule]))
    made = (await create(own_client, "x", {"a": "1"})).json()
    made["data"]["a"] = "2"
    changed = await own_client.put(f"{CONFIG_MAPS}/x", made)
    assert changed.json()["data"] == {"a": "2", "old": "1"}
    metrics = (await own_client.get("/metrics")).body.decode()
    assert (
        'apiserver_mutating_admission_policy_check_total{error_type="no_error",policy="p",policy_binding="p-0"} 1'
        in metrics
    )


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({"kind": "ConfigMap", "apiVersion": "v1"}, 201, ""),
        ({"kind": ""}, 201, ""),
        ({"apiVersion": None}, 201, ""),
        (
            {"kind": "Secret"},
            500,
            "failed to convert object: converting (v1.Secret) to (core.ConfigMap): unknown conversion",
        ),
        ({"kind": "Pod", "immutable": True}, 500, 'strict decoding error: unknown field "immutable"'),
        (
            {"kind": "Nothing"},
            500,
            'no kind "Nothing" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
        ),
        (
            {"apiVersion": "apps/v1"},
            500,
            'no kind "ConfigMap" is registered for version "apps/v1" in scheme "pkg/runtime/scheme.go:111"',
        ),
        ({"apiVersion": "a/b/c"}, 500, "unexpected GroupVersion string: a/b/c"),
        (
            {"kind": 1},
            500,
            "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct "
            "field .kind of type string",
        ),
    ],
)
async def test_a_patch_may_name_another_kind_which_the_object_is_not(
    client: Client, changes: dict[str, Any], code: int, message: str
) -> None:
    made = ", ".join(
        f"JSONPatch{{op: 'add', path: '/{name}', value: {to_cel(value)}}}" for name, value in changes.items()
    )
    await enforce(client, "p", patching(f"[{made}]"))
    answer = await create(client, "x")
    assert answer.status == code, answer.body
    if message:
        assert answer.json()["message"] == f"Internal error occurred: {message}"


def to_cel(value: Any) -> str:
    """Return a CEL literal of a value."""
    return f"'{value}'" if isinstance(value, str) else json.dumps(value)


@pytest.mark.parametrize(
    ("name", "value", "code", "message"),
    [
        ("kind", "Secret", 422, 'Secret.example.com "x" is invalid: kind: Invalid value: "Secret": must be Thing'),
        (
            "apiVersion",
            "v2",
            500,
            "Internal error occurred: failed to convert object: /v2, Kind=Thing is unstructured "
            'and is not suitable for converting to "example.com/v1"',
        ),
        ("kind", "", 500, "Internal error occurred: Object 'Kind' is missing in '{"),
    ],
)
async def test_a_custom_resource_stays_of_its_kind(
    client: Client, name: str, value: str, code: int, message: str
) -> None:
    path = await define(client, "things", "Thing")
    rule = {"operations": ["CREATE"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["things"]}
    patch = f"[JSONPatch{{op: 'add', path: '/{name}', value: '{value}'}}]"
    await enforce(client, "p", patching(patch, rules=[rule]))
    made = await client.post(path, {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}})
    assert made.status == code, made.body
    assert made.json()["message"].startswith(message)


async def test_regular_expressions_change_the_first_request_too(client: Client) -> None:
    compile_pattern.cache_clear()
    found = "Object{metadata: Object.metadata{labels: {'version': object.metadata.name.find('v[0-9]+$')}}}"
    await enforce(client, "p", applying(found))
    assert (await create(client, "web-v2")).json()["metadata"]["labels"] == {"version": "v2"}


async def test_an_object_that_policies_make_large_is_worked_on_beside_the_loop(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await enforce(client, "a", applying("Object{data: {'x': lists.range(20000).map(i, 'four').join()}}"))
    await enforce(client, "b", applying("Object{data: {'y': 'z'}}"))
    await create(client, "first")  # expressions are compiled
    loop, value = threading.get_ident(), StructKind.value
    encoded: list[bool] = []

    def noted(self: Any, obj: Any) -> bytes:
        made = value(self, obj)
        if is_large(made):
            encoded.append(threading.get_ident() == loop)
        return made

    monkeypatch.setattr(StructKind, "value", noted)
    made = (await create(client, "x")).json()["data"]
    assert (len(made["x"]), made["y"]) == (80_000, "z")
    assert encoded
    assert not any(encoded)
