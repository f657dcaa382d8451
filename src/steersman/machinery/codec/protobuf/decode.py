"""Decoding of protobuf messages into objects of the generated classes.

As in upstream's generated code, fields may come in any order and repeatedly (the last value counts, messages merge,
lists grow), numbers that are too big are truncated, text need not be UTF-8, and unknown fields are skipped. The error
messages are upstream's as well. Values that upstream would refuse when it writes them as JSON (a RawExtension that is
not JSON, a malformed quantity) are refused here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sized
from datetime import UTC, datetime, timedelta
from functools import _lru_cache_wrapper, lru_cache
from typing import Any, Final

import msgspec

from steersman.machinery.codec.json_syntax import MAX_DEPTH_TEXT, syntax_error
from steersman.machinery.codec.json_tree import decode_text
from steersman.machinery.codec.protobuf.tables import (
    BOOL,
    BYTES,
    DURATION,
    EMBEDDED,
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
    PACKED,
    QUANTITY,
    RAW,
    SCHEMA_OR_ARRAY,
    SCHEMA_OR_BOOL,
    STRING,
    STRINGS,
    TIME,
    Message,
    Value,
)
from steersman.machinery.codec.serializer import compact, decode_plain, whole_or_float
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.large_work.nesting import is_too_deep
from steersman.machinery.large_work.sizes import MAX_OBJECTS, MAX_VALUES, too_many_objects, too_many_values
from steersman.machinery.values.durations import format_duration
from steersman.machinery.values.quantity import QuantityError, canonical

MAX_DEPTH: Final = 200
"""The most levels of nested messages."""
_MAX_CACHED: Final = 64
"""Bytes of the longest scalar whose text is cached."""
_MAX_VARINT: Final = 10
"""Bytes of the longest varint."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEARS_400: Final = 12_622_780_800
"""Seconds of 400 years, after which the calendar repeats. They shift years before 1, which Python does not have."""
_GO_ZERO: Final = -62_135_596_800
_FIRST: Final = -62_167_219_200
_LAST: Final = 253_402_300_799

_RAW_DECODER = msgspec.json.Decoder(msgspec.Raw)
_DOUBLE = struct.Struct("<d")
_END: Final = "unexpected EOF"
_OVERFLOW: Final = "proto: integer overflow"
_NEGATIVE: Final = "proto: negative length found during unmarshaling"


_Budget = Iterator[int]
"""An iterator that ends when the document has as many messages and unknown fields as it may have."""


def read_message(message: Message, data: bytes) -> Any:
    """Return an object of the message's class.

    Raises DecodeError, and StatusError 413 for too many messages or values.
    """
    try:
        return message.cls(**_read(message, data, 0, len(data), 0, iter(range(MAX_OBJECTS)), {}))
    except IndexError:
        raise DecodeError(_END) from None
    except StopIteration:
        raise too_many_objects() from None


