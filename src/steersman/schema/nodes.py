"""What a schema is compiled to: nodes without descriptions, which say of a value what has to be known and no more.

A node is shared by all places, and by all schemas, that say the same. Nothing changes it once it is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any, Final

Plain = dict[str, Any]

NULLABLE: Final = 1
PRESERVE: Final = 2
"""x-kubernetes-preserve-unknown-fields."""
EMBEDDED: Final = 4
"""x-kubernetes-embedded-resource."""
INT_OR_STRING: Final = 8
"""x-kubernetes-int-or-string."""
ATOMIC_MAP: Final = 16
"""x-kubernetes-map-type: atomic."""
DEFAULTS_BELOW: Final = 32
"""Something below has a default."""
EMBEDDED_BELOW: Final = 64
"""It is an embedded resource, or something below is."""
LISTS_BELOW: Final = 128
"""It is a set or has keys, or something below is or has."""
RULES_BELOW: Final = 256
"""It has rules, or something below has."""

BELOW: Final = DEFAULTS_BELOW | EMBEDDED_BELOW | LISTS_BELOW | RULES_BELOW

OF_STR: Final = 1
OF_INT: Final = 2
OF_FLOAT: Final = 4
OF_BOOL: Final = 8
OF_DICT: Final = 16
OF_LIST: Final = 32
OF_ALL: Final = 63

BITS: Final[Mapping[type, int]] = {
    str: OF_STR,
    int: OF_INT,
    float: OF_FLOAT,
    bool: OF_BOOL,
    dict: OF_DICT,
    list: OF_LIST,
}
"""The bit of each class that plain JSON values have."""


class _Missing:
    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""Stands for a default that is not declared: null is none either, but is not what a schema says."""


class Checks:
    """The value validations of a node; None where nothing is said."""

    __slots__ = (
        "all_of",
        "any_of",
        "enum",
        "exclusive_maximum",
        "exclusive_minimum",
        "has_junctors",
        "max_items",
        "max_length",
        "max_properties",
        "maximum",
        "min_items",
        "min_length",
        "min_properties",
        "minimum",
        "multiple_of",
        "names",
        "negated",
        "one_of",
        "pattern",
        "required",
        "unique_items",
    )

    enum: tuple[Any, ...] | None
    names: frozenset[str] | None
    """The texts in `enum`."""
    multiple_of: float | None
    maximum: float | None
    exclusive_maximum: bool
    minimum: float | None
    exclusive_minimum: bool
    max_length: int | None
    min_length: int | None
    pattern: str
    max_items: int | None
    min_items: int | None
    unique_items: bool
    max_properties: int | None
    min_properties: int | None
    required: tuple[str, ...]
    all_of: tuple[Node, ...]
    any_of: tuple[Node, ...]
    one_of: tuple[Node, ...]
    negated: Node | None
    """What `not` says."""
    has_junctors: bool
    """Whether there is any of these four."""

    def __init__(self, **said: Any) -> None:
        for name in self.__slots__:
            setattr(self, name, said[name])

    def features(self) -> tuple[Any, ...]:
        """All that they ask for; only the values of an enum may be of any type."""
        return _checks_but_enum(self), None if self.enum is None else _as_key(self.enum)


_checks_but_enum: Final = attrgetter(*(name for name in Checks.__slots__ if name != "enum"))


class Node:
    """One place of a compiled schema."""

    __slots__ = (
        "__weakref__",
        "additional",
        "bounds",
        "checks",
        "declared_format",
        "default",
        "defaulted",
        "format",
        "items",
        "list_type",
        "map_keys",
        "mask",
        "properties",
        "rules",
        "sure",
        "traits",
        "types",
    )

    types: tuple[str, ...]
    """What a value may be; nothing where anything goes."""
    mask: int
    """The classes (`BITS`) of values that the types let through, apart from null."""
    sure: type | None
    """The class of which every value is valid, if there is nothing else to be checked of it."""
    bounds: tuple[int, int] | None
    """Between which every integer is valid and no other is, where that is all to be said of integers."""
    traits: int
    """What is true of it: NULLABLE and the others above."""
    format: str
    """The format that is checked, "" where it is none that is known for the types."""
    declared_format: str
    properties: dict[str, Node]
    additional: Node | bool | None
    """What members without a name in `properties` are; None if nothing is said of them."""
    items: Node | None
    list_type: str
    map_keys: tuple[str, ...]
    default: Any
    """MISSING if there is none; nobody may change it."""
    defaulted: tuple[tuple[str, Node], ...]
    """The properties that have a default."""
    checks: Checks | None
    rules: tuple[Plain, ...]
    """x-kubernetes-validations, as declared."""

    def __init__(self, **said: Any) -> None:
        for name, value in said.items():
            setattr(self, name, value)

    def child(self, name: str) -> Node | None:
        """What is said of the member of an object; None if that is nothing."""
        found = self.properties.get(name)
        if found is None and isinstance(self.additional, Node):
            return self.additional
        return found

    def features(self) -> tuple[Any, ...]:
        """All that it says, by which equal nodes are found."""
        checks = self.checks
        said = None if checks is None else checks.features()
        return (
            self.types,
            self.mask,
            self.traits,
            self.format,
            self.declared_format,
            self.additional,
            self.items,
            self.list_type,
            self.map_keys,
            tuple(self.properties.items()),
            said,
            self.default if self.default is MISSING else _as_key(self.default),
            _as_key(self.rules) if self.rules else (),
        )


def _as_key(value: Any) -> Any:
    """A value that can be hashed and tells all JSON values apart, true from 1 and 1 from 1.0 too."""
    match value:
        case dict():
            return dict, tuple((name, _as_key(member)) for name, member in value.items())
        case list() | tuple():
            return list, tuple(_as_key(item) for item in value)
        case bool() | float():
            return value.__class__, value
    return value
