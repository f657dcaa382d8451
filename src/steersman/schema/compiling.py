"""Compilation of an `openAPIV3Schema` into nodes.

Upstream converts it into two schemas: a structural schema, which prunes and defaults, and a schema of kube-openapi,
which validates. They differ little, so the same nodes serve for both: formats that are unknown for the type are
dropped, and an int-or-string has both types.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator, Mapping
from typing import Any, Final

from steersman.work.threads import give_way

from .formats import FORMATS, normalized
from .nodes import (
    ATOMIC_MAP,
    BELOW,
    DEFAULTS_BELOW,
    EMBEDDED,
    EMBEDDED_BELOW,
    INT_OR_STRING,
    LISTS_BELOW,
    MISSING,
    NULLABLE,
    OF_ALL,
    OF_BOOL,
    OF_DICT,
    OF_FLOAT,
    OF_INT,
    OF_LIST,
    OF_STR,
    PRESERVE,
    RULES_BELOW,
    Checks,
    Node,
    Plain,
)
from .numbers import INT64_MAX, INT64_MIN, fits

_UNSUPPORTED: Final = {
    "id": "id",
    "$schema": "schema",
    "$ref": "$ref",
    "patternProperties": "patternProperties",
    "dependencies": "dependencies",
    "additionalItems": "additionalItems",
    "definitions": "definitions",
}
"""Members that a structural schema may not have, with their names in upstream's message."""
_UNSUPPORTED_NAMES: Final = frozenset(_UNSUPPORTED)
_NUMBER_FORMATS: Final = {"integer": ("int32", "int64"), "number": ("float", "double")}
_MASKS: Final = {
    "string": OF_STR,
    "integer": OF_INT | OF_FLOAT,
    "number": OF_INT | OF_FLOAT,
    "boolean": OF_BOOL,
    "object": OF_DICT,
    "array": OF_LIST,
}
_SURE: Final = {"string": str, "boolean": bool}
_PLAIN_CHECKS: Final = {
    "maxLength": "max_length",
    "minLength": "min_length",
    "maxItems": "max_items",
    "minItems": "min_items",
    "maxProperties": "max_properties",
    "minProperties": "min_properties",
}
_NUMBER_CHECKS: Final = {"multipleOf": "multiple_of", "maximum": "maximum", "minimum": "minimum"}
_JUNCTORS: Final = {"allOf": "all_of", "anyOf": "any_of", "oneOf": "one_of"}
_CHECKED: Final = frozenset(
    {*_PLAIN_CHECKS, *_NUMBER_CHECKS, *_JUNCTORS, "not", "enum", "pattern", "uniqueItems", "required"}
)
"""Members that make validations. The exclusive flags are missing here because they accompany `maximum` and `minimum`.
"""
_OF_SCHEMAS: Final = (*_JUNCTORS.values(), "negated")
_NO_CHECKS: Final[Mapping[str, Any]] = {
    **dict.fromkeys((*_PLAIN_CHECKS.values(), *_NUMBER_CHECKS.values(), "negated", "enum", "names")),
    **dict.fromkeys((*_JUNCTORS.values(), "required"), ()),
    **dict.fromkeys(("exclusive_maximum", "exclusive_minimum", "unique_items", "has_junctors"), False),
    "pattern": "",
}
"""The attributes of `Checks` for a schema without validations."""
_UNSAID: Final = frozenset({"description", "title"})
_SCALARS: Final = frozenset(
    {
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "nullable",
        "pattern",
        "type",
        "uniqueItems",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
    }
)
"""Members whose equal values always mean the same."""


_TOLD_BY_TRAITS: Final = frozenset(
    {
        "nullable",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    }
)


class UnsupportedSchemaError(ValueError):
    """The error of a schema that no structural schema can express, with upstream's message (NewStructural)."""


class Use(weakref.ref[Node]):
    """A weak reference to a node in use; `key` is the hash of the node's features."""

    __slots__ = ("key",)

    key: int


in_use: dict[int, Use] = {}
"""Nodes in use by their keys. Of two nodes with the same hash only one can be found."""


def compile_node(plain: Mapping[str, Any]) -> Node:
    """Compile a schema. Raises UnsupportedSchemaError."""
    return Compiler().node(plain)


def refuse_unsupported(plain: Mapping[str, Any]) -> None:
    """Raise UnsupportedSchemaError if a schema has members that no structural schema may have."""
    if _UNSUPPORTED_NAMES.isdisjoint(plain):
        return
    for name, told in _UNSUPPORTED.items():
        found = plain.get(name)
        if found or (found is not None and name == "additionalItems"):
            raise UnsupportedSchemaError(f"OpenAPIV3Schema '{told}' is not supported")