def _read(
    message: Message, data: bytes, pos: int, end: int, depth: int, budget: _Budget, values: dict[str, Any]
) -> dict[str, Any]:
    """Decode data[pos:end] into `values`, the members of an object by their Python names, and return `values`.

    Raises IndexError if the data end too early, StopIteration if `budget` is used up, and DecodeError. A field that
    reaches beyond `end` is detected after it was decoded. The function is long because a call would cost as much as
    decoding a field.
    """
    if depth > MAX_DEPTH:
        raise DecodeError("proto: exceeded max depth")
    next(budget)
    readers = message.readers
    if readers is None:
        readers = message.completed()
    while pos < end:
        key = data[pos]
        pos += 1
        if key > 127:
            if (high := data[pos]) < 128:
                key += (high << 7) - 128
                pos += 1
            else:
                key, pos = _long_varint(data, pos - 1)
        try:
            kind, name, element = readers[key]
        except KeyError:
            next(budget)
            pos = _skip_field(message.name, message.fields, data, pos, key)
            continue
        if kind < BOOL:
            length = data[pos]
            start = pos + 1
            if length > 127:
                length, start = _length(data, pos)
            pos = start + length
            if kind == STRING:
                try:
                    values[name] = data[start:pos].decode() if length else ""
                except UnicodeDecodeError:
                    values[name] = decode_text(data[start:pos])
                continue
            if pos > end:
                break
            if kind == MESSAGE:
                if name not in values:
                    values[name] = element.cls(**_read(element, data, start, pos, depth + 1, budget, {}))
                elif length:
                    old = values[name]
                    known = msgspec.structs.asdict(old) if old is not None else {}
                    values[name] = element.cls(**_read(element, data, start, pos, depth + 1, budget, known))
            elif kind == MESSAGES:
                item = element.cls(**_read(element, data, start, pos, depth + 1, budget, {}))
                if items := values.get(name):
                    items.append(item)
                else:
                    values[name] = [item]
            elif kind == MAP:
                if not (entries := values.get(name)):
                    entries = values[name] = {}
                _read_entry(element, data, start, pos, depth, budget, entries)
                _check_count(entries)
            elif kind == TIME:
                values[name] = _of_scalar(_time, data[start:pos]) if length > _MAX_CACHED else _time(data[start:pos])
            elif kind == EMBEDDED:
                _read(element, data, start, pos, depth + 1, budget, values)
            else:
                _read_rare(kind, name, element, data, start, pos, depth, budget, values)
        elif kind == FLOAT64:
            pos += 8
            if pos > end:
                break
            values[name] = whole_or_float(_DOUBLE.unpack_from(data, pos - 8)[0])
        else:
            number = data[pos]
            pos += 1
            if number > 127:
                number, pos = _long_varint(data, pos - 1)
                number = _signed(kind if kind != NUMBERS else element.kind, number)
            if kind == BOOL:
                values[name] = number != 0
            elif kind != NUMBERS:
                values[name] = number
            else:
                _append(values, name, number != 0 if element.kind == BOOL else number)
    if pos > end:
        raise DecodeError(_END)
    return values


def _append(values: dict[str, Any], name: str, item: Any) -> None:
    """Append an item to a list, which is created if it does not exist."""
    if items := values.get(name):
        items.append(item)
        _check_count(items)
    else:
        values[name] = [item]


def _check_count(items: Sized) -> None:
    """Raise StatusError 413 if a field has more values than a body may have."""
    if len(items) > MAX_VALUES:
        raise too_many_values()


def _read_rare(
    kind: int,
    name: str,
    element: Any,
    data: bytes,
    pos: int,
    end: int,
    depth: int,
    budget: _Budget,
    values: dict[str, Any],
) -> None:
    """Decode a length-delimited field of a rare kind into `values`."""
    if kind == STRINGS:
        _append(values, name, read_text(data[pos:end]))
    elif kind == LIST:
        _append(values, name, _read_value(element.kind, element.element, data, pos, end, depth, budget))
    elif kind == PACKED:
        numbers = []
        while pos < end:
            number, pos = _long_varint(data, pos)
            number = _signed(element.kind, number)
            numbers.append(number != 0 if element.kind == BOOL else number)
        if pos > end:
            raise DecodeError(_END)
        if items := values.get(name):
            items += numbers
        else:
            items = values[name] = numbers
        _check_count(items)
    else:
        values[name] = _read_value(kind, element, data, pos, end, depth, budget)


