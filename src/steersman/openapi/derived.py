"""Schemas from Go types, as kube-openapi's generator makes them of what the types alone say.

What it reads from comments (defaults, enumerations, unions, what is optional after all) is recorded; see `schemas`.
"""

from __future__ import annotations

from typing import Any, Final

from steersman.machinery.go_types import go_type
from steersman.openapi.names import name_of_type
from steersman.api import tables

Schema = dict[str, Any]

_REFERENCE: Final = "#/components/schemas/"
_SCALARS: Final[dict[str, Schema]] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"format": "int32", "type": "integer"},
    "int64": {"format": "int64", "type": "integer"},
    "uint8": {"format": "byte", "type": "integer"},
    "float64": {"format": "double", "type": "number"},
    "bytes": {"format": "byte", "type": "string"},
    "any": {"type": "object"},
}
_ZERO: Final[dict[str, Any]] = {"string": "", "bool": False, "int32": 0, "int64": 0, "struct": {}}
_SCALAR_TYPES: Final = ("api.resource.Quantity", "meta.v1.Time", "meta.v1.MicroTime", "meta.v1.Duration")


def derive(type_name: str) -> Schema:
    """The schema of a struct, e.g. "core.v1.Pod". Raises KeyError, FileNotFoundError for one without a table."""
    properties: dict[str, Schema] = {}
    required: list[str] = []
    _members(type_name, properties, required)
    found: Schema = {"type": "object"}
    if properties:
        found["properties"] = properties
    if required:
        found["required"] = required
    module, _, name = type_name.rpartition(".")
    if name in tables.table(module).map_types:
        found["x-kubernetes-map-type"] = tables.table(module).map_types[name]
    return found


def _members(type_name: str, properties: dict[str, Schema], required: list[str]) -> None:
    module, _, name = type_name.rpartition(".")
    for each in tables.table(module).structs[name]:
        if each.inline:
            _members(each.type, properties, required)
        elif each.name != "-":
            properties[each.name] = _member(module, each)
            if not each.omit and not each.pointer:
                required.append(each.name)


def _member(module: str, field: tables.Field) -> Schema:
    found = _value(module, field.type, has_default=not field.pointer and not _leaves_out(module, field))
    for name, value in (
        ("x-kubernetes-list-type", field.list), ("x-kubernetes-list-map-keys", list(field.keys)),
        ("x-kubernetes-map-type", field.map), ("x-kubernetes-patch-merge-key", field.key),
        ("x-kubernetes-patch-strategy", field.strategy),
    ):  # fmt: skip
        if value:
            found[name] = value
    if "$ref" in found:  # the description beside it
        found["allOf"] = [{"$ref": found.pop("$ref")}]
    return found


def _leaves_out(module: str, field: tables.Field) -> bool:
    return bool(field.omit) and go_type(module, field.type).kind != "struct"


def _value(module: str, type_name: str, *, has_default: bool) -> Schema:
    """The schema of a value of this type; `has_default`: its zero value is what it is if it is not given."""
    type_ = go_type(module, type_name)
    if type_.kind in ("struct", "own"):
        found: Schema = {"$ref": _REFERENCE + name_of_type(type_.name)}
        if has_default and type_.kind == "struct":
            return {"allOf": [found], "default": {}}
        return found
    if type_.kind == "list":
        return {"items": _value(module, type_name.removeprefix("[]"), has_default=True), "type": "array"}
    if type_.kind == "map":
        element = type_name[type_name.index("]") + 1 :]
        return {"additionalProperties": _value(module, element, has_default=True), "type": "object"}
    found = dict(_SCALARS[type_.kind])
    if has_default and type_.kind in _ZERO:
        found["default"] = _ZERO[type_.kind]
    return found