class Compiler:
    """A compiler of schemas. Repeated parts are compiled once, so the schemas must not change while it is in use."""

    def __init__(self) -> None:
        self._of_defaults = False
        self._leaves: dict[tuple[Any, ...], Node] = {}
        """Nodes of leaf schemas by their members: most schemas only have a type, a limit or a pattern."""
        self._alike: dict[int, Node] = {}
        """Nodes that validate defaults like other values, by the identity of the schema."""

    def node(self, plain: Mapping[str, Any]) -> Node:
        """Return the node of a schema. Raises UnsupportedSchemaError."""
        give_way()
        if self._of_defaults and (known := self._alike.get(id(plain))) is not None:
            return known
        said = _leaf_members(plain)
        if said is None:
            found = self.compiled(plain)
        elif (known := self._leaves.get(said)) is not None:
            found = known
        else:
            found = self._leaves[said] = self.compiled(plain)
        if not self._of_defaults and self._validates_defaults_alike(plain):
            self._alike[id(plain)] = found
        return found

    def node_of_defaults(self, plain: Mapping[str, Any]) -> Node:
        """Return the node with which upstream validates the defaults in a schema. Raises UnsupportedSchemaError.

        Unknown formats are not dropped, and the types of an int-or-string are not restricted.
        """
        other = Compiler()
        other._of_defaults, other._alike = True, self._alike
        return other.node(plain)

    def _validates_defaults_alike(self, plain: Mapping[str, Any]) -> bool:
        alike = self._alike
        if plain.get("format") or plain.get("x-kubernetes-int-or-string"):
            return False
        return all(id(each) in alike for each in _schemas_in(plain))

    def compiled(self, plain: Mapping[str, Any]) -> Node:
        """Compile a schema that has no node yet. Raises UnsupportedSchemaError."""
        refuse_unsupported(plain)
        checks = self._checks(plain)
        if plain.get("x-kubernetes-preserve-unknown-fields") is False:
            raise UnsupportedSchemaError(
                "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
            )
        items = plain.get("items")
        if isinstance(items, list) and items:
            raise UnsupportedSchemaError("OpenAPIV3Schema 'items' must be a schema, but is an array")
        item_node = self.node(items) if isinstance(items, Mapping) else None
        properties = {sys.intern(name): self.node(each) for name, each in (plain.get("properties") or {}).items()}
        additional = plain.get("additionalProperties")
        if isinstance(additional, Mapping):
            additional = self.node(additional)
        rules = tuple(plain.get("x-kubernetes-validations") or ())
        default = plain.get("default")
        types = self._types(plain)
        format = self._format(plain.get("format") or "", types)
        list_type = plain.get("x-kubernetes-list-type") or ""
        below = [*properties.values(), *(each for each in (item_node, additional) if each.__class__ is Node)]
        mask = _mask(types, format)
        return _shared(
            Node(
                types=types,
                mask=mask,
                sure=_SURE.get(types[0]) if len(types) == 1 and checks is None and not format else None,
                bounds=_bounds(types, format, checks),
                traits=_traits(plain, list_type, rules) | _traits_below(below),
                format=format,
                declared_format=plain.get("format") or "",
                properties=properties,
                additional=additional,
                items=item_node,
                list_type=list_type,
                map_keys=tuple(plain.get("x-kubernetes-list-map-keys") or ()),
                default=MISSING if default is None else default,
                defaulted=tuple((name, each) for name, each in properties.items() if each.default is not MISSING),
                ruled=frozenset([name for name, each in properties.items() if each.traits & RULES_BELOW]),
                deep=tuple((name, each) for name, each in properties.items() if each.traits & DEFAULTS_BELOW),
                checks=checks,
                rules=rules,
            )
        )

    def _types(self, plain: Mapping[str, Any]) -> tuple[str, ...]:
        if plain.get("x-kubernetes-int-or-string") and not self._of_defaults:
            return ("integer", "string")
        kind = plain.get("type")
        return (sys.intern(kind),) if kind else ()

    def _format(self, format: str, types: tuple[str, ...]) -> str:
        """Return the format, "" if it is unknown for these types."""
        if not format or self._of_defaults:
            return format
        kind = types[0] if len(types) == 1 else ""
        if kind in ("", "string"):
            return format if normalized(format) in FORMATS else ""
        return format if format in _NUMBER_FORMATS.get(kind, ()) else ""

    def _checks(self, plain: Mapping[str, Any]) -> Checks | None:
        if _CHECKED.isdisjoint(plain):
            return None
        said: dict[str, Any] = dict(_NO_CHECKS)
        if (negated := plain.get("not")) is not None:
            said["negated"] = self.node(negated)
        for name, attribute in _JUNCTORS.items():
            if found := plain.get(name):
                said[attribute] = tuple(self.node(each) for each in found)
        for name, value in plain.items():
            if value is None or name not in _CHECKED:
                continue
            if name in _PLAIN_CHECKS:
                said[_PLAIN_CHECKS[name]] = value
            elif name in _NUMBER_CHECKS:
                said[_NUMBER_CHECKS[name]] = float(value)
            elif name == "required":
                said["required"] = tuple(map(sys.intern, value))
            elif name == "pattern":
                said["pattern"] = value
            elif name == "uniqueItems":
                said["unique_items"] = value
            elif name == "enum" and value:
                said["enum"] = tuple(value)
                said["names"] = frozenset(each for each in value if each.__class__ is str)
        if said["maximum"] is not None:
            said["exclusive_maximum"] = bool(plain.get("exclusiveMaximum"))
        if said["minimum"] is not None:
            said["exclusive_minimum"] = bool(plain.get("exclusiveMinimum"))
        if said == _NO_CHECKS:
            return None
        said["has_junctors"] = any(said[name] for name in _OF_SCHEMAS)
        return Checks(**said)