def _read_entry(
    value: Value, data: bytes, pos: int, end: int, depth: int, budget: _Budget, entries: dict[str, Any]
) -> None:
    """Decode an entry of a map, a message of key (1) and value (2), into `entries`.

    As in upstream's code, wire types are not checked.
    """
    key, entry = "", _ABSENT
    length = data[pos + 1] if pos < end and data[pos] == 0x0A else 128
    middle = pos + 2 + length
    if length < 128 and middle + 1 < end and data[middle] == 0x12 and data[middle + 1] == end - middle - 2:
        # the fast path: key and value are short and in order, as every encoder writes them
        text = data[pos + 2 : middle]
        pos = middle + 2
        if value.kind == STRING:
            entries[read_text(text)] = read_text(data[pos:end])
        else:
            entries[read_text(text)] = _read_value(value.kind, value.element, data, pos, end, depth, budget)
        return
    while pos < end:
        tag, pos = _long_varint(data, pos)
        if tag >> 3 not in (1, 2):
            pos = _skip(data, pos, tag & 7)
            continue
        length, pos = _length(data, pos)
        stop = pos + length
        if stop > end:
            raise DecodeError(_END)
        if tag >> 3 == 1:
            key = read_text(data[pos:stop])
        elif value.kind == STRING:
            entry = read_text(data[pos:stop])
        else:
            entry = _read_value(value.kind, value.element, data, pos, stop, depth, budget)
        pos = stop
    if pos > end:
        raise DecodeError(_END)
    entries[key] = _zero(value) if entry is _ABSENT else entry


_ABSENT: Final[Any] = object()


def _zero(value: Value) -> Any:
    """Return the value of a map entry that has none."""
    if value.kind == MESSAGE:
        return value.element.cls()
    return {STRING: "", BYTES: b"", QUANTITY: "0", ITEMS: []}.get(value.kind)


def _read_value(kind: int, element: Any, data: bytes, pos: int, end: int, depth: int, budget: _Budget) -> Any:
    """Decode data[pos:end] as a single value."""
    if kind == QUANTITY:
        return _of_scalar(_quantity, data[pos:end])
    if kind == BYTES:
        return data[pos:end]
    if kind == MESSAGE:
        return element.cls(**_read(element, data, pos, end, depth + 1, budget, {}))
    if kind == RAW:
        return _raw(data, pos, end)
    if kind == INT_OR_STRING:
        return _of_scalar(_int_or_string, data[pos:end])
    if kind == ITEMS:
        return [read_text(item) for item in _fields(data, pos, end, {1: ("Items", 2)}, "Items").get(1, ())]
    if kind == TIME:
        return _of_scalar(_time, data[pos:end])
    if kind == MICRO_TIME:
        return _of_scalar(_micro_time, data[pos:end])
    if kind == DURATION:
        return format_duration(_signed(INT64, _last(_fields(data, pos, end, {1: ("Duration", 0)}, "Duration"), 1, 0)))
    if kind == JSON:
        raw = _raw(data, pos, end)
        return None if raw is None else decode_plain(bytes(raw))
    return _read_schema_or(kind, element, data, pos, end, depth, budget)


def _read_schema_or(kind: int, schema: Message, data: bytes, pos: int, end: int, depth: int, budget: _Budget) -> Any:
    """Decode a JSONSchemaPropsOrArray, -OrBool or -OrStringArray."""

    def read(body: bytes) -> Any:
        return schema.cls(**_read(schema, body, 0, len(body), depth + 1, budget, {}))

    if kind == SCHEMA_OR_BOOL:
        fields = _fields(data, pos, end, {1: ("Allows", 0), 2: ("Schema", 2)}, "JSONSchemaPropsOrBool")
        return read(fields[2][-1]) if 2 in fields else _last(fields, 1, 0) != 0
    if kind == SCHEMA_OR_ARRAY:
        fields = _fields(data, pos, end, {1: ("Schema", 2), 2: ("JSONSchemas", 2)}, "JSONSchemaPropsOrArray")
        if 2 in fields:
            return [read(body) for body in fields[2]]
    else:
        fields = _fields(data, pos, end, {1: ("Schema", 2), 2: ("Property", 2)}, "JSONSchemaPropsOrStringArray")
        if 2 in fields:
            return [read_text(item) for item in fields[2]]
    return read(fields[1][-1]) if 1 in fields else None


