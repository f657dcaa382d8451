"""CEL types of schemas, and the estimated sizes of their values."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.schema.compiling import compile_node
from steersman.validation_rules.declarations import MAX_REQUEST_SIZE, Declarations, Sized

MOST = MAX_REQUEST_SIZE - 2


def sized(schema: dict[str, Any], *, is_resource: bool = False) -> Sized | None:
    return Declarations().type_of(compile_node(schema), "T", is_resource=is_resource)


@pytest.mark.parametrize(
    ("schema", "kind", "most", "least"),
    [
        ({"type": "string"}, "string", MOST, 2),
        ({"type": "string", "maxLength": 5}, "string", 20, 2),
        ({"type": "string", "maxLength": -5}, "string", 0, 2),
        ({"type": "string", "enum": ["a", "long", 7]}, "string", 4, 2),
        ({"type": "string", "format": "byte", "maxLength": 5}, "bytes", 5, 2),
        ({"type": "string", "format": "date"}, "google.protobuf.Timestamp", 12, 12),
        ({"type": "string", "format": "date-time"}, "google.protobuf.Timestamp", 32, 21),
        ({"type": "string", "format": "duration", "maxLength": 5}, "google.protobuf.Duration", 32, 3),
        ({"type": "integer"}, "int", 0, 1),
        ({"type": "number"}, "double", 0, 1),
        ({"type": "boolean"}, "bool", 0, 4),
        ({"x-kubernetes-int-or-string": True}, "dyn", MOST, 1),
        ({"x-kubernetes-int-or-string": True, "maxLength": 2}, "dyn", 8, 1),
        ({"type": "array", "items": {"type": "boolean"}}, "list(bool)", MOST // 5, 2),
        ({"type": "array", "items": {"type": "boolean"}, "maxItems": 3}, "list(bool)", 3, 2),
        ({"type": "object", "additionalProperties": {"type": "boolean"}}, "map(string, bool)", MOST // 10, 2),
        ({"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 3}, "map(string, int)", 3, 2),
        ({"type": "object", "properties": {"ab": {"type": "integer"}}, "required": ["ab"]}, "T", 0, 2 + 2 + 1 + 4),
        (
            {"type": "object", "properties": {"ab": {"type": "integer", "default": 1}}, "required": ["ab"]},
            "T",
            0,
            2,
        ),
    ],
)
def test_a_type_has_the_limits_of_its_schema(schema: dict[str, Any], kind: str, most: int, least: int) -> None:
    found = sized(schema)
    assert found is not None
    assert (found.type.type.text(), found.type.max_elements, found.least) == (kind, most, least)


@pytest.mark.parametrize(
    "schema",
    [
        {"x-kubernetes-preserve-unknown-fields": True},
        {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}},
        {"type": "object", "additionalProperties": {"x-kubernetes-preserve-unknown-fields": True}},
    ],
)
def test_values_of_no_type_are_not_seen(schema: dict[str, Any]) -> None:
    assert sized(schema) is None
    around = sized({"type": "object", "properties": {"a": schema, "b": {"type": "string"}}})
    assert around is not None
    assert list(around.type.fields or ()) == ["b"]


def test_resources_have_names_whatever_their_schema_says() -> None:
    found = sized({"type": "object", "properties": {"metadata": {"type": "object"}}}, is_resource=True)
    assert found is not None
    assert found.type.fields is not None
    assert set(found.type.fields) == {"metadata", "kind", "apiVersion"}
    assert set(found.type.fields["metadata"].fields or ()) == {"name", "generateName"}


def test_members_are_named_as_expressions_write_them() -> None:
    members = {name: {"type": "string"} for name in ("a-b", "namespace", "$x", "ok")}
    found = sized({"type": "object", "properties": members})
    assert found is not None
    assert set(found.type.fields or ()) == {"a__dash__b", "__namespace__", "ok"}