def _leaf_members(plain: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Return the members of a schema without nested schemas; None for any other schema."""
    said = tuple([member for member in plain.items() if member[0] not in _UNSAID])
    for name, _ in said:
        if name not in _SCALARS:
            return None
    return said


def _schemas_in(plain: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the direct subschemas of a structural schema."""
    yield from (plain.get("properties") or {}).values()
    for name in ("items", "additionalProperties", "not"):
        if isinstance(each := plain.get(name), Mapping):
            yield each
    for name in _JUNCTORS:
        yield from plain.get(name) or ()


def _mask(types: tuple[str, ...], format: str) -> int:
    """Return the mask of the classes of values that upstream's type validator allows.

    With a format, text and lists always pass, because the format validator judges values that are not numbers.
    """
    if not types:
        return OF_STR | OF_LIST if format else OF_ALL
    mask = 0
    for each in types:
        mask |= _MASKS.get(each, 0)
    if format and not mask & OF_INT:
        mask |= OF_STR | OF_LIST
    return mask


def _bounds(types: tuple[str, ...], format: str, checks: Checks | None) -> tuple[int, int] | None:
    """Return the smallest and largest valid integer if only integer limits apply, otherwise None."""
    if types != ("integer",):
        return None
    least, most = (-(2**31), 2**31 - 1) if format == "int32" else (INT64_MIN, INT64_MAX)
    if checks is None:
        return least, most
    if checks.multiple_of is not None or checks.enum is not None:
        return None
    for limit in (checks.minimum, checks.maximum):
        if limit is not None and not fits(limit, "integer", format):
            return None
    if checks.minimum is not None:
        least = max(least, int(checks.minimum) + checks.exclusive_minimum)
    if checks.maximum is not None:
        most = min(most, int(checks.maximum) - checks.exclusive_maximum)
    return least, most


def _traits(plain: Mapping[str, Any], list_type: str, rules: tuple[Plain, ...]) -> int:
    if _TOLD_BY_TRAITS.isdisjoint(plain):
        return 0
    traits = NULLABLE if plain.get("nullable") else 0
    if plain.get("x-kubernetes-preserve-unknown-fields"):
        traits |= PRESERVE
    if plain.get("x-kubernetes-embedded-resource"):
        traits |= EMBEDDED | EMBEDDED_BELOW
    if plain.get("x-kubernetes-int-or-string"):
        traits |= INT_OR_STRING
    if plain.get("x-kubernetes-map-type") == "atomic":
        traits |= ATOMIC_MAP
    if list_type in ("set", "map"):
        traits |= LISTS_BELOW
    return traits | RULES_BELOW if rules else traits


def _traits_below(below: list[Any]) -> int:
    traits = 0
    for each in below:
        traits |= each.traits & BELOW
        if each.default is not MISSING:
            traits |= DEFAULTS_BELOW
    return traits


def _shared(node: Node) -> Node:
    """Return an equal node in use if there is one, otherwise this node."""
    features = node.features()
    key = hash(features)
    use = in_use.get(key)
    found = None if use is None else use()
    if found is not None:
        return found if found.features() == features else node
    use = in_use[key] = Use(node, forget)
    use.key = key
    return node


def forget(use: Use) -> None:
    """Remove a node that nobody uses any more."""
    if in_use.get(use.key) is use:
        del in_use[use.key]
