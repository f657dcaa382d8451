"""Plain JSON data as an object of a generated class, by the rules of Go's unstructured converter.

They are laxer than those of reading JSON: null is a zero value anywhere, and a whole number too big for its member
loses its upper bits. Follows k8s.io/apimachinery `runtime` (converter.go).
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec

from steersman.api import tables
from steersman.machinery.go_types import GoType, members_of, struct
from steersman.machinery.json_tree import parse_tree
from steersman.machinery.serializer import decode_json, encode, encode_in_order
from steersman.machinery.strict import DecodeError, Reader, zero

T = TypeVar("T")

_BITS: Final = {"int32": 32, "int64": 64, "uint8": 8}


def from_unstructured(cls: type[T], data: dict[str, Any]) -> T:
    """An object of `cls` from data under its wire names; members that it does not have are left out.

    Parts that are kept as JSON have their keys sorted.     Raises DecodeError in upstream's words.
    """
    try:
        return decode_json(cls, encode(data))
    except (msgspec.MsgspecError, RecursionError):
        pass
    try:
        return decode_json(cls, encode(_struct(struct(f"{tables.module_of(cls)}.{cls.__name__}"), data)))
    except RecursionError:
        raise DecodeError("exceeded max depth") from None


def _value(type_: GoType, value: Any) -> Any:
    """The wire form of a value that is not null."""
    match type_.kind:
        case "own":
            return Reader().read(type_, parse_tree(encode_in_order(value)))
        case "any":
            return value
        case "struct":
            if not isinstance(value, dict):
                raise DecodeError(f"cannot restore struct from: {_kind_of(value)}")
            return _struct(type_, value)
        case "map":
            if not isinstance(value, dict):
                raise DecodeError(f"cannot restore map from {_kind_of(value)}")
            assert type_.element is not None
            return {name: _item(type_.element, item) for name, item in value.items()}
        case "list" | "bytes":
            return _list(type_, value)
    return _scalar(type_, value)


def _struct(type_: GoType, value: dict[str, Any]) -> dict[str, Any]:
    """The members in the order of the type, which decides which of several errors is told."""
    return {
        name: _value(member.type, value[name])
        for name, member in members_of(type_).items()
        if value.get(name) is not None
    }


def _item(type_: GoType, value: Any) -> Any:
    return zero(type_) if value is None else _value(type_, value)


def _list(type_: GoType, value: Any) -> Any:
    if type_.kind == "bytes" and isinstance(value, str):
        try:
            return Reader().read(type_, value)
        except DecodeError as error:
            raise DecodeError(f"error decoding from json: {error}") from None
    if not isinstance(value, list):
        raise DecodeError(f"cannot restore slice from {_kind_of(value)}")
    if type_.element is None:
        return Reader().read(type_, parse_tree(encode_in_order(value)))
    return [_item(type_.element, item) for item in value]


def _scalar(type_: GoType, value: Any) -> Any:
    kind = type_.kind
    if kind == "string" and isinstance(value, str):
        return value
    if kind == "bool" and isinstance(value, bool):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        bits = _BITS.get(kind)
        if bits is not None:
            return _whole(kind, bits, value)
        if kind == "float64":
            return value
        if kind == "string" and isinstance(value, int):
            raise DecodeError(f"cannot convert {_kind_of(value)} to {kind}")
    raise DecodeError(f"unrecognized type: {kind}")


def _whole(kind: str, bits: int, value: int | float) -> int:
    """A number cut to as many bits as Go's conversion leaves of it."""
    if isinstance(value, float):
        if not value.is_integer():
            raise DecodeError(f"cannot convert float64 to {kind}")
        value = int(value)
    if not -(2**63) <= value < 2**63:
        value = -(2**63)  # a float64 beyond all integers of 64 bits
    half = 1 << (bits - 1)
    return value & 0xFF if kind == "uint8" else (value + half) % (2 * half) - half


def _kind_of(value: Any) -> str:
    """A value's reflect.Kind."""
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        return "float64"
    return {dict: "map", list: "slice", bool: "bool", int: "int64", float: "float64", str: "string"}[type(value)]
