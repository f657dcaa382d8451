"""What protobuf needs to know of each generated class, worked out from the Go types the first time it is asked for.

A `Message` is the plan of one Go struct: by which keys its fields arrive, and in which order they are written. The
protobuf type of a field follows from its Go type alone, as in k8s.io/code-generator's go-to-protobuf; the struct tag
gives nothing but the number. An embedded struct is a message within the message, though the Python class has its
members as its own.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from typing import Any, Final, NamedTuple

import msgspec

from steersman.api import tables

# How a field's value is read and written. Up to RAW the value has a length before it, the others are numbers.
STRING: Final = 0
MESSAGE: Final = 1
MESSAGES: Final = 2
MAP: Final = 3
TIME: Final = 4
STRINGS: Final = 5
EMBEDDED: Final = 6
QUANTITY: Final = 7
BYTES: Final = 8
MICRO_TIME: Final = 9
DURATION: Final = 10
INT_OR_STRING: Final = 11
RAW: Final = 12
JSON: Final = 13
SCHEMA_OR_ARRAY: Final = 14
SCHEMA_OR_BOOL: Final = 15
SCHEMA_OR_STRINGS: Final = 16
ITEMS: Final = 17
LIST: Final = 18
PACKED: Final = 19
BOOL: Final = 20
INT32: Final = 21
INT64: Final = 22
NUMBERS: Final = 23
FLOAT64: Final = 24

SCHEMA: Final = "apiextensions.v1.JSONSchemaProps"

_OWN: Final = {
    "meta.v1.Time": TIME,
    "meta.v1.MicroTime": MICRO_TIME,
    "meta.v1.Duration": DURATION,
    "meta.v1.FieldsV1": RAW,
    "meta.v1.Verbs": ITEMS,
    "authentication.v1.ExtraValue": ITEMS,
    "authorization.v1.ExtraValue": ITEMS,
    "certificates.v1.ExtraValue": ITEMS,
    "api.resource.Quantity": QUANTITY,
    "util.intstr.IntOrString": INT_OR_STRING,
    "pkg.runtime.RawExtension": RAW,
    "apiextensions.v1.JSON": JSON,
    "apiextensions.v1.JSONSchemaPropsOrArray": SCHEMA_OR_ARRAY,
    "apiextensions.v1.JSONSchemaPropsOrBool": SCHEMA_OR_BOOL,
    "apiextensions.v1.JSONSchemaPropsOrStringArray": SCHEMA_OR_STRINGS,
}
"""Go types with a message that is not that of their fields."""

_PLAIN: Final = {
    "string": STRING, "bytes": BYTES, "bool": BOOL, "int32": INT32, "int64": INT64, "float64": FLOAT64,
}  # fmt: skip
_WIRE_TYPES: Final = {BOOL: 0, INT32: 0, INT64: 0, NUMBERS: 0, FLOAT64: 1}
"""The wire types of kinds that have no length (2)."""
_ZEROS: Final[dict[int, bytes]] = {
    BOOL: b"\0", INT32: b"\0", INT64: b"\0", FLOAT64: bytes(8), STRING: b"\0", BYTES: b"\0", ITEMS: b"\0",
}  # fmt: skip
"""What is written for an empty value, after the key; other kinds have none, write nothing, or are told apart later."""
_NONES: Final[dict[int, bytes]] = {
    TIME: b"\0", MICRO_TIME: b"\0", RAW: b"\0", JSON: b"\0", QUANTITY: b"\x03\x0a\x010", DURATION: b"\x02\x08\0",
}  # fmt: skip
"""What is written for None where Go has no pointer."""

_MAP_TYPE = re.compile(r"map\[[^\]]*\]")


class NotMarshalableError(TypeError):
    """The type has no protobuf form; the message is upstream's, and a client sees it with 406 NotAcceptable."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"object *{name} does not implement the protobuf marshalling interface and cannot be encoded to a "
            "protobuf message"
        )


class Value(NamedTuple):
    """How one value is read and written; `element` is a Message, or the Value of a list's items or a map's values."""

    kind: int
    element: Any = None


class Reader(NamedTuple):
    """How a field is read: its kind, the member of the class it is for, and its element (see `Value`)."""

    kind: int
    attribute: str
    element: Any


class Writer(NamedTuple):
    """How a field is written: its kind, the place of its member in the class, its key, and its element.

    `none` and `zero` are what is written, key and all, for None and for other falsy values.
    """

    kind: int
    place: int
    key: bytes
    none: bytes
    zero: bytes
    element: Any


