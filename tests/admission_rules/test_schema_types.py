"""Tests of types from schemas: members are created at their first use, and need a schema."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.admission_rules.schema_types import MAX_NESTING, SchemaTypes
from steersman.cel import types
from steersman.cel.declared import DeclaredType
from steersman.cel.types import Kind

TEXT = {"type": "string"}


def root(schema: dict[str, Any], **schemas: Any) -> tuple[DeclaredType, dict[str, DeclaredType]]:
    """Return the type of a schema named A, and the object types created so far; references refer to `schemas`."""
    objects: dict[str, DeclaredType] = {}
    found = SchemaTypes(schemas.__getitem__, objects).root(schema, "A")
    assert found is not None
    return found, objects


def member(schema: dict[str, Any], **schemas: Any) -> DeclaredType | None:
    """Return the type of the member `a` of an object, from its schema."""
    found, _ = root({"type": "object", "properties": {"a": schema}}, **schemas)
    assert found.fields is not None
    return found.fields.get("a")


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (TEXT, types.STRING),
        ({"type": "integer"}, types.INT),
        ({"type": "number"}, types.DOUBLE),
        ({"type": "boolean"}, types.BOOL),
        ({"type": ["string", "null"]}, types.STRING),
        ({"type": "string", "format": "byte"}, types.BYTES),
        ({"type": "string", "format": "date"}, types.TIMESTAMP),
        ({"type": "string", "format": "date-time"}, types.TIMESTAMP),
        ({"type": "string", "format": "x"}, types.STRING),
        ({"type": "string", "format": "duration"}, types.DURATION),
        ({"format": "int-or-string", "oneOf": [{"type": "integer"}, TEXT]}, types.DYN),
        ({"x-kubernetes-int-or-string": True}, types.DYN),
        ({"type": "array", "items": TEXT}, types.list_of(types.STRING)),
        ({"type": "object", "additionalProperties": TEXT}, types.map_of(types.STRING, types.STRING)),
        ({"type": "array", "items": {"type": "array", "items": TEXT}}, types.list_of(types.list_of(types.STRING))),
        ({"$ref": "text"}, types.STRING),
        ({"allOf": [{"$ref": "text"}], "default": {}}, types.STRING),
    ],
)
def test_types_of_members(schema: dict[str, Any], expected: types.Type) -> None:
    found = member(schema, text=TEXT)
    assert found is not None
    assert found.type is expected


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"oneOf": [TEXT]},
        {"x-kubernetes-preserve-unknown-fields": True},
        {"type": "array"},
        {"type": "array", "items": {}},
        {"type": "object", "additionalProperties": {}},
        {"type": "array", "items": [TEXT]},
    ],
)
def test_what_has_no_type_is_not_there(schema: dict[str, Any]) -> None:
    assert member(schema) is None


def test_types_with_members_are_named_by_where_they_are() -> None:
    inner = {"type": "object", "properties": {"in": TEXT}}
    found, objects = root({"type": "object", "properties": {"a-b": {"type": "array", "items": inner}}})
    assert set(objects) == {"A"}  # until something below it is asked for
    assert found.fields is not None
    assert found.fields["a__dash__b"].type.text() == "list(A.a__dash__b.@idx)"
    below = objects["A.a__dash__b.@idx"].fields
    assert below is not None
    assert list(below) == ["__in__"]
    assert len(below) == 1
    assert "nothing" not in below


def test_a_schema_within_itself_is_an_object_of_which_nothing_is_known() -> None:
    tree = {"type": "object", "properties": {"left": {"$ref": "tree"}, "leaf": TEXT}}
    objects: dict[Any, Any] = {}
    found = SchemaTypes({"tree": tree}.__getitem__, objects).root(tree, "A", "tree")
    assert found is not None
    assert found.fields is not None
    assert found.fields["left"].type.text() == "A.left"
    assert not objects["A.left"].fields


@pytest.mark.parametrize(
    "metadata", [{"type": "object"}, {"type": "object", "properties": {"name": {"type": "integer"}}}, {}]
)
def test_what_every_object_has_is_there_whatever_the_schema_says(metadata: dict[str, Any]) -> None:
    found, objects = root({"type": "object", "properties": {"kind": {"type": "integer"}, "metadata": metadata}})
    assert found.fields is not None
    assert {name: each.type.text() for name, each in found.fields.items()} == {
        "kind": "string",
        "apiVersion": "string",
        "metadata": "A.metadata",
    }
    below = objects["A.metadata"].fields
    assert below is not None
    assert {name: each.type for name, each in below.items()} == dict.fromkeys(("name", "generateName"), types.STRING)


def test_a_schema_that_says_all_of_it_keeps_its_metadata() -> None:
    metadata = {"type": "object", "properties": dict.fromkeys(("name", "generateName", "labels"), TEXT)}
    embedded = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "properties": {"kind": TEXT, "apiVersion": TEXT, "metadata": {"$ref": "meta"}},
    }
    found, objects = root({"type": "object", "properties": {"a": embedded}}, meta=metadata)
    assert found.fields is not None
    below = found.fields["a"].fields
    assert below is not None
    assert set(below["metadata"].fields or ()) == {"name", "generateName", "labels"}
    assert set(objects) >= {"A", "A.a", "A.a.metadata"}


def test_lists_of_lists_without_end_may_be_anything() -> None:
    schema: dict[str, Any] = TEXT
    for _ in range(10 * MAX_NESTING):
        schema = {"type": "array", "items": schema}
    found = member(schema)
    assert found is not None
    depth = 0
    while found.element is not None:
        found, depth = found.element, depth + 1
    assert (depth, found.type.kind) == (MAX_NESTING, Kind.DYN)
