"""CEL types of kinds from their OpenAPI v3 schemas (apiserver `cel/common` schemas.go, `cel/openapi`).

A type is created at its first use: the schema of a Pod has thousands of types, of which few are used. Expressions
cannot use members whose schema has no type or several types, nor members without a schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from steersman.cel import declared
from steersman.cel.declared import DeclaredType, declared_list, declared_map, declared_object
from steersman.cel.names import escape

Schema = Mapping[str, Any]
SchemaOf = Callable[[str], Schema]
"""Function from a reference to the schema it refers to."""

MAX_NESTING: Final = 100
"""Most nested lists and maps. Deeper values are dynamic. Upstream has no limit."""
_UNLIMITED: Final = -1
_PLACEHOLDER: Final[Schema] = {"type": "object"}
"""Schema in place of a reference to an enclosing schema."""
_TEXT: Final[Schema] = {"type": "string"}
_METADATA: Final[Schema] = {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}}
_OF_RESOURCES: Final[Mapping[str, Schema]] = {"kind": _TEXT, "apiVersion": _TEXT, "metadata": _METADATA}
_SCALARS: Final = {"boolean": declared.BOOL, "number": declared.DOUBLE, "integer": declared.INT}
_FORMATS: Final = {
    "byte": declared.BYTES,
    "duration": declared.DURATION,
    "date": declared.TIMESTAMP,
    "date-time": declared.TIMESTAMP,
}

_Enclosing = frozenset[str]
"""References of the schemas that enclose a schema."""


class SchemaTypes:
    """Types of one schema. Object types are added to `objects` by name as they are created."""

    def __init__(self, schema_of: SchemaOf, objects: dict[str, DeclaredType]) -> None:
        self._schema_of: Final = schema_of
        self._objects: Final = objects

    def root(self, schema: Schema, name: str, reference: str = "") -> DeclaredType | None:
        """Return the type of a kind's objects; None if the schema has no usable type.

        `reference` is the reference that the schema uses for itself. Raises LookupError for a reference without a
        schema.
        """
        return self._type_of(schema, frozenset((reference,)), name, is_root=True)

    def _type_of(self, schema: Schema, above: _Enclosing, name: str, *, is_root: bool = False) -> DeclaredType | None:
        around: list[Callable[[DeclaredType], DeclaredType]] = []
        while len(around) < MAX_NESTING:
            schema, above = self.resolve(schema, above)
            below, wrap, suffix = _container(schema)
            if below is None:
                found = self._scalar_or_object(
                    schema, above, name, is_resource=is_root or _has_extension(schema, _EMBEDDED)
                )
                break
            schema, name, is_root = below, f"{name}{suffix}", False
            around.append(wrap)
        else:
            found = declared.DYN
        if found is not None:
            for each in reversed(around):
                found = each(found)
        return found

    def _scalar_or_object(
        self, schema: Schema, above: _Enclosing, name: str, *, is_resource: bool
    ) -> DeclaredType | None:
        """Return the type of a schema that is neither a list nor a map."""
        if _is_int_or_string(schema):
            return declared.DYN
        kind = _type(schema)
        if kind == "object":
            members = self._members(schema, above, is_resource=is_resource)
            object_type = declared_object(name, _Members(self, members, above, name))
            self._objects[name] = object_type
            return object_type
        if kind == "string":
            return _FORMATS.get(schema.get("format", ""), declared.STRING)
        return _SCALARS.get(kind)

    def _members(self, schema: Schema, above: _Enclosing, *, is_resource: bool) -> Mapping[str, Schema]:
        """Return the members of an object type, with the common members of resources unless the schema has all of them."""
        members = _schemas(schema.get("properties"))
        if not is_resource:
            return members
        metadata, inside = self.resolve(members.get("metadata", {}), above)
        names = _schemas(metadata.get("properties"))
        if (
            "object" in _types(metadata)
            and all(
                "string" in _types(self.resolve(members.get(name, {}), above)[0]) for name in ("kind", "apiVersion")
            )
            and all(
                "string" in _types(self.resolve(names.get(name, {}), inside)[0]) for name in ("name", "generateName")
            )
        ):
            return members
        return {**members, **_OF_RESOURCES}

    def resolve(self, schema: Schema, above: _Enclosing) -> tuple[Schema, _Enclosing]:
        """Return the schema that `schema` refers to and its enclosing references; `schema` itself if it is no
        reference.
        """
        reference = _reference(schema)
        if reference is None:
            return schema, above
        if reference in above:
            return _PLACEHOLDER, above
        return self._schema_of(reference), above | {reference}

    def member(self, schema: Schema, above: _Enclosing, name: str) -> DeclaredType | None:
        """Return the type of a member, to be named `name`; None if expressions cannot use the member."""
        return self._type_of(schema, above, name)


class _Members(Mapping[str, DeclaredType]):
    """Types of an object's members by their escaped names, each created at its first use."""

    def __init__(self, types: SchemaTypes, members: Mapping[str, Schema], above: _Enclosing, name: str) -> None:
        self._types: Final = types
        self._enclosing: Final = above
        self._name: Final = name
        escaped = ((escape(each), schema) for each, schema in members.items())
        self._schemas: Final = {each: schema for each, schema in escaped if each is not None}
        self._types_by_name: Final[dict[str, DeclaredType | None]] = {}

    def __getitem__(self, name: str) -> DeclaredType:
        if name not in self._types_by_name:
            self._types_by_name[name] = self._types.member(self._schemas[name], self._enclosing, f"{self._name}.{name}")
        found = self._types_by_name[name]
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._schemas if self.get(name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


_EMBEDDED: Final = "x-kubernetes-embedded-resource"


def _container(schema: Schema) -> tuple[Schema | None, Callable[[DeclaredType], DeclaredType], str]:
    """Return the schema of the items of a list or map, the constructor of its type, and the suffix of the item type's
    name.

    The schema is None for any other type.
    """
    kind = "" if _is_int_or_string(schema) else _type(schema)
    if kind == "array":
        items = schema.get("items")
        return (items if isinstance(items, Mapping) else _UNTYPED), _list_of, ".@idx"
    values = schema.get("additionalProperties") if kind == "object" else None
    return (values if isinstance(values, Mapping) else None), _map_of, ".@elem"


_UNTYPED: Final[Schema] = {}
"""Schema of the items of a list without `items`: it has no type."""


def _list_of(items: DeclaredType) -> DeclaredType:
    return declared_list(items, _UNLIMITED)


def _map_of(values: DeclaredType) -> DeclaredType:
    return declared_map(declared.STRING, values, _UNLIMITED)


def _is_int_or_string(schema: Schema) -> bool:
    return schema.get("format") == "int-or-string" or _has_extension(schema, "x-kubernetes-int-or-string")


def _has_extension(schema: Schema, extension: str) -> bool:
    return schema.get(extension) is True


def _types(schema: Schema) -> list[Any]:
    found = schema.get("type")
    return found if isinstance(found, list) else [found]


def _type(schema: Schema) -> str:
    types = _types(schema)
    return types[0] if types and isinstance(types[0], str) else ""


def _schemas(found: Any) -> Mapping[str, Schema]:
    return {name: each for name, each in found.items() if isinstance(each, Mapping)} if isinstance(found, dict) else {}


def _reference(schema: Schema) -> str | None:
    """Return the reference in a schema, or in its `allOf`, which is used to put a description beside a reference."""
    pending: list[Any] = [schema]
    while pending:
        each = pending.pop()
        if isinstance(each, Mapping):
            reference = each.get("$ref")
            if isinstance(reference, str):
                return reference
            pending.extend(reversed(each.get("allOf") or ()))
    return None
