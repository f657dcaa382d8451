"""Cells of the printer columns of custom resource definitions.

Follows k8s.io/apiextensions-apiserver `registry/customresource/tableconvertor`: the cell is the first value at the
path, if it has the column's type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from steersman.machinery.codec.serializer import encode, whole_or_float
from steersman.machinery.errors.field import format_float
from steersman.machinery.json_path.evaluation import Byte, find_results
from steersman.machinery.json_path.parser import JSONPathError, Template, parse
from steersman.machinery.values import times
from steersman.work.offloading import expect_offloading

TYPES: Final = ("boolean", "date", "integer", "number", "string")
INVALID: Final = "<invalid>"
NO_TIME: Final = "<unknown>"
NO_VALUE: Final = "<no value>"

_SMALLEST: Final = -(2**63)
_INT64: Final = range(_SMALLEST, 2**63)


class PrinterColumn:
    """A printer column: an OpenAPI type, and a JSONPath without its braces.

    Upstream shows only the columns of a definition before the first one with a malformed path.
    """

    __slots__ = ("_convert", "_template")

    def __init__(self, kind: str, path: str) -> None:
        """Take the type and the path. Raises JSONPathError for a malformed path."""
        self._template: Template = parse("{" + path + "}")
        self._convert: Callable[[Any], Any] = _CONVERSIONS.get(kind, _nothing)

    def cell(self, data: Any) -> Any:
        """Return the cell of an object given as plain data: text, a number or a boolean; None if no value fits."""
        expect_offloading()
        try:
            results = find_results(self._template, data)
        except JSONPathError:
            return None
        return self._convert(results[0][0]) if results and results[0] else None


def _text(value: Any) -> str:
    """Return any value as upstream prints it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return NO_VALUE
    if isinstance(value, dict | list):
        return encode(value).decode()
    return format_float(value) if isinstance(value, float) else str(int(value))


def _number(value: Any) -> int | float | None:
    """Return a JSON number; None for a boolean, a byte of text, and all other values."""
    return value if isinstance(value, int | float) and not isinstance(value, bool | Byte) else None


def _integer(value: Any) -> int | None:
    number = _number(value)
    if number is None:
        return None
    whole = int(number)
    return whole if whole in _INT64 else _SMALLEST  # amd64's result for a number out of range


def _float(value: Any) -> int | float | None:
    number = _number(value)
    return None if number is None else whole_or_float(float(number))


def _boolean(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _date(value: Any) -> str | None:
    """Return the age of a time."""
    if not isinstance(value, str):
        return None
    if value in ("", "null"):
        return NO_TIME
    try:
        return times.age(times.canonical_time(value), times.unix_now())
    except times.TimeError:
        return INVALID


def _nothing(value: Any) -> None:
    return None


_CONVERSIONS: Final[dict[str, Callable[[Any], Any]]] = {
    "boolean": _boolean,
    "date": _date,
    "integer": _integer,
    "number": _float,
    "string": _text,
}
