"""CEL's operators and conversions of values."""

from __future__ import annotations

import math
import re
from typing import Any, Final

from steersman.cel.moments import (
    MAX_SECONDS,
    MIN_SECONDS,
    SECOND,
    duration,
    duration_text,
    read_duration,
    read_timestamp,
    timestamp,
    timestamp_text,
)
from steersman.cel.types import Type
from steersman.cel.values import (
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    CustomList,
    Duration,
    EvaluationError,
    Timestamp,
    UInt,
    compare_numbers,
    format_double,
    no_such_overload,
    type_of_value,
)
from steersman.cel.work import spend, spend_on_text
from steersman.machinery.go.strings import to_lower
from steersman.work.patterns import late_pattern

_ORDERED: Final = frozenset({bool, int, UInt, float, str, bytes, Timestamp, Duration})
_NUMBERS: Final = frozenset({int, UInt, float})
_WHOLE: Final = frozenset({int, UInt})
_SUBTRACTABLE: Final = _NUMBERS | {Timestamp, Duration}
_ADDABLE: Final = _SUBTRACTABLE | {str, bytes, list, tuple}
_RECEIVERS: Final = frozenset({str, Timestamp, Duration})
"""Types with functions of their own. Errors do not name an operator that these types do not support."""

_INT_OVERFLOW: Final = "integer overflow"
_UINT_OVERFLOW: Final = "unsigned integer overflow"
MAX_CONCATENATED: Final = 16 * 1024 * 1024
"""The maximum length of concatenated strings, bytes and lists; cost limits keep expressions far below it."""
_ITEMS_OF_A_STEP: Final = 4
"""The items of a list that are copied in the time of one step."""


def _refused(function: str, kind: type, able: frozenset[type]) -> EvaluationError:
    """Return the error of an operator that does not fit its operands. It is named if it never supports the left
    operand.
    """
    is_named = kind not in able and kind not in _RECEIVERS
    return EvaluationError(f"no such overload: {function}") if is_named else no_such_overload()


def to_int(value: int) -> int:
    """Return a signed number. Raises EvaluationError if it is out of range."""
    if not MIN_INT <= value <= MAX_INT:
        raise EvaluationError(_INT_OVERFLOW)
    return value


def to_uint(value: int) -> UInt:
    """Return an unsigned number. Raises EvaluationError if it is out of range."""
    if not 0 <= value <= MAX_UINT:
        raise EvaluationError(_UINT_OVERFLOW)
    return UInt(value)


