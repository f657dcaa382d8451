"""The compiled form of a schema: nodes with only the members that decide about values, without descriptions.

All equal parts of all schemas share one node. Nodes are immutable.
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
"""A node below has a default."""
EMBEDDED_BELOW: Final = 64
"""The node is an embedded resource, or a node below is."""
LISTS_BELOW: Final = 128
"""The node is a set or a list with keys, or a node below is."""
RULES_BELOW: Final = 256
"""The node has rules, or a node below has."""

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
"""The bit of each class of plain JSON values."""


class _Missing:
    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""The default of a node that declares none. A declared null counts as none, too."""


class Checks:
    """The value validations of a node; None or an empty value for a validation that is not set."""

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
    """The schema of `not`."""
    has_junctors: bool
    """True if there is any of allOf, anyOf, oneOf and not."""

    def __init__(self, **said: Any) -> None:
        for name in self.__slots__:
            setattr(self, name, said[name])

    def features(self) -> tuple[Any, ...]:
        """Return a hashable of all validations; the values of an enum may be of any type."""
        return _checks_but_enum(self), None if self.enum is None else _as_key(self.enum)


_checks_but_enum: Final = attrgetter(*(name for name in Checks.__slots__ if name != "enum"))


class Node:
    """A compiled schema of values at one position."""

    __slots__ = (
        "__weakref__",
        "additional",
        "bounds",
        "checks",
        "declared_format",
        "deep",
        "default",
        "defaulted",
        "format",
        "items",
        "list_type",
        "map_keys",
        "mask",
        "properties",
        "ruled",
        "rules",
        "sure",
        "traits",
        "types",
    )

    types: tuple[str, ...]
    """The types of valid values; empty if all types are valid."""
    mask: int
    """The classes (`BITS`) of values that the types allow, apart from null."""
    sure: type | None
    """The class all of whose values are valid, if there is one."""
    bounds: tuple[int, int] | None
    """The smallest and largest valid integer, if no other validation of integers applies."""
    traits: int
    """Flags: NULLABLE and the others above."""
    format: str
    """The validated format, "" if it is unknown for the types."""
    declared_format: str
    properties: dict[str, Node]
    additional: Node | bool | None
    """The schema of members outside of `properties`, or a flag; None if the schema does not set it."""
    items: Node | None
    list_type: str
    map_keys: tuple[str, ...]
    default: Any
    """The declared default, MISSING if there is none. It must not be changed."""
    defaulted: tuple[tuple[str, Node], ...]
    """The properties that have a default."""
    deep: tuple[tuple[str, Node], ...]
    """The properties below which there are defaults."""
    ruled: frozenset[str]
    """The names of the properties that have rules, or below which there are rules."""
    checks: Checks | None
    rules: tuple[Plain, ...]
    """x-kubernetes-validations, as declared."""

    def __init__(self, **said: Any) -> None:
        for name, value in said.items():
            setattr(self, name, value)

    def child(self, name: str) -> Node | None:
        """Return the schema of an object's member, None if it has none."""
        found = self.properties.get(name)
        if found is None and isinstance(self.additional, Node):
            return self.additional
        return found

    def features(self) -> tuple[Any, ...]:
        """Return a hashable of everything that the node declares, by which equal nodes are found."""
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
    """Return a hashable that differs for all different JSON values, also for true and 1, and for 1 and 1.0."""
    match value:
        case dict():
            return dict, tuple((name, _as_key(member)) for name, member in value.items())
        case list() | tuple():
            return list, tuple(_as_key(item) for item in value)
        case bool() | float():
            return value.__class__, value
    return value