def _fields(data: bytes, pos: int, end: int, known: dict[int, tuple[str, int]], name: str) -> dict[int, list[Any]]:
    """Return the values of a small message by field number.

    `known` has the Go name and wire type (0 or 2) of each field.
    """
    fields: dict[int, list[Any]] = {}
    while pos < end:
        key, pos = _long_varint(data, pos)
        number, wire_type = key >> 3, key & 7
        if (field := known.get(number)) is None or field[1] != wire_type:
            pos = _skip_field(name, known, data, pos, key)
            continue
        if wire_type == 0:
            value, pos = _long_varint(data, pos)
            fields.setdefault(number, []).append(value)
        else:
            length, pos = _length(data, pos)
            if pos + length > end:
                raise DecodeError(_END)
            fields.setdefault(number, []).append(data[pos : pos + length])
            pos += length
    if pos > end:
        raise DecodeError(_END)
    return fields


def _last(found: dict[int, list[Any]], number: int, default: Any) -> Any:
    return found[number][-1] if number in found else default


def small_fields(data: bytes, known: dict[int, tuple[str, int]], name: str) -> dict[int, list[Any]]:
    """Return the values of a message of numbers (wire type 0) and byte strings (2), by field number.

    `known` has the Go name and wire type of each field; `name` is the message's. Raises DecodeError.
    """
    try:
        return _fields(data, 0, len(data), known, name)
    except IndexError:
        raise DecodeError(_END) from None


def _raw(data: bytes, pos: int, end: int) -> msgspec.Raw | None:
    """Return the JSON in a RawExtension, FieldsV1 or JSON message, None if there is none."""
    body = _last(_fields(data, pos, end, {1: ("Raw", 2)}, "RawExtension"), 1, b"")
    if not body or body == b"null":
        return None
    if is_too_deep(body):
        raise _malformed(syntax_error(body))
    try:
        _RAW_DECODER.decode(body)
        body.decode()
    except UnicodeDecodeError:
        body = decode_text(body).encode()
    except msgspec.DecodeError:
        raise _malformed(syntax_error(body)) from None
    if body.isascii() and b"\n" not in body and b" " not in body and b"\t" not in body and b"\r" not in body:
        return msgspec.Raw(body)
    return msgspec.Raw(compact(body))


def _malformed(why: str) -> DecodeError:
    return DecodeError(f"json: error calling MarshalJSON for type runtime.RawExtension: {why or MAX_DEPTH_TEXT}")


def _of_scalar(read: _lru_cache_wrapper[Any], data: bytes) -> Any:
    """Decode a scalar's message with a cached function; long messages bypass the cache."""
    return read(data) if len(data) <= _MAX_CACHED else read.__wrapped__(data)


_TIMESTAMP: Final = {1: ("Seconds", 0), 2: ("Nanos", 0)}


@lru_cache(maxsize=4096)
def _time(data: bytes) -> str | None:
    """Return the text of a Time from its Timestamp message, of which only the seconds count; None if it is empty."""
    if not data:
        return None
    return _moment(_signed(INT64, _last(small_fields(data, _TIMESTAMP, "Timestamp"), 1, 0)), "%Y-%m-%dT%H:%M:%SZ", 0)


@lru_cache(maxsize=1024)
def _micro_time(data: bytes) -> str | None:
    """Return the text of a MicroTime from its Timestamp message, in microseconds; None if it is empty."""
    if not data:
        return None
    fields = small_fields(data, _TIMESTAMP, "Timestamp")
    nanos = _signed(INT32, _last(fields, 2, 0))
    return _moment(_signed(INT64, _last(fields, 1, 0)), "%Y-%m-%dT%H:%M:%S.%fZ", int(nanos / 1000))


def _moment(seconds: int, layout: str, micros: int) -> str | None:
    """Return the text of a moment given in seconds and microseconds since 1970; None for Go's zero time."""
    seconds, micros = seconds + micros // 1_000_000, micros % 1_000_000
    if not _FIRST <= seconds <= _LAST:
        raise DecodeError("Time.MarshalJSON: year outside of range [0,9999]")
    if seconds == _GO_ZERO and not micros:
        return None
    shift = _YEARS_400 if seconds < 0 else 0
    moment = _EPOCH + timedelta(seconds=seconds + shift, microseconds=micros)
    return f"{moment.year - 400 if shift else moment.year:04d}{moment.strftime(layout[2:])}"


