"""Encoding of objects of the generated classes as protobuf messages, byte for byte as upstream's generated code does.

Fields are in the order of their numbers. Members that Go holds by value are always written, even zero; members that Go
holds by pointer only if they are set; lists and maps if they have items, maps by sorted keys; numbers of lists one by
one.
"""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from functools import lru_cache
from itertools import compress
from typing import Any, Final

import msgspec
from msgspec.structs import astuple

from steersman.machinery.codec.protobuf.tables import (
    BOOL,
    BYTES,
    DURATION,
    FLOAT64,
    INT32,
    INT64,
    INT_OR_STRING,
    ITEMS,
    JSON,
    LIST,
    MAP,
    MESSAGE,
    MESSAGES,
    MICRO_TIME,
    NUMBERS,
    PART,
    PARTS,
    QUANTITY,
    RAW,
    SCHEMA_OR_ARRAY,
    SCHEMA_OR_BOOL,
    STRING,
    STRINGS,
    TIME,
    Message,
    Value,
    Writer,
    varint,
)
from steersman.machinery.codec.serializer import encode as encode_json
from steersman.machinery.values.durations import parse_duration

_SHORT: Final = tuple(bytes((number,)) for number in range(128))
_INTEGERS: Final = (INT32, INT64)
_KEYS: Final = tuple(b"\n" + each for each in _SHORT)
_VALUES: Final = tuple(b"\x12" + each for each in _SHORT)
_DOUBLE = struct.Struct("<d")
_YEARS_400: Final = 12_622_780_800

_long = lru_cache(maxsize=4096)(varint)


def write_message(message: Message, obj: Any) -> bytes:
    """Return the message of an object of the plan's class, without a key or length before it."""
    return _write(message, astuple(obj))


def delimited(body: bytes) -> bytes:
    """Return `body` with its length before it."""
    length = len(body)
    return (_SHORT[length] if length < 128 else _long(length)) + body


def _write(message: Message, members: tuple[Any, ...]) -> bytes:
    """Return the message of a class's members: fields that are set replace pieces of an empty message."""
    if message.readers is None:
        message.completed()
    pick = message.pick
    values = members if pick is None else pick(members)
    out = message.blank.copy()
    for zero, writer in message.nullable:
        value = values[writer.at]
        if not value and value is not None:
            out[writer.place] = zero or _rare(writer, value)
    for place, key, heads, element in message.embedded:
        body = _write(element, members)
        length = len(body)
        out[place] = heads[length] + body if length < 128 else key + _long(length) + body
    for writer in compress(message.writers, values):
        at, place, kind, key, heads, element = writer
        value = values[at]
        if kind == STRING:
            body = value.encode()
        elif kind == MESSAGE:
            body = _write(element, astuple(value))
        elif kind == BOOL:
            out[place] = heads[1]
            continue
        elif kind in _INTEGERS:
            out[place] = heads[value] if 0 < value < 128 else key + _long(value & 0xFFFFFFFFFFFFFFFF)
            continue
        elif kind == MESSAGES:
            items: list[bytes] = []
            for item in value:
                body = _write(element, astuple(item))
                items += heads[len(body)] if len(body) < 128 else key + _long(len(body)), body
            out[place] = b"".join(items)
            continue
        elif kind == MAP:
            out[place] = _text_map(heads, key, value) if element.kind == STRING else _map(key, element, value)
            continue
        elif kind == STRINGS:
            texts = []
            for item in value:
                body = item.encode()
                texts.append(heads[len(body)] + body if len(body) < 128 else key + _long(len(body)) + body)
            out[place] = b"".join(texts)
            continue
        elif kind == TIME:
            body = _time(value)
        elif kind == PART:
            body = element.known(value)
            if body is None:
                continue
        elif kind == PARTS:
            out[place] = element.known(value)
            continue
        else:
            out[place] = _rare(writer, value)
            continue
        length = len(body)
        out[place] = heads[length] + body if length < 128 else key + _long(length) + body
    return b"".join(out)


def _rare(writer: Writer, value: Any) -> bytes:
    """Return a field of a rarely used type, with its key before each value."""
    _, _, kind, key, _, element = writer
    if kind == LIST:
        return b"".join([key + delimited(_body(element.kind, element.element, item)) for item in value])
    if kind == NUMBERS:
        return b"".join([key + _long(item & 0xFFFFFFFFFFFFFFFF) for item in value])
    if kind == FLOAT64:
        return key + _DOUBLE.pack(value)
    return key + delimited(_body(kind, element, value))


