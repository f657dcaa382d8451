"""From the JSON of an `openAPIV3Schema` to nodes.

Upstream makes two of it: a structural schema, which prunes and defaults, and a schema of kube-openapi, which judges
values. They differ in little, and these nodes do for both: formats that are not known for the type are left out, and
an int-or-string has both types.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Mapping
from typing import Any, Final

from steersman.machinery.lane.threads import give_way

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
    "id": "id", "$schema": "schema", "$ref": "$ref", "patternProperties": "patternProperties",
    "dependencies": "dependencies", "additionalItems": "additionalItems", "definitions": "definitions",
}  # fmt: skip
"""Members that no structural schema has, by the name that upstream's message gives them."""
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
_PLAIN_CHECKS: Final = (
    ("maxLength", "max_length"), ("minLength", "min_length"), ("maxItems", "max_items"), ("minItems", "min_items"),
    ("maxProperties", "max_properties"), ("minProperties", "min_properties"),
)  # fmt: skip
_NUMBER_CHECKS: Final = (("multipleOf", "multiple_of"), ("maximum", "maximum"), ("minimum", "minimum"))
_JUNCTORS: Final = (("allOf", "all_of"), ("anyOf", "any_of"), ("oneOf", "one_of"))
_CHECKED: Final = frozenset(
    (name for name, _ in (*_PLAIN_CHECKS, *_NUMBER_CHECKS, *_JUNCTORS)),
) | {"not", "enum", "pattern", "uniqueItems", "required"}
"""What may make a check; limits that exclude themselves stand beside those they are of."""


class UnsupportedSchemaError(ValueError):
    """The schema says what no structural schema may say; the message is upstream's (NewStructural)."""


class _Use(weakref.ref[Node]):
    """Knows a node as long as it is in use; `key` is the hash of what the node says."""

    __slots__ = ("key",)

    key: int


_in_use: dict[int, _Use] = {}
"""By their keys. Of two nodes whose hashes are equal only one is found."""


def compile_node(plain: Mapping[str, Any], *, of_defaults: bool = False) -> Node:
    """The node of a schema. Raises UnsupportedSchemaError.

    With `of_defaults` the node judges as upstream judges the defaults of a schema: unknown formats are not left out,
    and an int-or-string may be anything that is not said of it otherwise.
    """
    return _Compiler(of_defaults=of_defaults).node(plain)


def refuse_unsupported(plain: Mapping[str, Any]) -> None:
    """Raises UnsupportedSchemaError where a schema has members that no structural schema has."""
    for name, told in _UNSUPPORTED.items():
        found = plain.get(name)
        if found or (found is not None and name == "additionalItems"):
            raise UnsupportedSchemaError(f"OpenAPIV3Schema '{told}' is not supported")


class _Compiler:
    def __init__(self, *, of_defaults: bool) -> None:
        self._of_defaults = of_defaults

    def node(self, plain: Mapping[str, Any]) -> Node:
        give_way()
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
        """The format, unless it is not known for these types."""
        if not format or self._of_defaults:
            return format
        kind = types[0] if len(types) == 1 else ""
        if kind in ("", "string"):
            return format if normalized(format) in FORMATS else ""
        return format if format in _NUMBER_FORMATS.get(kind, ()) else ""

    def _checks(self, plain: Mapping[str, Any]) -> Checks | None:
        if _CHECKED.isdisjoint(plain):
            return None
        negated = plain.get("not")
        said: dict[str, Any] = {"negated": None if negated is None else self.node(negated)}
        for name, attribute in _JUNCTORS:
            said[attribute] = tuple(self.node(each) for each in plain.get(name) or ())
        for name, attribute in _PLAIN_CHECKS:
            said[attribute] = plain.get(name)
        for name, attribute in _NUMBER_CHECKS:
            found = plain.get(name)
            said[attribute] = None if found is None else float(found)
        enum = plain.get("enum")
        said["enum"] = tuple(enum) if enum else None
        said["names"] = frozenset(each for each in enum if each.__class__ is str) if enum else None
        said["exclusive_maximum"] = said["maximum"] is not None and bool(plain.get("exclusiveMaximum"))
        said["exclusive_minimum"] = said["minimum"] is not None and bool(plain.get("exclusiveMinimum"))
        said["pattern"] = plain.get("pattern") or ""
        said["unique_items"] = bool(plain.get("uniqueItems"))
        said["required"] = tuple(sys.intern(each) for each in plain.get("required") or ())
        if all(value is None or value is False or value == () or value == "" for value in said.values()):
            return None
        junctors = ("all_of", "any_of", "one_of", "negated")
        said["has_junctors"] = any(said[name] for name in junctors)
        return Checks(**said)


def _mask(types: tuple[str, ...], format: str) -> int:
    """The classes of values that upstream's type validator lets through: a text or list passes for any format, as what
    is not a number is left to the format."""
    if not types:
        return OF_STR | OF_LIST if format else OF_ALL
    mask = 0
    for each in types:
        mask |= _MASKS.get(each, 0)
    if format and not mask & OF_INT:
        mask |= OF_STR | OF_LIST
    return mask


def _bounds(types: tuple[str, ...], format: str, checks: Checks | None) -> tuple[int, int] | None:
    """The least and the greatest integer, if nothing but whole limits is said of them."""
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
    """The node in use that says the same, or else this one."""
    features = node.features()
    key = hash(features)
    use = _in_use.get(key)
    found = None if use is None else use()
    if found is not None:
        return found if found.features() == features else node
    use = _in_use[key] = _Use(node, _forget)
    use.key = key
    return node


def _forget(use: _Use) -> None:
    if _in_use.get(use.key) is use:
        del _in_use[use.key]
