"""Encoding and decoding plans of the generated classes, computed from the Go types at first use.

A `Message` is the plan of a Go struct: the keys of its fields, and the order in which they are written. The protobuf
type of a field follows from its Go type alone, as in k8s.io/code-generator's go-to-protobuf; the struct tag only gives
the number. An embedded struct is a nested message, although the Python class has its members as its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from operator import itemgetter
from typing import Any, Final, NamedTuple

import msgspec

from steersman.api import tables
from steersman.work.patterns import late_pattern

# Kinds of field values. Values up to RAW have a length before them, the others are numbers.
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
# Values that are still JSON when they are written (see transcode).
PART: Final = 25
PARTS: Final = 26

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
"""Go types whose message differs from their fields."""

_PLAIN: Final = {"string": STRING, "bytes": BYTES, "bool": BOOL, "int32": INT32, "int64": INT64, "float64": FLOAT64}
_WIRE_TYPES: Final = {BOOL: 0, INT32: 0, INT64: 0, NUMBERS: 0, FLOAT64: 1}
"""Wire types of kinds that are not length-delimited (wire type 2)."""
_ZEROS: Final[dict[int, bytes]] = {
    BOOL: b"\0",
    INT32: b"\0",
    INT64: b"\0",
    FLOAT64: bytes(8),
    STRING: b"\0",
    BYTES: b"\0",
    ITEMS: b"\0",
}
"""Bytes after the key of an empty value."""
_UNSET: Final[dict[int, bytes]] = {
    TIME: b"\0",
    MICRO_TIME: b"\0",
    RAW: b"\0",
    JSON: b"\0",
    QUANTITY: b"\3\n\x010",
    DURATION: b"\2\x08\0",
    INT_OR_STRING: b"\6\x08\0\x10\0\x1a\0",
}
"""Bytes after the key of an unset value, for the other kinds that Go holds by value."""
_SCALARS: Final = frozenset({BOOL, INT32, INT64, FLOAT64, STRING})
_NULLABLE: Final = _SCALARS | {BYTES, ITEMS, INT_OR_STRING, JSON, SCHEMA_OR_BOOL}
"""Kinds whose values may be empty but not None."""

_MAP_TYPE = late_pattern(r"map\[[^\]]*\]")


class NotMarshalableError(TypeError):
    """The error for a type without a protobuf form, with upstream's message; clients get it as 406 NotAcceptable."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"object *{name} does not implement the protobuf marshalling interface and cannot be encoded to a "
            "protobuf message"
        )


class Value(NamedTuple):
    """The kind of a value.

    `element` is a Message, or the Value of a list's items or a map's values.
    """

    kind: int
    element: Any = None


class Reader(NamedTuple):
    """The decoding of a field: its kind, the name of the class's member, and its element (see `Value`)."""

    kind: int
    attribute: str
    element: Any


class Writer(NamedTuple):
    """The encoding of a field that is set: its index among the values and the pieces, its kind and its element.

    `key` comes before the value. `heads` are the key followed by each length below 128.
    """

    at: int
    place: int
    kind: int
    key: bytes
    heads: tuple[bytes, ...]
    element: Any


class Message:
    """The plan of a Go struct whose members are those of `cls`; `name` is Go's name.

    It is filled in at first use (see `completed`). For decoding: `readers` by the key before the value, and `fields`,
    the Go name and wire type of each field number. For encoding: `pick` returns the values of `writers` from those of
    the whole class, and `blank` has the pieces of an empty message. `nullable` are the fields whose values may be empty
    but not None, each with the bytes of the empty value (b"" if the bytes depend on the value). `embedded` are the
    embedded structs with their indexes, keys and heads.
    """

    __slots__ = ("blank", "cls", "embedded", "fields", "module", "name", "nullable", "pick", "readers", "writers")

    def __init__(self, module: str, name: str, cls: type[msgspec.Struct]) -> None:
        self.module = module
        self.name = name
        self.cls = cls
        self.readers: dict[int, Reader] | None = None
        self.fields: dict[int, tuple[str, int]] = {}
        self.pick: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None = None
        self.blank: list[bytes] = []
        self.writers: tuple[Writer, ...] = ()
        self.nullable: tuple[tuple[bytes, Writer], ...] = ()
        self.embedded: tuple[tuple[int, bytes, tuple[bytes, ...], Message], ...] = ()

    def completed(self) -> dict[int, Reader]:
        """Fill in the plan and return its readers. Raises NotMarshalableError."""
        return _complete(self)


def message_of(cls: type[msgspec.Struct]) -> Message:
    """Return the completed plan of a class. Raises NotMarshalableError."""
    message = _message(tables.module_of(cls), cls.__name__, cls)
    if message.readers is None:
        message.completed()
    return message


