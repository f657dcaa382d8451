"""Types of CEL expressions and their values (CEL language definition, "Values" and "Type Checking")."""

from __future__ import annotations

import enum
from typing import Final
from weakref import WeakValueDictionary


class Kind(enum.Enum):
    """The kind of a type. Types of the same kind differ in their names and parameters."""

    ANY = "any"
    BOOL = "bool"
    BYTES = "bytes"
    DOUBLE = "double"
    DURATION = "duration"
    DYN = "dyn"
    ERROR = "error"
    INT = "int"
    LIST = "list"
    MAP = "map"
    NULL = "null"
    OPAQUE = "opaque"
    STRING = "string"
    STRUCT = "struct"
    TIMESTAMP = "timestamp"
    TYPE = "type"
    TYPE_PARAM = "type_param"
    UINT = "uint"

    # Kinds are compared and looked up for every node. Hashing by identity is sufficient and faster.
    __hash__ = object.__hash__


class Type:
    """A type. There is only one object for each kind, name and parameters, so types are compared by identity.

    `name` is the type's name at run time, as printed for `type(x)`: "list" for every list.
    """

    __slots__ = ("__weakref__", "is_concrete", "kind", "name", "params", "size")

    kind: Kind
    name: str
    params: tuple[Type, ...]
    is_concrete: bool
    """True if the type contains no type parameter, so that there is nothing to substitute."""
    size: int
    """The number of types in its text. Parts are shared objects, so a type may be much larger than the expression that
    has it.
    """

    def __new__(cls, kind: Kind, name: str, params: tuple[Type, ...] = ()) -> Type:
        known = _KNOWN.get((kind, name, params))
        if known is not None:
            return known
        self = super().__new__(cls)
        self.kind = kind
        self.name = name
        self.params = params
        self.is_concrete = kind is not Kind.TYPE_PARAM and all(param.is_concrete for param in params)
        self.size = 1 + sum(param.size for param in params)
        _KNOWN[kind, name, params] = self
        return self

    def __repr__(self) -> str:
        return f"<Type {self.text()}>"

    def text(self) -> str:
        """Return the name of a result type in messages: `list(string)`, `google.protobuf.Any`."""
        if self.size > MAX_SHOWN:
            return f"{self.name}(...)"
        if self.kind is Kind.TYPE_PARAM:
            return f"<{self.name}>"
        if not self.params:
            return self.name
        return f"{self.name}({', '.join(param.text() for param in self.params)})"

    @property
    def is_dyn(self) -> bool:
        """True if the type is only known from the value."""
        return self.kind is Kind.DYN or self.kind is Kind.ANY

    @property
    def is_optional(self) -> bool:
        """True for `optional_type(T)`."""
        return self.kind is Kind.OPAQUE and self.name == OPTIONAL_NAME


_KNOWN: Final[WeakValueDictionary[tuple[Kind, str, tuple[Type, ...]], Type]] = WeakValueDictionary()

MAX_SHOWN: Final = 2000
"""The size up to which the full text of a type is shown."""

OPTIONAL_NAME: Final = "optional_type"

ANY: Final = Type(Kind.ANY, "google.protobuf.Any")
BOOL: Final = Type(Kind.BOOL, "bool")
BYTES: Final = Type(Kind.BYTES, "bytes")
DOUBLE: Final = Type(Kind.DOUBLE, "double")
DURATION: Final = Type(Kind.DURATION, "google.protobuf.Duration")
DYN: Final = Type(Kind.DYN, "dyn")
ERROR: Final = Type(Kind.ERROR, "error")
INT: Final = Type(Kind.INT, "int")
NULL: Final = Type(Kind.NULL, "null_type")
STRING: Final = Type(Kind.STRING, "string")
TIMESTAMP: Final = Type(Kind.TIMESTAMP, "google.protobuf.Timestamp")
TYPE: Final = Type(Kind.TYPE, "type")
UINT: Final = Type(Kind.UINT, "uint")


def list_of(element: Type) -> Type:
    """Return `list(element)`."""
    return Type(Kind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """Return `map(key, value)`."""
    return Type(Kind.MAP, "map", (key, value))


def optional_of(value: Type) -> Type:
    """Return `optional_type(value)`."""
    return Type(Kind.OPAQUE, OPTIONAL_NAME, (value,))


def opaque(name: str, *params: Type) -> Type:
    """Return a type whose content only functions can access."""
    return Type(Kind.OPAQUE, name, params)


def object_type(name: str) -> Type:
    """Return a type with fields, which are declared in the environment."""
    return Type(Kind.STRUCT, name)


def type_of(value: Type) -> Type:
    """Return the type of the type `value` itself: `type(int)`."""
    return Type(Kind.TYPE, "type", (value,))


def type_param(name: str) -> Type:
    """Return a type parameter of an overload, which is bound at each call."""
    return Type(Kind.TYPE_PARAM, name)


LIST_OF_DYN: Final = list_of(DYN)
MAP_OF_DYN: Final = map_of(DYN, DYN)

_SHORT_NAMES: Final = {
    Kind.ANY: "any",
    Kind.DURATION: "duration",
    Kind.ERROR: "!error!",
    Kind.NULL: "null",
    Kind.TIMESTAMP: "timestamp",
}


def format_type(type: Type) -> str:
    """Return the name of a type in the checker's messages: `map(string, dyn)`, `timestamp`, `!error!`."""
    if type.size > MAX_SHOWN:
        return f"{type.name}(...)"
    short = _SHORT_NAMES.get(type.kind)
    if short is not None:
        return short
    if not type.params:
        return type.name
    return f"{type.name}({', '.join(map(format_type, type.params))})"
