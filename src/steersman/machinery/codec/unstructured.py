"""Conversion of plain data into objects as apimachinery's unstructured converter does it (`runtime/converter.go`).

Strategic merge patches and applied objects go through it. It is more lenient than decoding JSON: numbers are truncated
to the size of their field. It has its own error messages.
"""

from __future__ import annotations

import base64
from typing import Any, Final, TypeVar

import msgspec

from steersman.machinery.codec.derived_types import type_of
from steersman.machinery.codec.go_types import GoType, members_of
from steersman.machinery.codec.json_syntax import MAX_DEPTH_TEXT, error_message
from steersman.machinery.codec.json_tree import parse_tree
from steersman.machinery.codec.serializer import decoder, encode, encode_in_order, whole_or_float
from steersman.machinery.codec.strict import MAX_STRICT_ERRORS, Decoded, DecodeError, Reader, zero
from steersman.machinery.large_work.nesting import is_too_deep
from steersman.work.threads import paced

T = TypeVar("T")

_KINDS: Final = {dict: "map", list: "slice", str: "string", bool: "bool", int: "int64", float: "float64"}
_SIZES: Final = {"int32": 32, "int64": 64, "uint8": 8}
_WHOLE_FLOATS: Final = (b".0,", b".0}", b".0]")
"""Endings of a float without a fraction inside an object.

Text may end so, too, but only matches of floats cost a second encoding.
"""
_OUT_OF_RANGE: Final = -(2**63)
"""The result on amd64 of converting a float64 that does not fit into an int64."""


def from_unstructured_with_validation(cls: type[T], data: dict[str, Any]) -> Decoded[T]:
    """Return an object of `cls`, a generated class, from data under wire names, with sorted warnings about unknown
    fields.

    Raw JSON parts have their keys sorted. Raises DecodeError at the first value, in the order of the Go type, that does
    not fit its field.
    """
    try:
        marshaled = _marshaled(data)
    except RecursionError:
        raise DecodeError(MAX_DEPTH_TEXT) from None
    if is_too_deep(marshaled):
        raise DecodeError(MAX_DEPTH_TEXT)
    try:
        return Decoded(decoder(cls).decode(marshaled))
    except msgspec.MsgspecError:
        pass
    conversion = _Conversion()
    try:
        obj = decoder(cls).decode(encode_in_order(conversion.value(type_of(cls), data)))
    except msgspec.MsgspecError as error:
        raise DecodeError(error_message(error)) from None
    unknown = sorted(set(conversion.unknown))[:MAX_STRICT_ERRORS]
    return Decoded(obj, [f'unknown field "{path}"' for path in unknown])


def _marshaled(value: Any) -> bytes:
    """Return JSON as Go's encoder writes it: a float without a fraction has none in the text."""
    data = encode(value)
    return encode(_without_whole_floats(value)) if any(map(data.__contains__, _WHOLE_FLOATS)) else data


def _without_whole_floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_whole_floats(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_without_whole_floats(item) for item in value]
    return whole_or_float(value) if isinstance(value, float) else value


class _Conversion:
    """The conversion of one object. `unknown` collects the paths of unknown fields."""

    def __init__(self) -> None:
        self.unknown: list[str] = []
        self._path: list[str] = []

    def value(self, type_: GoType, value: Any) -> Any:
        """Return the value in wire form. Raises DecodeError."""
        if value is None:
            return zero(type_)
        match type_.kind:
            case "any":
                return value
            case "own":
                return Reader().read(type_, parse_tree(_marshaled(value)))
            case "struct":
                return self._struct(type_, value)
            case "map":
                return self._map(type_, value)
            case "list":
                return self._list(type_, value)
            case "bytes":
                return self._bytes(type_, value)
        return _scalar(type_, value)

    def _struct(self, type_: GoType, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise DecodeError(f"cannot restore struct from: {_kind(value)}")
        members = members_of(type_)
        plain_members = {}
        for name, member in members.items():
            if value.get(name) is not None:
                with_dot = f".{name}" if self._path else name
                self._path.append(with_dot)
                plain_members[name] = self.value(member.type, value[name])
                self._path.pop()
        if not members.keys() >= value.keys():
            prefix = "".join(self._path)
            for name in value.keys() - members.keys():
                self.unknown.append(f"{prefix}.{name}" if prefix else name)
        return plain_members

    def _map(self, type_: GoType, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise DecodeError(f"cannot restore map from {_kind(value)}")
        assert type_.element is not None
        return {name: self.value(type_.element, member) for name, member in value.items()}

    def _list(self, type_: GoType, value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise DecodeError(f"cannot restore slice from {_kind(value)}")
        assert type_.element is not None
        items = []
        for index, item in enumerate(paced(value)):
            self._path.append(f"[{index}]")
            items.append(self.value(type_.element, item))
            self._path.pop()
        return items

    def _bytes(self, type_: GoType, value: Any) -> Any:
        if isinstance(value, str):
            try:
                return Reader().read(type_, value)
            except DecodeError as error:
                raise DecodeError(f"error decoding from json: {error}") from None
        octets = self._list(GoType("list", type_.shown, element=GoType("uint8", "uint8")), value)
        return base64.b64encode(bytes(octets)).decode()


def _kind(value: Any) -> str:
    return _KINDS[type(value)]


def _scalar(type_: GoType, value: Any) -> Any:
    kind = type_.kind
    if kind == "string" and isinstance(value, str):
        return value
    if kind == "bool" and isinstance(value, bool):
        return value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and kind == "float64":
        return value
    if is_number and (size := _SIZES.get(kind)):
        if isinstance(value, float):
            if not value.is_integer():
                raise DecodeError(f"cannot convert float64 to {type_.shown}")
            value = int(value) if -(2.0**63) <= value < 2.0**63 else _OUT_OF_RANGE
        return _cut(value, size)
    if kind == "string" and is_number and isinstance(value, int):
        raise DecodeError(f"cannot convert int64 to {type_.shown}")
    raise DecodeError(f"unrecognized type: {kind}")


def _cut(value: int, size: int) -> int:
    """Return the lowest `size` bits of a number as a signed number; a byte is unsigned."""
    low = value & (1 << size) - 1
    return low - (1 << size) if size > 8 and low >> (size - 1) else low