@lru_cache(maxsize=4096)
def _message(module: str, name: str, cls: type[msgspec.Struct]) -> Message:
    return Message(module, name, cls)


def _struct(type_name: str, outer: type[msgspec.Struct] | None = None) -> Message:
    """Return the plan of a struct, e.g. "core.v1.Pod".

    If the struct is embedded, `outer` is the class that has its members.
    """
    module, _, name = type_name.rpartition(".")
    return _message(module, name, outer or getattr(import_module(f"steersman.api.{module}"), name))


def varint(value: int) -> bytes:
    """Return a number (at least 0) as a varint: seven bits a byte, the lowest first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


@lru_cache(maxsize=512)
def _heads(key: bytes) -> tuple[bytes, ...]:
    return tuple(key + bytes((length,)) for length in range(128))


def _complete(message: Message) -> dict[int, Reader]:
    """Fill in a message's plan and return its readers. Raises NotMarshalableError."""
    rows = tables.table(message.module).structs[message.name]
    if rows and not any(row.tag for row in rows):
        raise NotMarshalableError(f"{message.module.replace('.', '/').rpartition('/')[2]}.{message.name}")
    readers: dict[int, Reader] = {}
    indexes: list[int] = []
    writers: list[Writer] = []
    embedded, nullable, blank = [], [], []
    for place, row in enumerate(sorted((row for row in rows if row.tag), key=lambda row: row.tag)):
        value = Value(EMBEDDED, _struct(row.type, message.cls)) if row.inline else _value(message.module, row.type)
        kind, element = value
        wire_type = _WIRE_TYPES.get(kind, 2)
        key = varint(row.tag << 3 | wire_type)
        message.fields[row.tag] = (row.go, wire_type)
        readers[row.tag << 3 | wire_type] = Reader(kind, row.attribute, element)
        if kind == NUMBERS:
            readers[row.tag << 3 | 2] = Reader(PACKED, row.attribute, element)
        if row.inline:
            embedded.append((place, key, _heads(key), element))
            blank.append(b"")
            continue
        blank.append(_blank(row, key, kind))
        writer = Writer(len(writers), place, kind, key, _heads(key), element)
        if kind in _NULLABLE and (row.pointer or kind not in _SCALARS) and not _is_nil(kind, row):
            nullable.append((key + _ZEROS[kind] if kind in _ZEROS else b"", writer))
        indexes.append(message.cls.__struct_fields__.index(row.attribute))
        writers.append(writer)
    message.writers, message.blank = tuple(writers), blank
    message.embedded, message.nullable = tuple(embedded), tuple(nullable)
    message.pick = _picker(indexes, len(message.cls.__struct_fields__))
    message.readers = readers
    return readers


def _blank(row: tables.Field, key: bytes, kind: int) -> bytes:
    """Return the bytes of a field that is not set."""
    if row.pointer or kind in (BYTES, ITEMS):
        return b""
    unset = _ZEROS.get(kind) or _UNSET.get(kind)
    return key + unset if unset else b""


def _is_nil(kind: int, row: tables.Field) -> bool:
    """Return True if an empty value of the class is nil in Go, as for byte strings that cannot be None."""
    return kind == BYTES and bool(row.omit)


def _picker(indexes: list[int], size: int) -> Callable[[tuple[Any, ...]], tuple[Any, ...]] | None:
    """Return a function that returns the values at `indexes`; None if these are all values, in order."""
    if indexes == list(range(size)):
        return None
    if len(indexes) > 1:
        return itemgetter(*indexes)
    return itemgetter(slice(indexes[0], indexes[0] + 1)) if indexes else itemgetter(slice(0, 0))


def _value(module: str, type_name: str) -> Value:
    """Return the kind and element of a Go type."""
    if (kind := _OWN.get(type_name)) is not None:
        is_schema = kind in (SCHEMA_OR_ARRAY, SCHEMA_OR_BOOL, SCHEMA_OR_STRINGS)
        return Value(kind, _struct("apiextensions.v1.JSONSchemaProps") if is_schema else None)
    if (kind := _PLAIN.get(type_name)) is not None:
        return Value(kind)
    if type_name.startswith("[]"):
        return _list(_value(module, type_name[2:]))
    if match := _MAP_TYPE.match(type_name):
        return Value(MAP, _value(module, type_name[match.end() :]))
    if (underlying := tables.table(module).scalars.get(type_name)) is not None:
        return _value(module, underlying)
    return Value(MESSAGE, _struct(type_name))


def _list(item: Value) -> Value:
    if item.kind == STRING:
        return Value(STRINGS)
    if item.kind == MESSAGE:
        return Value(MESSAGES, item.element)
    return Value(NUMBERS if item.kind in (BOOL, INT32, INT64) else LIST, item)