class Message:
    """The plan of a Go struct whose members are those of `cls`; `name` is Go's.

    `readers` go by the key as it stands before the value, `fields` has the Go name and wire type of each number.
    """

    __slots__ = ("cls", "fields", "name", "readers", "writers")

    def __init__(self, cls: type[msgspec.Struct], name: str) -> None:
        self.cls = cls
        self.name = name
        self.readers: dict[int, Reader] = {}
        self.writers: tuple[Writer, ...] = ()
        self.fields: dict[int, tuple[str, int]] = {}


@lru_cache(maxsize=4096)
def message_of(cls: type[msgspec.Struct]) -> Message:
    """The plan of a class, those of the classes within it made as well. Raises NotMarshalableError."""
    return _Builder().message(tables.module_of(cls), cls.__name__)


def number_key(tag: int, wire_type: int) -> bytes:
    """The key before a value: field number and wire type as a varint."""
    return varint(tag << 3 | wire_type)


def varint(value: int) -> bytes:
    """A number (at least 0) as protobuf writes it: seven bits a byte, the lowest first."""
    if value < 128:
        return bytes((value,))
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


class _Builder:
    """Builds a plan with the plans within it; a type that holds itself finds its own unfinished plan."""

    def __init__(self) -> None:
        self._made: dict[tuple[type, str], Message] = {}

    def message(self, module: str, name: str, outer: type[msgspec.Struct] | None = None) -> Message:
        """The plan of a struct; that of an embedded one has its members in `outer`."""
        cls = outer or getattr(import_module(f"steersman.api.{module}"), name)
        if (made := self._made.get((cls, name))) is not None:
            return made
        message = self._made[cls, name] = Message(cls, name)
        rows = tables.table(module).structs[name]
        if rows and not any(row.tag for row in rows):
            raise NotMarshalableError(f"{module.replace('.', '/').rpartition('/')[2]}.{name}")
        writers = []
        for row in sorted((row for row in rows if row.tag), key=lambda row: row.tag):
            writers.append(self._field(message, module, row))
        message.writers = tuple(writers)
        return message

    def _field(self, message: Message, module: str, row: tables.Field) -> Writer:
        if row.inline:
            package, version, name = row.type.split(".")
            value = Value(EMBEDDED, self.message(f"{package}.{version}", name, message.cls))
            place = 0
        else:
            value = self._value(module, row.type)
            place = message.cls.__struct_fields__.index(row.attribute)
        kind, element = value
        wire_type = _WIRE_TYPES.get(kind, 2)
        message.fields[row.tag] = (row.go, wire_type)
        message.readers[row.tag << 3 | wire_type] = Reader(kind, row.attribute, element)
        if kind == NUMBERS:
            message.readers[row.tag << 3 | 2] = Reader(PACKED, row.attribute, element)
        key = number_key(row.tag, wire_type)
        none = b""
        zero = key + _ZEROS[kind] if kind in _ZEROS else b""
        if kind == BYTES and row.omit:
            zero = b""  # such a member has no None: it is empty where Go has nil
        if not row.pointer and kind in _NONES:
            none = key + _NONES[kind]
        return Writer(kind, place, key, none, zero, element)

    def _value(self, module: str, type_name: str) -> Value:
        """How a value of a Go type is read and written."""
        if (kind := _OWN.get(type_name)) is not None:
            if kind in (SCHEMA_OR_ARRAY, SCHEMA_OR_BOOL, SCHEMA_OR_STRINGS):
                return Value(kind, self.message("apiextensions.v1", "JSONSchemaProps"))
            return Value(kind)
        if (kind := _PLAIN.get(type_name)) is not None:
            return Value(kind)
        if type_name.startswith("[]"):
            return self._list(self._value(module, type_name[2:]))
        if match := _MAP_TYPE.match(type_name):
            return Value(MAP, self._value(module, type_name[match.end() :]))
        if (underlying := tables.table(module).scalars.get(type_name)) is not None:
            return self._value(module, underlying)
        package, version, name = type_name.split(".")
        return Value(MESSAGE, self.message(f"{package}.{version}", name))

    def _list(self, item: Value) -> Value:
        if item.kind == STRING:
            return Value(STRINGS)
        if item.kind == MESSAGE:
            return Value(MESSAGES, item.element)
        return Value(NUMBERS if item.kind in (BOOL, INT32, INT64) else LIST, item)
