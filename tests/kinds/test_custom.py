"""Kinds with a schema: objects from clients and from storage are pruned and defaulted."""

from __future__ import annotations

import json

import pytest

from steersman.kinds.custom import CustomKind
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.identity.schema import GroupVersionKind


def kind(version: str = "v1", **properties: object) -> CustomKind:
    schema = {"type": "object", "properties": properties}
    return CustomKind(GroupVersionKind("e.x", version, "Foo"), "FooList", json.dumps(schema).encode())


A = {"type": "string", "default": "one"}
B = {"type": "integer"}
BODY = b'{"apiVersion":"e.x/v1","kind":"Foo","metadata":{"name":"n"},"b":1,"zz":2}'


def test_it_is_compiled_when_it_is_needed() -> None:
    found = kind(a=A)
    states = [found.is_cold]
    found.warm()
    assert [*states, found.is_cold] == [True, False]
    assert found.structural.has_defaults


def test_what_is_sent_is_pruned_and_defaulted() -> None:
    found = kind(a=A, b=B)
    read = found.read(BODY, "json", strict=True)
    assert read.warnings == ['unknown field "zz"']
    found.default(read.obj)
    assert read.obj.content == {"a": "one", "b": 1}


def test_what_this_kind_made_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found = kind(a=A, b=B)
    obj = found.read(BODY, "json", strict=False).obj
    value = found.value(obj)
    monkeypatch.setattr(type(found), "structural", None)
    assert json.loads(b"{" + found.present(value, 7))["metadata"]["resourceVersion"] == "7"


def test_large_values_are_remembered_however_many_small_ones_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    found = kind(a=B, x={"type": "string"})
    large, small = (found.new() for _ in range(2))
    large.content["x"] = "x" * 1_000_000
    values = [found.value(large)]
    for number in range(300):
        small.content["x"] = f"{number} {'x' * 10_000}"
        values.append(found.value(small))
    assert found.present(values[1], 7).startswith(b'"apiVersion"')  # a small object, which is evicted
    monkeypatch.setattr(type(found), "structural", None)
    for value in (values[0], values[-1], values[-50]):
        assert found.present(value, 7).startswith(b'"apiVersion"')
    with pytest.raises(AttributeError):
        found.present(values[1], 7)


def test_what_others_stored_is_made_to_fit() -> None:
    stored = kind(b=B, zz=B).value(kind(b=B, zz=B).read(BODY, "json", strict=False).obj)
    assert json.loads(b"{" + kind(a=A, b=B).present(stored, 7)) == {
        "a": "one",
        "apiVersion": "e.x/v1",
        "b": 1,
        "kind": "Foo",
        "metadata": {"generation": 1, "name": "n", "resourceVersion": "7"},
    }


def test_another_version_is_converted_when_it_is_stored() -> None:
    old, new = kind("v1", b=B, c=B), kind("v2", a=A, b=B)
    old.family = new.family = {"e.x/v1": old, "e.x/v2": new}
    obj = old.read(BODY.replace(b'"zz"', b'"c"'), "json", strict=False).obj
    value = new.value_as_is(new.converted(obj, old))
    assert json.loads(value) == {"apiVersion": "e.x/v2", "kind": "Foo", "metadata": {"name": "n"}, "b": 1}
    assert obj.content == {"b": 1, "c": 2}
    # what another version left unset is defaulted when it is read
    assert json.loads(b"{" + new.present(value, 1))["a"] == "one"


def test_a_copy_shares_nothing() -> None:
    found = kind(b={"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    obj = found.read(BODY.replace(b'"b":1', b'"b":{"c":1}'), "json", strict=False).obj
    copied = found.copy(obj)
    copied.content["b"]["c"] = 2
    copied.metadata.labels["a"] = "b"
    assert obj.content["b"] == {"c": 1}
    assert not obj.metadata.labels


def test_what_was_stored_in_another_version_is_presented_in_that() -> None:
    old, new = kind("v1", a=A, b=B), kind("v2", b=B)
    old.family = new.family = {"e.x/v1": old, "e.x/v2": new}
    body = new.present(BODY[:-8] + b"}", 9)
    assert json.loads(b"{" + body) == {
        "apiVersion": "e.x/v1",
        "kind": "Foo",
        "metadata": {"generation": 1, "name": "n", "resourceVersion": "9"},
        "a": "one",
        "b": 1,
    }


def test_metadata_of_embedded_objects_must_be_readable() -> None:
    inner = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    found = kind(b=inner)
    with pytest.raises(DecodeError):
        found.read(BODY.replace(b'"b":1', b'"b":{"metadata":7}'), "json", strict=False)
