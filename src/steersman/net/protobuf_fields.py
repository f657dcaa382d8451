"""Protobuf messages as fields by number, for small protocols that need no schema.

Supports numbers, texts and bytes, repeated or not (protobuf.dev/programming-guides/encoding). Groups are refused, as no
supported protocol uses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

_MAX_VARINT: Final = 10
"""Bytes of the longest encoded number."""
_MOST_FIELDS: Final = 4096
"""Limit of fields in a message: each takes a microsecond, and four megabytes may hold two million."""
_MOST_OF_ENTRY: Final = 16
"""Limit of fields in an entry of a map, which normally has two."""

Value = int | bytes


class FieldsError(ValueError):
    """Bytes that are not a valid message."""


def varint(number: int) -> bytes:
    """Return an encoded number of 64 bits; negative ones as two's complement."""
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def encode(fields: Iterable[tuple[int, Value | str]]) -> bytes:
    """Return a message of these fields in this order; zero and empty values are omitted, as in proto3."""
    out = bytearray()
    for number, value in fields:
        if not value:
            continue
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return bytes(out)


def encode_map(number: int, entries: Mapping[str, bytes]) -> list[tuple[int, bytes]]:
    """Return the fields of a map from texts to bytes, in order of the keys. An entry is encoded even if its parts are
    empty.
    """
    return [(number, encode([(1, key), (2, entries[key])]) or b"\x0a\x00") for key in sorted(entries)]


def decode(data: bytes, *, most: int = _MOST_FIELDS) -> dict[int, list[Value]]:
    """Return the values by field number, each list in order of arrival. Raises FieldsError, also for over `most`
    fields.
    """
    fields: dict[int, list[Value]] = {}
    pos, end = 0, len(data)
    left = most
    value: Value
    while pos < end:
        left -= 1
        if left < 0:
            raise FieldsError(f"more than {most} fields")
        key, pos = _varint(data, pos)
        number, wire = key >> 3, key & 7
        if not number:
            raise FieldsError("proto: cannot parse invalid wire-format data")
        if wire == 0:
            value, pos = _varint(data, pos)
        else:
            if wire == 2:
                size, pos = _varint(data, pos)
            elif wire in (1, 5):
                size = 8 if wire == 1 else 4
            else:
                raise FieldsError("proto: cannot parse invalid wire-format data")
            if size > end - pos:
                raise FieldsError("unexpected EOF")
            value, pos = data[pos : pos + size], pos + size
        fields.setdefault(number, []).append(value)
    return fields


def number_of(fields: Mapping[int, list[Value]], number: int) -> int:
    """Return the last value of a field as a signed number; 0 if it is missing. Raises FieldsError."""
    value = fields.get(number, [0])[-1]
    if not isinstance(value, int):
        raise FieldsError("proto: cannot parse invalid wire-format data")
    return value - (1 << 64) if value >> 63 else value


def bytes_of(fields: Mapping[int, list[Value]], number: int) -> bytes:
    """Return the last value of a field as bytes; b"" if it is missing. Raises FieldsError."""
    value = fields.get(number, [b""])[-1]
    if not isinstance(value, bytes):
        raise FieldsError("proto: cannot parse invalid wire-format data")
    return value


def text_of(fields: Mapping[int, list[Value]], number: int) -> str:
    """Return the last value of a field as text; "" if it is missing. Raises FieldsError."""
    try:
        return bytes_of(fields, number).decode()
    except UnicodeDecodeError:
        raise FieldsError("string field contains invalid UTF-8") from None


def map_of(fields: Mapping[int, list[Value]], number: int) -> dict[str, bytes]:
    """Return a map field from texts to bytes. Raises FieldsError."""
    entries: dict[str, bytes] = {}
    for entry in fields.get(number, ()):
        if not isinstance(entry, bytes):
            raise FieldsError("proto: cannot parse invalid wire-format data")
        parts = decode(entry, most=_MOST_OF_ENTRY)
        entries[text_of(parts, 1)] = bytes_of(parts, 2)
    return entries


def _varint(data: bytes, pos: int) -> tuple[int, int]:
    number = 0
    for shift, byte in enumerate(data[pos : pos + _MAX_VARINT]):
        number |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            if number >> 64:
                raise FieldsError("variable length integer overflow")
            return number, pos + shift + 1
    raise FieldsError("unexpected EOF" if len(data) - pos < _MAX_VARINT else "variable length integer overflow")
