"""The results of expressions that change objects: `Object{...}` and `JSONPatch{...}` (apiserver `cel/mutation`).

`Object` is any object, and `Object.spec.template` is the value at that path of it. Their fields are unknown, so any
field can be set to any value. Whether the names of types fit the positions of their values is checked in the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from steersman.cel import types
from steersman.cel.environment import Constructed, Library, Overload
from steersman.cel.types import Type, object_type
from steersman.cel.values import EvaluationError, LazyMap, Map, Record, entries, equal, is_map
from steersman.cel.work import spend
from steersman.machinery.errors.field import quote

OBJECT: Final = object_type("Object")
JSON_PATCH: Final = object_type("JSONPatch")

_BELOW: Final = f"{OBJECT.name}."


class ObjectValue(Record):
    """An object that an expression has created: its type and the values of its fields."""

    __slots__ = ("cel_type", "fields")

    def __init__(self, cel_type: Type, fields: Mapping[str, Any]) -> None:
        self.cel_type = cel_type
        self.fields: Final = fields

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ObjectValue)
            and self.cel_type is other.cel_type
            and self.fields.keys() == other.fields.keys()
            and all(_same(value, other.fields[name]) for name, value in self.fields.items())
        )

    def __hash__(self) -> int:
        return hash((self.cel_type, *sorted(self.fields)))

    def get(self, field: str) -> Any:
        return _as_map(self.fields.get(field))

    def has(self, field: str) -> bool:
        return field in self.fields

    @property
    def is_zero(self) -> bool:
        return not self.fields

    def misplaced(self) -> list[str]:
        """Return the errors of type names in the object. The type of a value must be named after its path."""
        return list(_misplaced(self, self.cel_type.name))


def _as_map(value: Any) -> Any:
    """Return the value of a field for reading, in which objects are maps."""
    if isinstance(value, ObjectValue):
        spend(len(value.fields))
        return {name: _as_map(each) for name, each in value.fields.items()}
    return value


def _same(one: Any, other: Any) -> bool:
    """Return True if upstream considers two fields equal. It compares their representations, so no two lists or maps
    are equal.
    """
    return type(one) is type(other) and not isinstance(one, list | tuple | dict | Map) and equal(one, other)


def _misplaced(value: Any, expected: str) -> Iterator[str]:
    spend(1)
    if isinstance(value, ObjectValue):
        if value.cel_type.name != expected:
            yield (
                f"unexpected type name {quote(value.cel_type.name)}, expected {quote(expected)}, which matches field "
                "name path from root Object type"
            )
        for name, field in value.fields.items():
            yield from _misplaced(field, f"{expected}.{name}")
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _misplaced(item, expected)
    elif is_map(value) and not isinstance(value, JSONPatchValue):
        for _, item in entries(value):
            yield from _misplaced(item, expected)


class JSONPatchValue(Record, LazyMap):
    """An operation of a JSON Patch that an expression has created. Its fields can be read."""

    __slots__ = ("fields",)
    cel_type = JSON_PATCH

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.fields: Final = fields

    def get(self, field: str) -> Any:
        return self.fields.get(field, None if field == "value" else "")

    def has(self, field: str) -> bool:
        return "value" in self.fields if field == "value" else bool(self.fields.get(field))

    def find(self, key: Any) -> tuple[Any, Any] | None:
        if key not in _PATCH_FIELDS:
            raise EvaluationError(f"unsupported indexer: {key}")
        return key, self.get(key)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fields)

    def __len__(self) -> int:
        return 1

    def equals(self, other: Any) -> bool:
        return isinstance(other, JSONPatchValue) and all(
            equal(self.find(name), other.find(name)) and (name in self.fields) is (name in other.fields)
            for name in _PATCH_FIELDS
        )


_PATCH_FIELDS: Final = {"op": types.STRING, "from": types.STRING, "path": types.STRING, "value": types.DYN}


def _make_patch(fields: dict[str, Any]) -> JSONPatchValue:
    for name, value in fields.items():
        if name != "value" and not isinstance(value, str):
            raise EvaluationError(f"unexpected type {type(value).__name__} for JSONPatchType '{name}' field")
    return JSONPatchValue(fields)


_NO_TYPE: Final = object_type("")
"""The type of all other fields of a patch as upstream has it, to which no value can be assigned."""
_PATCH: Final = Constructed(JSON_PATCH, lambda name: _PATCH_FIELDS.get(name, _NO_TYPE), _make_patch)


def constructed(name: str) -> Constructed | None:
    """Return the type of a name whose objects can be created; None for other names."""
    if name == JSON_PATCH.name:
        return _PATCH
    if name == OBJECT.name or name.startswith(_BELOW):
        made = object_type(name)
        return Constructed(made, lambda _: types.DYN, lambda fields: ObjectValue(made, fields))
    return None


def _escape_key(text: str) -> str:
    return text.replace("~", "~0").replace("/", "~1")


JSON_PATCHES: Final = Library(
    functions={
        "jsonpatch.escapeKey": (
            Overload("string_jsonpatch_escapeKey_string", (types.STRING,), types.STRING, _escape_key),
        )
    }
)
