"""The function `"...%s...".format([...])`: its clauses, their output, and the check of its arguments (cel-go `ext`
formatting).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, Final

from steersman.cel.arithmetic import convert_string
from steersman.cel.ast import Call, CreateList, CreateMap, Expr, Literal
from steersman.cel.types import Kind, Type
from steersman.cel.values import Duration, EvaluationError, Timestamp, UInt, entries, is_map, type_of_value
from steersman.cel.work import spend, spend_on_text
from steersman.machinery.go.strings import to_upper

_DEFAULT_PRECISION: Final = 6
_MAX_PRECISION: Final = 1000
_MAX_RESULT: Final = 16 * 1024 * 1024

_STRING_ONLY: Final = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
    "timestamps, was given "
)
_MESSAGES: Final = {
    "s": _STRING_ONLY,
    "d": "decimal clause can only be used on integers, was given ",
    "f": "fixed-point clause can only be used on doubles, was given ",
    "e": "scientific clause can only be used on doubles, was given ",
    "b": "only integers and bools can be formatted as binary, was given ",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given ",
    "o": "octal clause can only be used on integers, was given ",
}
_INTEGERS: Final = frozenset({Kind.INT, Kind.UINT})
_ACCEPTED: Final = {
    "s": _INTEGERS
    | {
        Kind.LIST,
        Kind.MAP,
        Kind.DOUBLE,
        Kind.BOOL,
        Kind.STRING,
        Kind.TIMESTAMP,
        Kind.BYTES,
        Kind.DURATION,
        Kind.TYPE,
        Kind.NULL,
    },
    "d": _INTEGERS,
    "f": frozenset({Kind.DOUBLE, Kind.STRING}),
    "e": frozenset({Kind.DOUBLE, Kind.STRING}),
    "b": _INTEGERS | {Kind.BOOL},
    "x": _INTEGERS | {Kind.STRING, Kind.BYTES},
    "o": _INTEGERS,
}


class _FormatError(ValueError):
    """The text or its arguments are invalid. `offset` is that of the faulty argument, if there is one."""

    def __init__(self, message: str, offset: int | None = None) -> None:
        super().__init__(message)
        self.offset: Final = offset


_Clause = Callable[[int, str, int | None, bool], str]
"""Formats the argument at an index with the letter of a clause, a precision, and whether the letter is a capital."""


def _interpolate(text: str, count: int, clause: _Clause) -> tuple[str, int]:
    """Return the text with its clauses replaced, and their number. Raises _FormatError."""
    parts: list[str] = []
    position = index = length = 0
    while True:
        percent = text.find("%", position)
        if percent < 0:
            parts.append(text[position:])
            return "".join(parts), index
        parts.append(text[position:percent])
        if text[percent + 1 : percent + 2] == "%":
            parts.append("%")
            position = percent + 2
            continue
        if percent + 1 >= len(text):
            raise _FormatError("unexpected end of string")
        if index >= count:
            raise _FormatError(f"index {index} out of range")
        position, precision = _precision(text, percent + 1)
        letter = text[position]
        kind = "x" if letter == "X" else letter
        if kind not in _MESSAGES:
            raise _FormatError(f'could not parse formatting clause: unrecognized formatting clause "{letter}"')
        parts.append(clause(index, kind, precision, letter == "X"))
        length += len(parts[-1])
        spend_on_text(len(parts[-1]))
        if length > _MAX_RESULT:
            raise _FormatError("formatted text is too large")
        position += 1
        index += 1


def _precision(text: str, position: int) -> tuple[int, int | None]:
    """Return the position of the letter of a clause, and the precision before it."""
    if text[position] != ".":
        return position, None
    start = position = position + 1
    while True:
        if position >= len(text):
            raise _FormatError(
                "could not parse formatting clause: error while parsing precision: could not find end of precision "
                "specifier"
            )
        if not "0" <= text[position] <= "9":
            break
        position += 1
    digits = text[start:position]
    if not digits or len(digits) > 18:
        reason = "value out of range" if digits else "invalid syntax"
        raise _FormatError(
            "could not parse formatting clause: error while parsing precision: error while converting precision to "
            f'integer: strconv.Atoi: parsing "{digits}": {reason}'
        )
    return position, int(digits)


def format_string(text: str, values: Any) -> str:
    """Return the text with its clauses replaced by values."""

    def clause(index: int, kind: str, precision: int | None, upper: bool) -> str:
        value = values[index]
        try:
            return _CLAUSES[kind](value, precision, upper)
        except TypeError:
            raise EvaluationError(f"error during formatting: {_MESSAGES[kind]}{type_of_value(value).name}") from None

    try:
        return _interpolate(text, len(values), clause)[0]
    except _FormatError as error:
        raise EvaluationError(str(error)) from None


def _as_string(value: Any, precision: int | None, upper: bool) -> str:
    if isinstance(value, list | tuple):
        spend(len(value))
        return f"[{', '.join(map(_nested, value))}]"
    if is_map(value):
        return _as_map(value)
    if value is None:
        return "null"
    if isinstance(value, bool | int | float | str | bytes | Timestamp | Duration | Type):
        return str(convert_string(value))
    raise TypeError


def _as_map(value: Any) -> str:
    pairs = []
    for key, item in entries(value):
        spend(1)
        if not isinstance(key, str | bool | int):
            raise EvaluationError(f"no formatting function for map key of type {type_of_value(key).name}")
        pairs.append((_nested(key), _nested(item)))
    return f"{{{', '.join(f'{key}:{item}' for key, item in sorted(pairs, key=lambda pair: pair[0]))}}}"


def _nested(value: Any) -> str:
    """Format a value within a list or a map, in CEL's syntax."""
    if isinstance(value, str | bytes):
        spend_on_text(len(value))
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bytes):
        return "b" + json.dumps(convert_string(value), ensure_ascii=False)
    if isinstance(value, Timestamp):
        return f'timestamp("{convert_string(value)}")'
    if isinstance(value, Duration):
        return f'duration("{convert_string(value)}")'
    if isinstance(value, float):
        if math.isnan(value):
            return '"NaN"'
        return f'"{"+" if value > 0 else "-"}Inf"' if math.isinf(value) else f"{value:.6f}"
    if value is None or isinstance(value, bool | int | Type | list | tuple) or is_map(value):
        return _as_string(value, None, False)
    raise EvaluationError(f"no formatting function for {type_of_value(value).name}")


