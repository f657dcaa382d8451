"""Decoded JSON values printed as Go prints them in error messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from steersman.machinery.errors.field import format_float, quote


class GoValue(Struct, frozen=True):
    """A value of a type that JSON does not have: printed with %v, printed with %#v, and its Go type."""

    value: str
    source: str
    type: str


_TYPES: Final = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
}


def go_type(value: Any) -> str:
    """Return the Go type that JSON of this value decodes to.

    Whole numbers that an int64 cannot hold are float64.
    """
    if isinstance(value, GoValue):
        return value.type
    return "float64" if _is_too_big(value) else _TYPES.get(type(value), "<nil>")


def _is_too_big(value: Any) -> bool:
    return type(value) is int and not -(2**63) <= value < 2**63


def go_value(value: Any) -> str:
    """Return a value as Go's %v prints it."""
    return "".join(_pieces(value, _value, []))


def _value(value: Any) -> str:
    if value is None:
        return "<nil>"
    return value if isinstance(value, str) else _scalar(value)


def _pieces(value: Any, scalar: Callable[[Any], str], out: list[str]) -> list[str]:
    """Append the printed pieces of a value to `out`, and return `out`. `scalar` prints the leaves."""
    if isinstance(value, dict):
        opening = "map["
        for name in sorted(value):
            out.append(f"{opening}{name}:")
            _pieces(value[name], scalar, out)
            opening = " "
        out.append("]" if value else "map[]")
    elif isinstance(value, list):
        opening = "["
        for item in value:
            out.append(opening)
            _pieces(item, scalar, out)
            opening = " "
        out.append("]" if value else "[]")
    else:
        out.append(scalar(value))
    return out


def go_text(value: Any) -> str:
    """Return a value as Go's %s prints it.

    Go marks values that are not text, as in `%!s(int64=1)`, except for null inside of a composite value.
    """
    return "%!s(<nil>)" if value is None else "".join(_pieces(value, _text, []))


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return _value(value)
    return f"%!s({go_type(value)}={_scalar(value)})"


def go_source(value: Any) -> str:
    """Return a value as Go's %#v prints it."""
    if isinstance(value, dict):
        members = ", ".join(f"{quote(name)}:{go_source(value[name])}" for name in sorted(value))
        return f"map[string]interface {{}}{{{members}}}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(go_source(item) for item in value) + "}"
    if isinstance(value, GoValue):
        return value.source
    if value is None:
        return "interface {}(nil)"
    return quote(value) if isinstance(value, str) else _scalar(value)


def _scalar(value: bool | int | float | GoValue) -> str:
    if isinstance(value, GoValue):
        return value.value
    if isinstance(value, bool):
        return "true" if value else "false"
    return format_float(float(value)) if isinstance(value, float) or _is_too_big(value) else str(value)
