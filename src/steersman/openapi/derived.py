"""Schemas of built-in types, as kube-openapi's generator derives them from the Go types.

Facts that it reads from comments (defaults, enumerations, unions, optional fields) are recorded; see `schemas`.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from steersman.api import tables
from steersman.api.index import MODULES
from steersman.machinery.codec.derived_types import SCALAR_SCHEMAS, reference_to, schema_name
from steersman.machinery.codec.go_types import GoType, go_type

Schema = dict[str, Any]

GVK: Final = "x-kubernetes-group-version-kind"
_TYPE_META: Final = "meta.v1.TypeMeta"
_ZERO: Final[dict[str, Any]] = {"string": "", "bool": False, "int32": 0, "int64": 0}


def type_named(name: str) -> str:
    """Return the Go type of a schema, "core.v1.Pod" for "io.k8s.api.core.v1.Pod"; "" if it is not in the tables."""
    package, _, last = name.rpartition(".")
    module = _modules().get(package)
    return f"{module}.{last}" if module is not None and last in tables.table(module).structs else ""


@cache
def _modules() -> dict[str, str]:
    """Return the modules of built-in types by their packages in OpenAPI."""
    return {schema_name(f"{module}.").rstrip("."): module for module in MODULES.values()}


def derive(type_name: str) -> Schema:
    """Return the schema of a struct, e.g. "core.v1.Pod"."""
    module, _, name = type_name.rpartition(".")
    table = tables.table(module)
    properties: dict[str, Schema] = {}
    required: list[str] = []
    _members(type_name, properties, required)
    found: Schema = {"type": "object"}
    if properties:
        found["properties"] = properties
    if required:
        found["required"] = required
    if name in table.map_types:
        found["x-kubernetes-map-type"] = table.map_types[name]
    if any(each.inline and each.type == _TYPE_META for each in table.structs[name]):
        group, version = _group_version(module)
        found[GVK] = [{"group": group, "kind": name, "version": version}]
    return found


def _group_version(module: str) -> tuple[str, str]:
    group, version = next(key for key, each in MODULES.items() if each == module)
    return "" if module == "meta.v1" else group, version


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
    type_ = go_type(module, field.type)
    found = _value(type_, has_default=not field.pointer and (not field.omit or type_.kind == "struct"))
    for name, value in (
        ("x-kubernetes-list-type", field.list),
        ("x-kubernetes-list-map-keys", list(field.keys)),
        ("x-kubernetes-map-type", field.map),
        ("x-kubernetes-patch-merge-key", field.key),
        ("x-kubernetes-patch-strategy", field.strategy),
    ):
        if value:
            found[name] = value
    if "$ref" in found:  # so that a description is permitted beside the reference
        found["allOf"] = [{"$ref": found.pop("$ref")}]
    return found


def _value(type_: GoType, *, has_default: bool) -> Schema:
    """Return the schema of a value of this type; with `has_default` its zero value is the default."""
    if type_.kind in ("struct", "own"):
        found = reference_to(type_.name)
        return {"allOf": [found], "default": {}} if has_default and type_.kind == "struct" else found
    if type_.kind in ("list", "map"):
        assert type_.element is not None
        element = _value(type_.element, has_default=True)
        if type_.kind == "list":
            return {"items": element, "type": "array"}
        return {"additionalProperties": element, "type": "object"}
    found = dict(SCALAR_SCHEMAS[type_.kind])
    if has_default and type_.kind in _ZERO:
        found["default"] = _ZERO[type_.kind]
    return found
