"""Validation of numbers in Go's arithmetic: int64 and float64, converted as on amd64.

Follows k8s.io/kube-openapi `pkg/validation/validate` (numberValidator).
"""

from __future__ import annotations

from typing import Final

from steersman.machinery.errors.field import format_float

from .nodes import Checks, Node

Number = int | float

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1
_INT32_MIN: Final = -(2**31)
_INT32_MAX: Final = 2**31 - 1
_FLOAT32_END: Final = float.fromhex("0x1.ffffffp+127")
"""The first number too large for float32: the largest float32 plus half the distance to the next number."""
_JSON_INTEGER_MAX: Final = 2**53 - 1
_EPSILON: Final = 1e-9


def native(value: Number) -> Number:
    """Return a number as Go decodes it: integers too big for an int64 become floats."""
    return value if value.__class__ is float or INT64_MIN <= value <= INT64_MAX else float(value)


def is_json_integer(value: float) -> bool:
    """Return True if a float counts as an integer: it has at most 53 bits and is one, or is barely above one."""
    if not -_JSON_INTEGER_MAX <= value <= _JSON_INTEGER_MAX:
        return False
    if value.is_integer():
        return True
    if value < 1:  # cut off, the number is 0, or, if negative, a huge unsigned number
        return False
    near = float(int(value))
    return (value - near) / (value + near) < _EPSILON


def to_int64(value: float) -> int:
    """Return a float truncated to an int64; a float that does not fit becomes the smallest int64."""
    return int(value) if INT64_MIN <= value < 2.0**63 else INT64_MIN


def number_type(node: Node) -> tuple[str, str]:
    """Return the type and format that a number must fit into; "" if several types are allowed, or none is set."""
    if len(node.types) != 1 or node.types[0] not in ("integer", "number"):
        return "", ""
    kind = node.types[0]
    formats = ("int32", "int64") if kind == "integer" else ("float", "double")
    return kind, node.format if node.format in formats else ""


def fits(value: Number, kind: str, format: str) -> bool:
    """Return True if a number fits into the type and format."""
    if kind != "integer":
        return format != "float" or abs(value) < _FLOAT32_END
    if value.__class__ is float and not value.is_integer():
        return False
    return (_INT32_MIN <= value <= _INT32_MAX) if format == "int32" else INT64_MIN <= value <= INT64_MAX


def range_text(what: str, kind: str, format: str, name: str) -> str:
    """Return the message for a number that does not fit. `what` is the value, or the name of a limit in the schema."""
    said = f"with format {format}" if format else "(default format)"
    return f"{what} value must be of type {kind} {said} in {name}"


def multiple_text(value: Number, factor: float, fitting: bool, name: str) -> tuple[str, Number] | None:
    """Return the message and the reported value if a number is not a multiple of `factor`, otherwise None.

    With `fitting` the factor fits into the type; then an integer is compared with it as an integer.
    """
    if value.__class__ is int and fitting:
        whole = to_int64(factor)
        if whole <= 0:
            return f"factor MultipleOf declared for {name} must be positive: {whole}", whole
        return (f"{name} in body should be a multiple of {whole}", value) if value % whole else None
    shown = format_float(factor)
    if factor <= 0:
        return f"factor MultipleOf declared for {name} must be positive: {shown}", factor
    number = float(value)
    quotient = 1 / factor * number if factor < 1 else number / factor
    if is_json_integer(quotient):
        return None
    return f"{name} in body should be a multiple of {shown}", value if fitting else number


def maximum_text(value: Number, checks: Checks, fitting: bool, name: str) -> tuple[str, Number] | None:
    """Return the message and the reported value if a number is above the maximum, otherwise None. See `multiple_text`."""
    assert checks.maximum is not None
    limit: Number = checks.maximum
    if value.__class__ is int and fitting:
        limit = to_int64(checks.maximum)
    elif value.__class__ is int:
        value = float(value)
    if value < limit or (value == limit and not checks.exclusive_maximum):
        return None
    words = "less than" if checks.exclusive_maximum else "less than or equal to"
    return f"{name} in body should be {words} {_text(limit)}", value


def minimum_text(value: Number, checks: Checks, fitting: bool, name: str) -> tuple[str, Number] | None:
    """Return the message and the reported value if a number is below the minimum, otherwise None. See `multiple_text`."""
    assert checks.minimum is not None
    limit: Number = checks.minimum
    if value.__class__ is int and fitting:
        limit = to_int64(checks.minimum)
    elif value.__class__ is int:
        value = float(value)
    if value > limit or (value == limit and not checks.exclusive_minimum):
        return None
    words = "greater than" if checks.exclusive_minimum else "greater than or equal to"
    return f"{name} in body should be {words} {_text(limit)}", value


def _text(value: Number) -> str:
    return format_float(value) if isinstance(value, float) else str(value)
