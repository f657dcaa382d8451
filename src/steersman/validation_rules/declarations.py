"""Types of expressions for structural schemas (apiserver `cel/common/schemas.go`).

A type has the members of values, under the names that expressions use, and the maximal sizes of values, on which cost
estimates are based. Members that only x-kubernetes-preserve-unknown-fields allows are not included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from steersman.cel import declared, types
from steersman.cel.declared import DeclaredType, declared_list, declared_map
from steersman.cel.names import escape
from steersman.cel.types import object_type
from steersman.schema.nodes import EMBEDDED, INT_OR_STRING, MISSING, Node
from steersman.work.threads import give_way

MAX_REQUEST_SIZE: Final = 3 << 20
"""Bytes of the largest request that upstream accepts."""

_MOST_TEXT: Final = MAX_REQUEST_SIZE - 2
_SMALLEST: Final = 2
"""Bytes of "", [] and {}."""
_MAX_BYTES_OF_CHARACTER: Final = 4
_MEMBER_OVERHEAD: Final = 4
"""Bytes of quotes, colon and comma."""
_ENTRY_OVERHEAD: Final = 6
"""Bytes of quotes, colon, comma and the shortest key."""
_FORMATS: Final = {
    "duration": (types.DURATION, 3, 32),
    "date": (types.TIMESTAMP, 12, 12),
    "date-time": (types.TIMESTAMP, 21, 32),
}
"""Formats of strings that are other types in expressions: the type, and the least and most bytes of the quoted string.
"""


@dataclass(frozen=True, slots=True)
class Sized:
    """A type, and the least bytes of a value in JSON."""

    type: DeclaredType
    least: int

    @property
    def most_in_a_request(self) -> int:
        """The most values of the type that fit into one request."""
        return MAX_REQUEST_SIZE // (self.least + 1)


class Declarations:
    """The types of a schema and of all parts that expressions can see.

    Types with members are named by their position in the schema.
    """

    def __init__(self) -> None:
        self._type_cache: dict[tuple[int, bool, str], Sized | None] = {}
        self.objects: dict[str, DeclaredType] = {}
        """Types with members by name."""

    def type_of(self, node: Node, name: str, *, is_resource: bool) -> Sized | None:
        """Return the type of a schema node with this type name; None if expressions cannot see it.

        `is_resource` is True for the root of a resource, which has metadata whatever the schema says.
        """
        key = (id(node), is_resource, name)
        if key not in self._type_cache:
            self._type_cache[key] = self._make(node, name, is_resource=is_resource)
        return self._type_cache[key]

    def _make(self, node: Node, name: str, *, is_resource: bool) -> Sized | None:
        give_way()
        if node.traits & INT_OR_STRING:
            length = _limit(node, "max_length")
            most = _MOST_TEXT if length is None else length * _MAX_BYTES_OF_CHARACTER
            return Sized(declared.DYN.limited(most), 1)
        match node.types:
            case ("array",):
                return self._list(node, name)
            case ("object",):
                return self._object(node, name, is_resource=is_resource)
            case ("string",):
                return _text(node)
            case ("boolean",):
                return _BOOLEAN
            case ("number",):
                return _NUMBER
            case ("integer",):
                return _INTEGER
        return None

    def _list(self, node: Node, name: str) -> Sized | None:
        if node.items is None:
            return None
        items = self.type_of(node.items, f"{name}.@idx", is_resource=bool(node.items.traits & EMBEDDED))
        if items is None:
            return None
        most = _limit(node, "max_items")
        if most is None:
            most = (MAX_REQUEST_SIZE - 2) // (items.least + 1)
        return Sized(declared_list(items.type, most), _SMALLEST)

    def _object(self, node: Node, name: str, *, is_resource: bool) -> Sized | None:
        if isinstance(node.additional, Node):
            values = self.type_of(node.additional, f"{name}.@elem", is_resource=bool(node.additional.traits & EMBEDDED))
            if values is None:
                return None
            most = _limit(node, "max_properties")
            if most is None:
                most = (MAX_REQUEST_SIZE - 2) // (values.least + _ENTRY_OVERHEAD)
            return Sized(declared_map(declared.STRING, values.type, most), _SMALLEST)
        members = members_of_resource(node) if is_resource else node.properties
        required = frozenset(node.checks.required) if node.checks is not None else frozenset[str]()
        fields: dict[str, DeclaredType] = {}
        least = _SMALLEST
        for member, schema in members.items():
            escaped = escape(member)
            below = f"{name}.{member if escaped is None else escaped}"
            sized = self.type_of(schema, below, is_resource=bool(schema.traits & EMBEDDED))
            if sized is None:
                continue
            if escaped is not None:
                fields[escaped] = sized.type
            if member in required and schema.default is MISSING:
                least += len(member.encode()) + sized.least + _MEMBER_OVERHEAD
        made = self.objects[name] = DeclaredType(object_type(name), fields=fields)
        return Sized(made, least)


def _limit(node: Node, attribute: str) -> int | None:
    found = None if node.checks is None else getattr(node.checks, attribute)
    return None if found is None else max(found, 0)


def _text(node: Node) -> Sized:
    declared_format = node.declared_format
    special = _FORMATS.get(declared_format)
    if special is not None:
        kind, least, most = special
        return Sized(DeclaredType(kind, most), least)
    length = _limit(node, "max_length")
    if declared_format == "byte":
        return Sized(declared.BYTES.limited(_MOST_TEXT if length is None else length), _SMALLEST)
    if length is not None:
        most = length * _MAX_BYTES_OF_CHARACTER
    elif node.checks is not None and node.checks.enum:
        most = max((len(each.encode()) for each in node.checks.enum if isinstance(each, str)), default=0)
    else:
        most = _MOST_TEXT
    return Sized(declared.STRING.limited(most), _SMALLEST)


_BOOLEAN: Final = Sized(declared.BOOL, 4)
_INTEGER: Final = Sized(declared.INT, 1)
_NUMBER: Final = Sized(declared.DOUBLE, 1)


def _node(**given: Any) -> Node:
    """Return a node with only these attributes set."""
    unset: dict[str, Any] = {
        "types": (),
        "mask": 0,
        "sure": None,
        "traits": 0,
        "format": "",
        "declared_format": "",
        "properties": {},
        "additional": None,
        "items": None,
        "list_type": "",
        "map_keys": (),
        "default": MISSING,
        "defaulted": (),
        "deep": (),
        "ruled": frozenset(),
        "checks": None,
        "rules": (),
    }
    return Node(**(unset | given))


_TEXT: Final = _node(types=("string",))
_METADATA: Final = _node(types=("object",), properties={"name": _TEXT, "generateName": _TEXT})
_RESOURCE_MEMBERS: Final = {"kind": _TEXT, "apiVersion": _TEXT, "metadata": _METADATA}


def members_of_resource(node: Node) -> Mapping[str, Node]:
    """Return the members of a resource that expressions see, with the string members that every resource has.

    A schema that declares all of these members itself keeps its own declarations.
    """
    members = node.properties
    metadata = members.get("metadata")
    if (
        metadata is not None
        and metadata.types == ("object",)
        and all(_is_text(metadata.properties.get(name)) for name in ("name", "generateName"))
        and all(_is_text(members.get(name)) for name in ("kind", "apiVersion"))
    ):
        return members
    return {**members, **_RESOURCE_MEMBERS}


def _is_text(node: Node | None) -> bool:
    return node is not None and node.types == ("string",)
