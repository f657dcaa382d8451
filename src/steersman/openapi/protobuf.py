"""Protobuf encoding of OpenAPI documents: building blocks of message tables, and the encoder.

Follows gnostic's messages (github.com/google/gnostic-models). A table maps each JSON member of an object to a field;
the tables are in `v2_messages` and `v3_messages`. Values are decoded JSON.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from steersman.machinery.codec.serializer import encode_sorted
from steersman.net.protobuf_fields import varint
from steersman.work.threads import give_way

Body = Callable[[Any], bytes]
"""A function that encodes a value as the content of a message."""

Encode = Callable[[Any], bytes]
"""A function that encodes a value as whole fields including tags, or as b"" for the default of its type."""

Field = tuple[int, Encode]
"""The number of a field, and its encoder."""

_VARINT, _FIXED64, _LENGTH = 0, 1, 2
_DOUBLE: Final = struct.Struct("<d")


def encode_document(body: Body, document: dict[str, Any]) -> bytes:
    """Return the message of a whole document."""
    return body(document)


def check_document(body: Body, document: dict[str, Any]) -> None:
    """Raise ValueError if another server's document has no protobuf form.

    This is so if a member has a wrong type, or a number is too large.
    """
    try:
        encode_document(body, document)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, struct.error) as error:
        raise ValueError(f"it is not as OpenAPI has it: {error}") from None


def _tag(number: int, wire_type: int) -> bytes:
    return varint(number << 3 | wire_type)


def _sized(tag: bytes, data: bytes) -> bytes:
    size = len(data)
    return b"%b%c%b" % (tag, size, data) if size < 0x80 else b"%b%b%b" % (tag, varint(size), data)


def string(number: int) -> Field:
    """Return a string field; "" is not written."""
    tag = _tag(number, _LENGTH)
    return number, lambda value: _sized(tag, value.encode()) if value else b""


def strings(number: int) -> Field:
    """Return a repeated string field; a single string counts as a list of one."""
    tag = _tag(number, _LENGTH)

    def encode(value: Any) -> bytes:
        items = [value] if isinstance(value, str) else value
        return b"".join(_sized(tag, item.encode()) for item in items)

    return number, encode


def boolean(number: int) -> Field:
    """Return a bool field; false is not written."""
    true = _tag(number, _VARINT) + b"\x01"
    return number, lambda value: true if value else b""


def integer(number: int) -> Field:
    """Return an int64 field; 0 is not written."""
    tag = _tag(number, _VARINT)
    return number, lambda value: tag + varint(int(value)) if value else b""


def double(number: int) -> Field:
    """Return a double field; 0 is not written."""
    tag = _tag(number, _FIXED64)
    return number, lambda value: tag + _DOUBLE.pack(value) if value else b""


def message(number: int, body: Body) -> Field:
    """Return a message field."""
    tag = _tag(number, _LENGTH)
    return number, lambda value: _sized(tag, body(value))


def messages(number: int, body: Body) -> Field:
    """Return a repeated message field, encoded from a JSON array."""
    tag = _tag(number, _LENGTH)
    return number, lambda value: b"".join([_sized(tag, body(item)) for item in value])


def named(number: int, body: Body) -> Field:
    """Return a field that encodes a JSON object as repeated pair messages: name = 1, value = 2."""
    tag = _tag(number, _LENGTH)
    pair = _pair(body)
    return number, lambda value: b"".join([_sized(tag, pair(name, item)) for name, item in value.items()])


def _pair(body: Body) -> Callable[[str, Any], bytes]:
    def encode(name: str, value: Any) -> bytes:
        return _sized(b"\x0a", name.encode()) + _sized(b"\x12", body(value))

    return encode


def alone(field: Field) -> Body:
    """Return the body of a message with a single field."""
    return field[1]


def choice(choose: Callable[[Any], Body]) -> Body:
    """Return the body of a message with a oneof: `choose` returns, for a value, the body of the field to be set."""
    return lambda value: choose(value)(value)


class Message:
    """The body of a message encoded from a JSON object.

    Members are looked up in `fields`. Members that start with "x-" become pairs of name and Any in the field
    `extension`. Other members that start with `other[0]` become pairs in the field `other[1]`. All remaining members
    are dropped. Messages that refer to each other get their fields by `define`.
    """

    def __init__(
        self,
        fields: Mapping[str, Field] | None = None,
        *,
        extension: int = 0,
        other: tuple[str, int, Body] | None = None,
    ) -> None:
        self._fields: dict[str, Field] = dict(fields or {})
        self._extension = named(extension, any_value) if extension else None
        self._other = (other[0], named(other[1], other[2])) if other else None

    def define(self, fields: Mapping[str, Field]) -> None:
        """Add fields."""
        self._fields.update(fields)

    def __call__(self, value: dict[str, Any]) -> bytes:
        """Encode `value`, with its fields in the order of their numbers."""
        give_way()
        pieces: list[tuple[int, bytes]] = []
        extra: dict[str, Any] = {}
        others: dict[str, Any] = {}
        for name, item in value.items():
            field = self._fields.get(name)
            if field is not None:
                pieces.append((field[0], field[1](item)))
            elif name.startswith("x-"):
                extra[name] = item
            elif self._other is not None and name.startswith(self._other[0]):
                others[name] = item
        if extra and self._extension is not None:
            pieces.append((self._extension[0], self._extension[1](extra)))
        if others and self._other is not None:
            number, encode = self._other[1]
            pieces.append((number, encode(others)))
        pieces.sort(key=_number)
        return b"".join([data for _, data in pieces])


def _number(piece: tuple[int, bytes]) -> int:
    return piece[0]


def any_value(value: Any) -> bytes:
    """Return a value as gnostic's Any: YAML in field 2."""
    data = encode_sorted(value)
    return _any_of_few(data) if len(data) <= _FEW else _any(data)


_FEW: Final = 256
"""Bytes of the longest value whose encoding is cached."""


@lru_cache(4096)
def _any_of_few(data: bytes) -> bytes:
    """Return the Any of a short value. Cached, because documents repeat a few values thousands of times."""
    return _any(data)


def _any(data: bytes) -> bytes:
    from steersman.machinery.codec.yaml import from_json  # few servers are ever asked for such a document

    return _sized(b"\x12", from_json(data))