def add(left: Any, right: Any) -> Any:
    """Return `left + right`."""
    kind, other = type(left), type(right)
    if kind is other:
        if kind is int:
            return to_int(left + right)
        if kind is str or kind is bytes:
            if len(left) + len(right) > MAX_CONCATENATED:
                raise EvaluationError("concatenation is too large")
            spend_on_text(len(left) + len(right))
            return left + right
        if kind is float:
            return left + right
        if kind is UInt:
            return to_uint(int(left) + int(right))
        if kind is Duration:
            return duration(left.nanos + right.nanos)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        if len(left) + len(right) > MAX_CONCATENATED:
            raise EvaluationError("concatenation is too large")
        spend((len(left) + len(right)) // _ITEMS_OF_A_STEP)
        if isinstance(left, CustomList):
            return left.plus(right)
        return [*left, *right] if left else right
    if {kind, other} == {Timestamp, Duration}:
        return timestamp(left.nanos + right.nanos)
    raise _refused("_+_", kind, _ADDABLE)


def subtract(left: Any, right: Any) -> Any:
    """Return `left - right`."""
    kind, other = type(left), type(right)
    if kind is other:
        if kind is int:
            return to_int(left - right)
        if kind is float:
            return left - right
        if kind is UInt:
            return to_uint(int(left) - int(right))
        if kind is Duration or kind is Timestamp:
            return duration(left.nanos - right.nanos)
    if kind is Timestamp and other is Duration:
        return timestamp(left.nanos - right.nanos)
    raise _refused("_-_", kind, _SUBTRACTABLE)


def multiply(left: Any, right: Any) -> Any:
    """Return `left * right`."""
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return to_int(left * right)
        if kind is float:
            return left * right
        if kind is UInt:
            return to_uint(int(left) * int(right))
    raise _refused("_*_", kind, _NUMBERS)


def divide(left: Any, right: Any) -> Any:
    """Return `left / right`; integers are rounded towards zero."""
    kind = type(left)
    if kind is not type(right):
        raise _refused("_/_", kind, _NUMBERS)
    if kind is float:
        if right == 0.0:
            if left == 0.0 or math.isnan(left):
                return math.nan
            return math.inf if math.copysign(1.0, left) == math.copysign(1.0, right) else -math.inf
        return left / right
    if kind is not int and kind is not UInt:
        raise _refused("_/_", kind, _NUMBERS)
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(int(left)) // abs(int(right))
    if kind is UInt:
        return UInt(quotient)
    return to_int(quotient if (left < 0) == (right < 0) else -quotient)


def modulo(left: Any, right: Any) -> Any:
    """Return `left % right`, with the sign of `left`."""
    kind = type(left)
    if kind is not type(right) or (kind is not int and kind is not UInt):
        raise _refused("_%_", kind, _WHOLE)
    if right == 0:
        raise EvaluationError("modulus by zero")
    if kind is int and left == MIN_INT and right == -1:
        raise EvaluationError(_INT_OVERFLOW)
    rest = abs(int(left)) % abs(int(right))
    return UInt(rest) if kind is UInt else (-rest if left < 0 else rest)


def negate(value: Any) -> Any:
    """Return `-value`."""
    if type(value) is int:
        return to_int(-value)
    if type(value) is float:
        return -value
    if type(value) is Duration:
        return duration(-value.nanos)
    raise _refused("-_", type(value), frozenset((bool,)))


def compare(left: Any, right: Any) -> int:
    """Return -1, 0 or 1. Raises EvaluationError for values without an order."""
    kind, other = type(left), type(right)
    if kind in _NUMBERS and other in _NUMBERS:
        return compare_numbers(left, right)
    if kind is not other:
        raise no_such_overload()
    if kind in (str, bytes, bool):
        # Upstream compares the UTF-8 of strings, whose order is that of the code points.
        return bool(left > right) - bool(left < right)
    if kind in (Timestamp, Duration):
        return bool(left.nanos > right.nanos) - bool(left.nanos < right.nanos)
    raise no_such_overload()


def _compare(left: Any, right: Any, function: str) -> int:
    if type(left) not in _ORDERED:
        raise EvaluationError(f"no such overload: {function}")
    return compare(left, right)


def less(left: Any, right: Any) -> bool:
    """Return `left < right`."""
    return _compare(left, right, "_<_") < 0


def less_equals(left: Any, right: Any) -> bool:
    """Return `left <= right`."""
    return _compare(left, right, "_<=_") <= 0


def greater(left: Any, right: Any) -> bool:
    """Return `left > right`."""
    return _compare(left, right, "_>_") > 0


def greater_equals(left: Any, right: Any) -> bool:
    """Return `left >= right`."""
    return _compare(left, right, "_>=_") >= 0


def _cannot(value: Any, wanted: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{type_of_value(value).name}' to '{wanted}'")


_INT: Final = late_pattern(r"[+-]?[0-9]{1,400}", re.ASCII)
_UINT: Final = late_pattern(r"[0-9]{1,400}", re.ASCII)
_FLOAT: Final = late_pattern(
    r"[+-]?(?:inf(?:inity)?|nan|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?)", re.ASCII | re.IGNORECASE
)
_MAX_DOUBLE_TEXT: Final = 4096
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def convert_int(value: Any) -> Any:
    """Return `int(value)`."""
    match value:
        case bool():
            raise _cannot(value, "int")
        case int():
            return to_int(int(value))
        case float():
            if math.isnan(value) or not -(2.0**63) < value < 2.0**63:
                raise EvaluationError(_INT_OVERFLOW)
            return int(value)
        case str() if _INT.fullmatch(value) and MIN_INT <= int(value) <= MAX_INT:
            return int(value)
        case Timestamp():
            return value.nanos // SECOND
        case Duration():
            return value.nanos
        case None:
            raise EvaluationError("no such overload: int(null_type)")
    raise _cannot(value, "int")


def convert_uint(value: Any) -> Any:
    """Return `uint(value)`."""
    match value:
        case bool():
            raise _cannot(value, "uint")
        case int():
            return to_uint(int(value))
        case float():
            if math.isnan(value) or not 0 <= value < 2.0**64:
                raise EvaluationError(_UINT_OVERFLOW)
            return UInt(int(value))
        case str() if _UINT.fullmatch(value) and int(value) <= MAX_UINT:
            return UInt(int(value))
    raise _cannot(value, "uint")


def convert_double(value: Any) -> Any:
    """Return `double(value)`."""
    match value:
        case bool():
            raise _cannot(value, "double")
        case int() | float():
            return float(value)
        case str() if len(value) <= _MAX_DOUBLE_TEXT and _FLOAT.fullmatch(value):
            result = float(value)
            if math.isinf(result) and "n" not in to_lower(value):
                raise _cannot(value, "double")
            return result
    raise _cannot(value, "double")


def convert_bool(value: Any) -> Any:
    """Return `bool(value)`."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        if value in _TRUE:
            return True
        if value in _FALSE:
            return False
    raise _cannot(value, "bool")


def convert_bytes(value: Any) -> Any:
    """Return `bytes(value)`."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise _cannot(value, "bytes")


def convert_string(value: Any) -> Any:
    """Return `string(value)`."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case float():
            return format_double(value)
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
        case Timestamp():
            return timestamp_text(value)
        case Duration():
            return duration_text(value)
        case Type():
            return value.name
    raise _cannot(value, "string")


def convert_timestamp(value: Any) -> Any:
    """Return `timestamp(value)`."""
    if isinstance(value, Timestamp):
        return value
    if type(value) is int:
        if not MIN_SECONDS <= value <= MAX_SECONDS:
            raise EvaluationError("timestamp overflow")
        return Timestamp(value * SECOND)
    if isinstance(value, str):
        return read_timestamp(value)
    raise _cannot(value, "google.protobuf.Timestamp")


def convert_duration(value: Any) -> Any:
    """Return `duration(value)`."""
    if isinstance(value, Duration):
        return value
    if isinstance(value, str):
        return read_duration(value)
    raise _cannot(value, "google.protobuf.Duration")
