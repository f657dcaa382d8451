"""Schemas built from OpenAPI v3, of built-in definitions and custom resources (k8s.io/kube-openapi `schemaconv`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from .schema import BOOLEAN, DEDUCED_ATOM, NUMERIC, STRING, UNTYPED, UNTYPED_ATOM, Atom, ListType, MapType, Schema

_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_RAW_EXTENSION: Final = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_TEXT: Final = Atom(STRING)
_UNTYPED: Final = Atom(UNTYPED)
_SCALARS: Final = {"integer": Atom(NUMERIC), "number": Atom(NUMERIC), "boolean": Atom(BOOLEAN)}
"""Atoms shared by all schemas, which have hundreds of them. Atoms without parts are never changed."""

OBJECT_PROPERTIES: Final[Mapping[str, Any]] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"$ref": "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
}
"""Properties of every object, including embedded objects and custom resources."""

Definition = Mapping[str, Any]


class SchemaError(ValueError):
    """The error for an OpenAPI schema with invalid list types."""


class SchemaBuilder:
    """A builder of atoms from OpenAPI definitions that refer to each other. Each definition is converted once."""

    def __init__(self, definitions: Mapping[str, Definition]) -> None:
        self._definitions = definitions
        self._named: dict[tuple[str, str], Atom] = {}

    def schema(self, name: str) -> Schema:
        """Return the schema of a definition. Raises KeyError if there is none, and SchemaError."""
        return Schema(self._reference(name, ""))

    def inline(self, definition: Definition, *, preserve_unknown: bool = False) -> Schema:
        """Return the schema of an unnamed definition. Raises SchemaError.

        `preserve_unknown` allows members that a struct does not declare (a custom resource's preserveUnknownFields).
        """
        return Schema(self._atom(definition, preserve=preserve_unknown))

    def _reference(self, name: str, relationship: str) -> Atom:
        """Return the atom of a definition, with the map type that the reference gives."""
        atom = self._named.get((name, relationship))
        if atom is not None:
            return atom
        if name == _QUANTITY:
            return _UNTYPED
        if name == _RAW_EXTENSION:
            return UNTYPED_ATOM
        atom = self._named[name, relationship] = Atom()
        definition = self._definitions[name]
        if relationship:
            definition = {**definition, "x-kubernetes-map-type": relationship}
        atom.become(self._atom(definition, preserve=False))
        return atom

    def _child(self, definition: Definition, preserve: bool) -> Atom:
        reference = definition.get("$ref", "")
        if not reference:
            parts = definition.get("allOf", ())
            reference = parts[0].get("$ref", "") if len(parts) == 1 else ""
        if reference:
            return self._reference(reference.rpartition("/")[2], definition.get("x-kubernetes-map-type", ""))
        return self._atom(definition, preserve=preserve)

    def _atom(self, definition: Definition, *, preserve: bool) -> Atom:
        if definition.get("x-kubernetes-embedded-resource") is True:
            definition = {**definition, "properties": {**definition.get("properties", {}), **OBJECT_PROPERTIES}}
        preserve = preserve or definition.get("x-kubernetes-preserve-unknown-fields") is True
        match definition.get("type", ""):
            case "":
                return Atom(UNTYPED, self._list(definition, preserve), self._map(definition, preserve))
            case "object":
                return Atom(map=self._map(definition, preserve))
            case "array":
                return Atom(list=self._list(definition, preserve))
            case "string":
                return _TEXT if definition.get("format", "") in ("", "byte") else _UNTYPED
            case kind:
                return _SCALARS.get(kind, _UNTYPED)

    def _map(self, definition: Definition, preserve: bool) -> MapType:
        properties = definition.get("properties", {})
        fields = {name: self._child(each, preserve) for name, each in properties.items()}
        additional = definition.get("additionalProperties")
        element: Atom | None = None
        if additional is None:
            element = DEDUCED_ATOM if preserve or not properties else None
        elif isinstance(additional, Mapping):
            element = self._child(additional, preserve)
        elif additional:
            element = DEDUCED_ATOM
        return MapType(fields, element, atomic=definition.get("x-kubernetes-map-type") == "atomic")

    def _list(self, definition: Definition, preserve: bool) -> ListType:
        items = definition.get("items")
        element = UNTYPED_ATOM if items is None else self._child(items, preserve)
        atomic, keys = _list_relationship(definition)
        return ListType(element, atomic=atomic, keys=keys, defaults=self._defaults(items or {}, keys))

    def _defaults(self, items: Definition, keys: Sequence[str]) -> dict[str, Any]:
        if not keys:
            return {}
        reference = items.get("$ref") or next((each.get("$ref", "") for each in items.get("allOf", ())), "")
        target = self._definitions[reference.rpartition("/")[2]] if reference else items
        properties = target.get("properties", {})
        return {key: properties[key]["default"] for key in keys if "default" in properties.get(key, {})}


def _list_relationship(definition: Definition) -> tuple[bool, Sequence[str]]:
    """Return True if a list is atomic, and otherwise its keys (an empty sequence for a set)."""
    list_type = definition.get("x-kubernetes-list-type")
    if list_type is not None:
        match list_type:
            case "atomic":
                return True, ()
            case "set":
                return False, ()
            case "map":
                keys = definition.get("x-kubernetes-list-map-keys")
                if keys is None:
                    raise SchemaError("missing map keys")
                return False, keys
        raise SchemaError(f"unknown list type {list_type}")
    match definition.get("x-kubernetes-patch-strategy"):
        case "merge" | "merge,retainKeys":
            key = definition.get("x-kubernetes-patch-merge-key")
            return False, () if key is None else (key,)
    return True, ()
