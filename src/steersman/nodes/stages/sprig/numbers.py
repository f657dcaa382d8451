"""Functions of numbers (sprig `numeric.go`). Anything that is no number counts as 0."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from steersman.net.ascii import is_digits
from steersman.nodes.stages.go_template.builtins import Function, integer, text
from steersman.nodes.stages.go_template.values import TemplateError, Value, text_of
from steersman.work.patterns import late_pattern

MOST_NUMBERS: Final = 10_000
"""Elements of a list that a function creates."""
_WHOLE: Final = late_pattern("[+-]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|[0-9]+)", re.ASCII)
_DECIMAL: Final = late_pattern(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?", re.ASCII)
_LONGEST: Final = 400


def whole(value: Value) -> int:
    """Return any value as an int64 (cast.ToInt64)."""
    if isinstance(value, str):
        shown = value[:_LONGEST]
        found = 0
        if _WHOLE.fullmatch(shown):
            found = int(shown, 8) if re.fullmatch("[+-]?0[0-7]+", shown, re.ASCII) else _base(shown)
        return found if -(1 << 63) <= found < 1 << 63 else 0
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else 0
    return int(value) if isinstance(value, int) else 0


def _base(shown: str) -> int:
    digits = shown.lstrip("+-")
    return int(shown, 0) if not is_digits(digits) or digits[0] != "0" or len(digits) == 1 else int(shown)


def real(value: Value) -> float:
    """Return any value as a float64 (cast.ToFloat64)."""
    if isinstance(value, str):
        return float(value) if len(value) < _LONGEST and _DECIMAL.fullmatch(value) else 0.0
    return float(value) if isinstance(value, (int, float)) else 0.0


def _quotient(one: int, other: int) -> int:
    if not other:
        raise TemplateError("runtime error: integer divide by zero")
    found = abs(one) // abs(other)
    return found if (one < 0) == (other < 0) else -found


def _divided(first: float, *others: float) -> float:
    for each in others:
        if each == 0:
            raise TemplateError("decimal division by 0")
        first /= each
    return first


def _octal(given: str) -> int:
    """Return the number of an octal text; 0 for any other text."""
    return int(given, 8) if re.fullmatch("[+-]?[0-7]{1,20}", given, re.ASCII) else 0


def _product(*values: Value) -> int:
    found = 1
    for each in values:
        found = _wrapped(found * whole(each))
    return found


def _wrapped(value: int) -> int:
    """Return a whole number wrapped around as int64 does."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _until_step(start: Value, stop: Value, step: Value) -> list[Value]:
    found = range(integer(start, "untilStep"), integer(stop, "untilStep"), integer(step, "untilStep") or 1)
    if integer(step, "untilStep") == 0:
        return []
    if len(found) > MOST_NUMBERS:
        raise TemplateError(f"a list of more than {MOST_NUMBERS} numbers")
    return list(found)


def _until(count: Value) -> list[Value]:
    return _until_step(0, count, 1 if integer(count, "until") > 0 else -1)


def _seq(*bounds: Value) -> str:
    places = [integer(each, "seq") for each in bounds]
    if not 1 <= len(places) <= 3:
        return ""
    start, end = (1, places[0]) if len(places) == 1 else (places[0], places[-1])
    step = places[1] if len(places) == 3 else (1 if end >= start else -1)
    if (end < start and step >= 0 and len(places) == 3) or step == 0:
        return ""
    return " ".join(map(str, _until_step(start, end + (1 if step > 0 else -1), step)))


def _round(value: Value, places: Value, *at: Value) -> float:
    number, digits = real(value), integer(places, "round")
    if not -300 < digits < 300 or not math.isfinite(number):
        return number
    scaled = number * 10.0**digits
    fraction, base = math.modf(scaled)
    up = abs(fraction) >= (real(at[0]) if at else 0.5)
    return float((base + math.copysign(1, scaled) if up else base) / 10.0**digits)


def _atoi(value: Value) -> int:
    given = text(value, "atoi")
    found = int(given) if re.fullmatch("[+-]?[0-9]{1,19}", given, re.ASCII) else 0
    return found if -(1 << 63) <= found < 1 << 63 else 0


NUMBERS: Final[Mapping[str, Function]] = MappingProxyType(
    {
        "add": lambda *values: _wrapped(sum(map(whole, values))),
        "add1": lambda value: _wrapped(whole(value) + 1),
        "add1f": lambda value: real(value) + 1.0,
        "addf": lambda *values: sum(map(real, values)),
        "atoi": _atoi,
        "biggest": lambda first, *others: max(map(whole, (first, *others))),
        "ceil": lambda value: float(math.ceil(real(value))),
        "div": lambda one, other: _quotient(whole(one), whole(other)),
        "divf": lambda first, *others: _divided(real(first), *map(real, others)),
        "float64": real,
        "floor": lambda value: float(math.floor(real(value))),
        "int": whole,
        "int64": whole,
        "max": lambda first, *others: max(map(whole, (first, *others))),
        "maxf": lambda first, *others: max(map(real, (first, *others))),
        "min": lambda first, *others: min(map(whole, (first, *others))),
        "minf": lambda first, *others: min(map(real, (first, *others))),
        "mod": lambda one, other: whole(one) - whole(other) * _quotient(whole(one), whole(other)),
        "mul": lambda first, *others: _product(first, *others),
        "mulf": lambda first, *others: math.prod(map(real, (first, *others))),
        "round": _round,
        "seq": _seq,
        "sub": lambda one, other: _wrapped(whole(one) - whole(other)),
        "subf": lambda first, *others: real(first) - sum(map(real, others)),
        "toDecimal": lambda value: _octal(text_of(value)),
        "until": _until,
        "untilStep": _until_step,
    }
)