def _as_decimal(value: Any, precision: int | None, upper: bool) -> str:
    return str(int(_integer(value)))


def _integer(value: Any) -> int:
    if type(value) is int or type(value) is UInt:
        return int(value)
    raise TypeError


_SPECIAL: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def _double(value: Any) -> float:
    if isinstance(value, float):
        return value
    if isinstance(value, str) and value in _SPECIAL:
        return _SPECIAL[value]
    raise TypeError


def _special(value: float) -> str | None:
    if math.isnan(value):
        return "NaN"
    return ("∞" if value > 0 else "-∞") if math.isinf(value) else None


def _as_fixed(value: Any, precision: int | None, upper: bool) -> str:
    number = _double(value)
    digits = min(_DEFAULT_PRECISION if precision is None else precision, _MAX_PRECISION)
    # The format is American English, the default of the reference implementation.
    return _special(number) or f"{number:,.{digits}f}"


def _as_scientific(value: Any, precision: int | None, upper: bool) -> str:
    number = _double(value)
    special = _special(number)
    if special is not None:
        return special
    digits = min(_DEFAULT_PRECISION if precision is None else precision, _MAX_PRECISION)
    mantissa, _, exponent = f"{number:.{digits}e}".partition("e")
    raised = "".join(_SUPERSCRIPTS[each] for each in f"{int(exponent):03d}".replace("-0", "-").lstrip("+"))
    return f"{mantissa}×10{raised[-2:] if not exponent.startswith('-') else raised}"


_SUPERSCRIPTS: Final = dict(zip("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻", strict=True))


def _as_binary(value: Any, precision: int | None, upper: bool) -> str:
    return format(int(value) if isinstance(value, bool) else _integer(value), "b")


def _as_hex(value: Any, precision: int | None, upper: bool) -> str:
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        spend_on_text(len(value))
    text = value.hex() if isinstance(value, bytes) else format(_integer(value), "x")
    return to_upper(text) if upper else text


def _as_octal(value: Any, precision: int | None, upper: bool) -> str:
    return format(_integer(value), "o")


_CLAUSES: Final[dict[str, Callable[[Any, int | None, bool], str]]] = {
    "s": _as_string,
    "d": _as_decimal,
    "f": _as_fixed,
    "e": _as_scientific,
    "b": _as_binary,
    "x": _as_hex,
    "o": _as_octal,
}


def validate_format(nodes: list[Expr], report: Callable[[int, str], None]) -> None:
    """Check the arguments of constant texts against their clauses."""
    for node in nodes:
        if (
            isinstance(node, Call)
            and node.function == "format"
            and isinstance(node.target, Literal)
            and isinstance(node.target.value, str)
            and len(node.args) == 1
            and isinstance(node.args[0], CreateList)
        ):
            _validate_call(node, node.target.value, node.args[0].elements, report)


def _validate_call(node: Call, text: str, args: list[Expr], report: Callable[[int, str], None]) -> None:
    def clause(index: int, kind: str, precision: int | None, upper: bool) -> str:
        wrong = _misfit(args[index], kind)
        if wrong is not None:
            raise _FormatError(f"error during formatting: {_MESSAGES[kind]}{wrong.type.name}", wrong.offset)
        return ""

    try:
        _, wanted = _interpolate(text, len(args), clause)
    except _FormatError as error:
        report(node.offset if error.offset is None else error.offset, str(error))
        return
    if len(args) > wanted:
        report(node.offset, f"too many arguments supplied to string.format (expected {wanted}, got {len(args)})")


def _misfit(node: Expr, kind: str) -> Expr | None:
    """Return the argument, or the part of it, that a clause cannot format."""
    if node.type.kind is not Kind.DYN and node.type.kind not in _ACCEPTED[kind]:
        return node
    if kind != "s":
        return None
    parts: list[Expr] = []
    if isinstance(node, CreateList):
        parts = node.elements
    elif isinstance(node, CreateMap):
        parts = [part for entry in node.entries for part in (entry.key, entry.value)]
    for part in parts:
        wrong = _misfit(part, kind)
        if wrong is not None:
            return wrong
    return None
