"""Cells of the columns that custom resource definitions declare.

Follows k8s.io/apiextensions-apiserver `registry/customresource/tableconvertor`: the first value that the path finds
is the cell, if it is of the column's type.
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
    """Makes the cells of one column: of a type of OpenAPI and a JSONPath without its braces.

    Upstream shows of a definition's columns those before the first whose path cannot be read.
    """

    __slots__ = ("_convert", "_template")

    def __init__(self, kind: str, path: str) -> None:
        """Raises JSONPathError."""
        self._template: Template = parse("{" + path + "}")
        self._convert: Callable[[Any], Any] = _CONVERSIONS.get(kind, _nothing)

    def cell(self, data: Any) -> Any:
        """The cell for an object as plain data: text, a number or a boolean; None where there is none that fits."""
        expect_offloading()
        try:
            found = find_results(self._template, data)
        except JSONPathError:
            return None
        return self._convert(found[0][0]) if found and found[0] else None


def _text(value: Any) -> str:
    """What upstream prints, whatever it is."""
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
    """A number that is JSON's, no boolean and no byte of a text."""
    return value if isinstance(value, int | float) and not isinstance(value, bool | Byte) else None


def _integer(value: Any) -> int | None:
    number = _number(value)
    if number is None:
        return None
    whole = int(number)
    return whole if whole in _INT64 else _SMALLEST  # which is what amd64 makes of it


def _float(value: Any) -> int | float | None:
    number = _number(value)
    return None if number is None else whole_or_float(float(number))


def _boolean(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _date(value: Any) -> str | None:
    """How long ago a time was."""
    if not isinstance(value, str):
        return None
    if value in ("", "null"):
        return NO_TIME
    try:
        return times.age(times.canonical_time(value), times.moment())
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