@lru_cache(maxsize=4096)
def _quantity(data: bytes) -> str:
    text = _last(small_fields(data, {1: ("String_", 2)}, "Quantity"), 1, None)
    if text is None:
        return "0"
    try:
        return canonical(read_text(text))
    except QuantityError as error:
        raise DecodeError(str(error)) from None


@lru_cache(maxsize=1024)
def _int_or_string(data: bytes) -> int | str:
    known = {1: ("Type", 0), 2: ("IntVal", 0), 3: ("StrVal", 2)}
    fields = small_fields(data, known, "IntOrString")
    kind = _signed(INT64, _last(fields, 1, 0))
    if kind == 1:
        return read_text(_last(fields, 3, b""))
    if kind:
        raise DecodeError("json: error calling MarshalJSON for type intstr.IntOrString: impossible IntOrString.Type")
    return _signed(INT32, _last(fields, 2, 0))


def read_text(data: bytes) -> str:
    """Decode text as Go does: bytes that are not UTF-8 are replaced as Go's JSON encoder replaces them."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return decode_text(data)


def _signed(kind: int, number: int) -> int:
    """Return a number truncated to the size of its kind, as a signed number."""
    if kind == INT32:
        number &= 0xFFFFFFFF
        return number - 0x100000000 if number > 0x7FFFFFFF else number
    return number - 0x10000000000000000 if number > 0x7FFFFFFFFFFFFFFF else number


def _long_varint(data: bytes, pos: int) -> tuple[int, int]:
    """Decode a varint of up to 64 bits; return it and the position after it. Raises IndexError at the end of the data."""
    byte = data[pos]
    pos += 1
    if byte < 128:
        return byte, pos
    number, shift = byte & 127, 7
    while shift < 7 * _MAX_VARINT:
        byte = data[pos]
        pos += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number & 0xFFFFFFFFFFFFFFFF, pos
        shift += 7
    raise DecodeError(_OVERFLOW)


def _length(data: bytes, pos: int) -> tuple[int, int]:
    """Decode a length; return it and the position after it."""
    length, pos = _long_varint(data, pos)
    if length > 0x7FFFFFFFFFFFFFFF - pos:
        raise DecodeError(_NEGATIVE)
    return length, pos


def _skip_field(name: str, known: dict[int, tuple[str, int]], data: bytes, pos: int, key: int) -> int:
    """Return the position after a field that is unknown or has a wrong wire type.

    Raises DecodeError if upstream does.
    """
    number, wire_type = key >> 3 & 0xFFFFFFFF, key & 7
    if wire_type == 4:
        raise DecodeError(f"proto: {name}: wiretype end group for non-group")
    if number == 0 or number > 0x7FFFFFFF:
        raise DecodeError(f"proto: {name}: illegal tag {_signed(INT32, number)} (wire type {key})")
    if number in known:
        raise DecodeError(f"proto: wrong wireType = {wire_type} for field {known[number][0]}")
    return _skip(data, pos, wire_type)


def _skip(data: bytes, pos: int, wire_type: int) -> int:
    """Return the position after the value at `pos`, which may be a group with all that it contains."""
    depth = 0
    while True:
        if wire_type == 0:
            _, pos = _long_varint(data, pos)
        elif wire_type == 1:
            pos += 8
        elif wire_type == 2:
            length, pos = _length(data, pos)
            pos += length
        elif wire_type == 3:
            depth += 1
        elif wire_type == 4:
            if depth == 0:
                raise DecodeError("proto: unexpected end of group")
            depth -= 1
        elif wire_type == 5:
            pos += 4
        else:
            raise DecodeError(f"proto: illegal wireType {wire_type}")
        if depth == 0:
            return pos
        key, pos = _long_varint(data, pos)
        wire_type = key & 7
