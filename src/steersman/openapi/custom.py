"""Schemas of kinds that bring their own: those of custom resources, as k8s.io/apiextensions-apiserver publishes them.

A structural schema (apiextensions.k8s.io/v1) is published with what every object has. v2 cannot say all of it, and says
less, so that clients that validate by it refuse nothing that is right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from steersman.kinds.kind import Kind
from steersman.machinery.codec.derived_types import reference_to
from steersman.openapi.derived import GVK, Schema
from steersman.openapi.names import name_of_kind

_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_TEXT: Final = {"type": "string"}
_TYPE_META: Final = ("kind", "apiVersion")
_OBJECT: Final[Schema] = {
    "apiVersion": _TEXT, "kind": _TEXT, "metadata": {"allOf": [reference_to("meta.v1.ObjectMeta")]},
}  # fmt: skip
"""The members of every object."""
_ONLY_V3: Final = ("default", "nullable", "allOf", "anyOf", "oneOf", "not")
_BELOW: Final = ("properties", "items", "additionalProperties")


def schemas_of(kind: Kind[Any], plural: str) -> dict[str, Schema]:
    """The v3 schemas of a kind and its list, by name."""
    assert kind.openapi is not None
    name, list_name = name_of_kind(kind), name_of_kind(kind, kind.list_name)
    return {
        name: _object(_walked(kind.openapi, _to_v3), kind, kind.name),
        list_name: {
            "description": f"{kind.list_name} is a list of {kind.name}",
            "properties": {
                "apiVersion": _TEXT,
                "items": {"description": f"List of {plural}", "items": {"$ref": _reference(name)}, "type": "array"},
                "kind": _TEXT,
                "metadata": {"allOf": [reference_to("meta.v1.ListMeta")]},
            },
            "required": ["items"],
            "type": "object",
            GVK: _gvk(kind, kind.list_name),
        },
    }


def schemas_v2_of(kind: Kind[Any], plural: str) -> dict[str, Schema]:
    """The same for v2, with the references of v3."""
    assert kind.openapi is not None
    name = name_of_kind(kind)
    if kind.openapi.get(_PRESERVE):
        whole: Schema = {"type": "object", GVK: _gvk(kind, kind.name)}
    else:
        whole = _object(_walked(kind.openapi, _to_v2), kind, kind.name)
    return schemas_of(kind, plural) | {name: whole}


def _object(schema: Schema, kind: Kind[Any], name: str) -> Schema:
    return {**schema, "properties": schema.get("properties", {}) | _OBJECT, GVK: _gvk(kind, name)}


def _gvk(kind: Kind[Any], name: str) -> list[dict[str, str]]:
    return [{"group": kind.group, "kind": name, "version": kind.version}]


def _reference(name: str) -> str:
    return f"#/components/schemas/{name}"


def _walked(schema: Mapping[str, Any], change: Callable[[Schema], Schema]) -> Schema:
    """A copy of a schema in which `change` was made to it and to every schema below it."""
    found = change(dict(schema))
    if isinstance(properties := found.get("properties"), Mapping):
        found["properties"] = {name: _walked(each, change) for name, each in properties.items()}
    for member in ("items", "additionalProperties"):
        if isinstance(below := found.get(member), Mapping):
            found[member] = _walked(below, change)
    return found


def _to_v3(schema: Schema) -> Schema:
    if schema.get(_INT_OR_STRING) and "anyOf" not in schema and "allOf" not in schema:
        schema["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    return _with_type_meta(schema)


def _to_v2(schema: Schema) -> Schema:
    if "$ref" in schema:
        return schema
    left_out: tuple[str, ...] = _ONLY_V3
    if schema.get("nullable") or schema.get(_PRESERVE):
        left_out = (*left_out, *_BELOW, "type")
    elif schema.get(_EMBEDDED):
        schema = _with_type_meta(schema)
    return {key: value for key, value in schema.items() if key not in left_out}


def _with_type_meta(schema: Schema) -> Schema:
    """A schema of whole objects: that each says what it is."""
    if not schema.get(_EMBEDDED):
        return schema
    required = [each for each in schema.get("required", ()) if each not in _TYPE_META]
    return {**schema, "properties": schema.get("properties", {}) | _OBJECT, "required": [*required, *_TYPE_META]}
