"""Values in templates: plain data with Go's kinds, truth and formatting."""

from __future__ import annotations

from decimal import Decimal
from enum import Enum
from typing import Any, Final

from steersman.net.ascii import is_digits

Value = Any
"""None, bool, int, float, str, `Number`, or a list or dict of these; MISSING for an absent value."""


class TemplateError(ValueError):
    """A template cannot be parsed or evaluated. The text tells the place and the reason."""


class Missing(Enum):
    """Type of the value of an absent key (the zero reflect.Value)."""

    MISSING = "<no value>"


MISSING: Final = Missing.MISSING


class Number(str):
    """JSON number (json.Number), which is a string to templates."""

    __slots__ = ()


class Opaque:
    """Value of a Go type of its own, which templates only pass on and print."""

    __slots__ = ()
    go_type = ""

    def plain(self) -> Value:
        """Return data for JSON."""
        return str(self)

    def member(self, name: str) -> Value:
        """Return a field or the result of a method without arguments; None if there is none."""
        return None


class Kind(Enum):
    """Kinds of values that comparisons distinguish."""

    INVALID = "invalid"
    BOOL = "bool"
    INT = "int"
    FLOAT = "float64"
    STRING = "string"


def kind_of(value: Value) -> Kind:
    """Return the basic kind of a value; INVALID for nil, lists and maps."""
    if isinstance(value, str):
        return Kind.STRING
    if isinstance(value, bool):
        return Kind.BOOL
    if isinstance(value, int):
        return Kind.INT
    return Kind.FLOAT if isinstance(value, float) else Kind.INVALID


def type_name(value: Value) -> str:
    """Return the name of a value's Go type, for messages and %T."""
    if value is None or value is MISSING:
        return "<nil>"
    if isinstance(value, Number):
        return "json.Number"
    if isinstance(value, Opaque):
        return value.go_type
    if isinstance(value, list):
        return "[]interface {}"
    return "map[string]interface {}" if isinstance(value, dict) else kind_of(value).value


def truth(value: Value) -> bool:
    """Return True if `if` takes a value for true: not empty, zero, false or nil."""
    return value is not MISSING and bool(value)


def check_size(value: Value) -> None:
    """Raise TemplateError if a value is too large to be gone through, as a part that occurs n times counts n times.

    Maps of a template may share parts, so that few steps make a value of very many. Each part is looked at once.
    """
    if isinstance(value, (list, dict)) and _size(value, {}) > _MOST_VALUES:
        raise TemplateError(f"a value of more than {_MOST_VALUES} parts")


def _size(value: Value, known: dict[int, int]) -> int:
    if not isinstance(value, (list, dict)):
        return 1
    found = known.get(id(value))
    if found is None:
        parts = value if isinstance(value, list) else value.values()
        found = known[id(value)] = 1 + sum(_size(each, known) for each in parts)
    return found


def plain(value: Value) -> Value:
    """Return data for JSON, with JSON numbers, which are strings in templates, as numbers again.

    Raises TemplateError for a value that is too large.
    """
    check_size(value)
    return _plain(value)


def _plain(value: Value) -> Value:
    if isinstance(value, Number):
        return int(value) if is_digits(value.lstrip("-")) else float(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE_IN_JSON:
        return int(value)
    if isinstance(value, Opaque):
        return value.plain()
    return None if value is MISSING else value


def text_of(value: Value) -> str:
    """Return a value as fmt prints it with %v. Raises TemplateError for a value that is too large."""
    check_size(value)
    return _text_of(value)


def _text_of(value: Value) -> str:
    if isinstance(value, str):
        return str(value)
    if value is None or value is MISSING:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, list):
        return f"[{' '.join(map(_text_of, value))}]"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{_text_of(value[key])}' for key in sorted(value))}]"
    return str(value)


def float_text(value: float) -> str:
    """Return the shortest text of a float64 as %v prints it, with an exponent below 1e-4 and from a million on."""
    if value != value or value in (float("inf"), float("-inf")):
        return "NaN" if value != value else "+Inf" if value > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    shown = "".join(map(str, digits))
    point = len(shown) + exponent
    minus = "-" if sign else ""
    if shown == "0":
        return f"{minus}0"
    if not -4 < point <= _LONGEST_WHOLE:
        rest = f".{shown[1:]}" if len(shown) > 1 else ""
        return f"{minus}{shown[0]}{rest}e{'-' if point < 1 else '+'}{abs(point - 1):02d}"
    if point <= 0:
        return f"{minus}0.{'0' * -point}{shown}"
    whole, fraction = shown[:point].ljust(point, "0"), shown[point:]
    return f"{minus}{whole}.{fraction}" if fraction else minus + whole


_MOST_VALUES: Final = 1 << 16
"""Parts of a value that is printed, encoded or compared; an object has no more."""
_LONGEST_WHOLE: Final = 6
"""Digits before the point of floats that are printed without an exponent."""
_WHOLE_IN_JSON: Final = 1e21
"""Size from which on numbers in JSON have an exponent."""