def _text_map(heads: tuple[bytes, ...], key: bytes, entries: dict[str, str]) -> bytes:
    """Return the entries of a map of text, each a message of its key (1) and value (2)."""
    out = []
    for name in sorted(entries):
        text, value = name.encode(), entries[name].encode()
        length, size = len(text), len(value)
        if length + size < 124:
            out.append(heads[length + size + 4] + _KEYS[length] + text + _VALUES[size] + value)
        else:
            out.append(key + delimited(b"\n" + delimited(text) + b"\x12" + delimited(value)))
    return b"".join(out)


def _map(key: bytes, value: Value, entries: dict[str, Any]) -> bytes:
    """Return the entries of a map whose values are not text."""
    kind, element = value
    out = []
    for name in sorted(entries):
        entry = b"\n" + delimited(name.encode())
        if (item := entries[name]) is not None or kind != BYTES:
            entry += b"\x12" + delimited(_body(kind, element, item))
        out.append(key + delimited(entry))
    return b"".join(out)


def _body(kind: int, element: Any, value: Any) -> bytes:
    """Return the bytes of a single value, without its length."""
    if kind == QUANTITY:
        return b"\n" + delimited((value or "0").encode())
    if kind == BYTES:
        return bytes(value)
    if kind == MESSAGE:
        return write_message(element, value) if value is not None else write_message(element, element.cls())
    if kind == INT_OR_STRING:
        return _int_or_string(value)
    if kind == TIME:
        return _time(value) if value else b""
    if kind == MICRO_TIME:
        return _micro_time(value) if value else b""
    if kind == DURATION:
        return b"\x08" + _long(parse_duration(value) & 0xFFFFFFFFFFFFFFFF)
    if kind == ITEMS:
        return b"".join(b"\n" + delimited(item.encode()) for item in value or ())
    if kind == RAW:
        return _raw(value)
    if kind == JSON:
        return b"" if value is None else b"\n" + delimited(encode_json(value))
    return _schema_or(kind, element, value)


def _schema_or(kind: int, schema: Message, value: Any) -> bytes:
    """Return a JSONSchemaPropsOrArray, -OrBool or -OrStringArray message."""
    if isinstance(value, schema.cls):
        body = delimited(write_message(schema, value))
        return b"\x08\1\x12" + body if kind == SCHEMA_OR_BOOL else b"\n" + body
    if kind == SCHEMA_OR_BOOL:
        return b"\x08\1" if value else b"\x08\0"
    if kind == SCHEMA_OR_ARRAY:
        return b"".join(b"\x12" + delimited(write_message(schema, item)) for item in value or ())
    return b"".join(b"\x12" + delimited(item.encode()) for item in value or ())


def _raw(value: msgspec.Raw | None) -> bytes:
    """Return the message of a RawExtension or FieldsV1."""
    body = bytes(value) if value is not None else b""
    return b"\n" + delimited(body) if body and body != b"null" else b""


@lru_cache(maxsize=4096)
def _time(text: str) -> bytes:
    """Return a Time as a Timestamp message, whose nanoseconds are always 0."""
    return b"\x08" + varint(_seconds(text) & 0xFFFFFFFFFFFFFFFF) + b"\x10\0"


@lru_cache(maxsize=1024)
def _micro_time(text: str) -> bytes:
    """Return a MicroTime as a Timestamp message."""
    nanos = int(text[20:26].ljust(6, "0")) * 1000 if text[19:20] == "." else 0
    return b"\x08" + varint(_seconds(text) & 0xFFFFFFFFFFFFFFFF) + b"\x10" + varint(nanos)


def _seconds(text: str) -> int:
    """Return a canonical Time or MicroTime in seconds since 1970, without its fraction."""
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
    shift = 400 if year < 400 else 0
    moment = datetime(year + shift, month, day, int(text[11:13]), int(text[14:16]), int(text[17:19]), tzinfo=UTC)
    return int(moment.timestamp()) - (_YEARS_400 if shift else 0)


def _int_or_string(value: int | str) -> bytes:
    if isinstance(value, str):
        return b"\x08\1\x10\0\x1a" + delimited(value.encode())
    return b"\x08\0\x10" + varint(value & 0xFFFFFFFFFFFFFFFF) + b"\x1a\0"
