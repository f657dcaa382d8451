"""Values of jq, which are those of JSON: their order, arithmetic and text (jq 1.7 manual)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import cmp_to_key
from typing import Any, Final

from steersman.work.offloading import ensure_offloaded
from steersman.work.threads import give_way

Value = Any
"""None, bool, int, float, str, or a list or dict of these."""

_MOST_STEPS: Final = 50_000
"""Steps of one expression for one object; a step takes about a microsecond."""
_STEPS_ON_LOOP: Final = 4_000
"""Steps after which an evaluation continues in a worker thread."""
_OF_TEXT: Final = 64
"""Characters that are copied in the time of a step."""
_MOST_DEPTH: Final = 60
"""Calls of defined functions within each other."""
_EXACT: Final = 2**63
_SHOWN_AS_WHOLE: Final = 1e17
_EVERY: Final = 256
"""Steps after which other users may have the processor."""


class JQError(Exception):
    """Error of an expression, with any value."""

    def __init__(self, value: Value) -> None:
        super().__init__(value if isinstance(value, str) else "error")
        self.value: Final = value


class TooMuch(Exception):
    """An evaluation takes too many steps or nests too deeply. In contrast to JQError, no expression catches it."""


class Run:
    """One evaluation of an expression: the steps that it has taken, and the functions that every expression has."""

    __slots__ = ("_checked", "depth", "library", "steps")

    def __init__(self, library: Mapping[str, Any]) -> None:
        self.library: Final = library
        self.steps = 0
        self.depth = 0
        self._checked = 0

    def spend(self, steps: int = 1) -> None:
        """Count steps before they are taken. Raises TooMuch."""
        self.steps += steps
        if self.steps - self._checked < _EVERY:
            return
        self._checked = self.steps
        if self.steps > _MOST_STEPS:
            raise TooMuch(f"the expression takes more than {_MOST_STEPS} steps")
        if self.steps > _STEPS_ON_LOOP:
            ensure_offloaded()
        give_way()

    def spend_on_text(self, characters: int) -> None:
        """Count the steps of copying characters. Raises TooMuch."""
        self.spend(1 + characters // _OF_TEXT)

    def enter(self) -> None:
        """Count a call that has not returned. Raises TooMuch."""
        self.depth += 1
        if self.depth > _MOST_DEPTH:
            raise TooMuch("the expression nests too deeply")


def type_name(value: Value) -> str:
    """Return the name of a value's type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


_ORDER: Final = {"null": 0, "boolean": 1, "number": 2, "string": 3, "array": 4, "object": 5}


def compare(run: Run, one: Value, other: Value) -> int:
    """Return a negative number, 0 or a positive number as a value comes before another, equals it, or comes after it."""
    run.spend()
    kind, other_kind = type_name(one), type_name(other)
    if kind != other_kind:
        return _ORDER[kind] - _ORDER[other_kind]
    if kind == "string":
        run.spend_on_text(min(len(one), len(other)))
    if kind == "array":
        for left, right in zip(one, other, strict=False):
            if found := compare(run, left, right):
                return found
        return len(one) - len(other)
    if kind == "object":
        keys, other_keys = sorted_keys(run, one), sorted_keys(run, other)
        if found := compare(run, keys, other_keys):
            return found
        return next((found for key in keys if (found := compare(run, one[key], other[key]))), 0)
    return 0 if kind == "null" else (one > other) - (one < other)


def sorted_keys(run: Run, value: dict[str, Value]) -> list[str]:
    """Return the keys of an object in order."""
    run.spend(len(value))
    return sorted(value)


def key_of(run: Run) -> Callable[[Value], Any]:
    """Return a key for sorting by `compare`."""
    return cmp_to_key(lambda one, other: compare(run, one, other))


def truth(value: Value) -> bool:
    """Return False for null and false."""
    return value is not None and value is not False


def number(value: float) -> Value:
    """Return a number; a whole one as int."""
    if isinstance(value, int):
        return value if -_EXACT <= value < _EXACT else _real(value)
    return int(value) if value.is_integer() and abs(value) < _SHOWN_AS_WHOLE else value


def _real(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def weigh(run: Run, value: Value) -> None:
    """Count the steps of going through a value, whose parts may occur in it many times."""
    run.spend()
    if isinstance(value, str):
        run.spend_on_text(len(value))
    elif isinstance(value, list):
        for each in value:
            weigh(run, each)
    elif isinstance(value, dict):
        for key, each in value.items():
            run.spend_on_text(len(key))
            weigh(run, each)


def to_json(run: Run, value: Value) -> str:
    """Return the JSON of a value."""
    weigh(run, value)
    return json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"))


def _finite(value: Value) -> Value:
    if isinstance(value, float):
        return None if math.isnan(value) else max(min(number(value), 1.7976931348623157e308), -1.7976931348623157e308)
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return {key: _finite(each) for key, each in value.items()} if isinstance(value, dict) else value


def to_text(run: Run, value: Value) -> str:
    """Return a string, or the JSON of any other value."""
    return value if isinstance(value, str) else to_json(run, value)


def shown(run: Run, value: Value) -> str:
    """Return a value for an error message."""
    found = to_json(run, value)
    return f"{type_name(value)} ({found[:11]}{'...' if len(found) > 11 else ''})"


# Operators


def add(run: Run, one: Value, other: Value) -> Value:
    """Return the sum, the concatenation, or the union. Raises JQError."""
    if one is None or other is None:
        return other if one is None else one
    kind = type_name(one)
    if kind == type_name(other):
        if kind == "number":
            return number(one + other)
        if kind in ("string", "array"):
            (run.spend_on_text if kind == "string" else run.spend)(len(one) + len(other))
            return one + other
        if kind == "object":
            run.spend(len(one) + len(other))
            return {**one, **other}
    raise JQError(f"{shown(run, one)} and {shown(run, other)} cannot be added")


def subtract(run: Run, one: Value, other: Value) -> Value:
    """Return the difference. Raises JQError."""
    if type_name(one) == type_name(other) == "number":
        return number(one - other)
    if isinstance(one, list) and isinstance(other, list):
        return [each for each in one if not any(compare(run, each, gone) == 0 for gone in other)]
    raise JQError(f"{shown(run, one)} and {shown(run, other)} cannot be subtracted")


def multiply(run: Run, one: Value, other: Value) -> Value:
    """Return the product, the repeated string, or the deep union. Raises JQError."""
    kinds = type_name(one), type_name(other)
    if kinds == ("number", "number"):
        return number(one * other)
    if kinds in (("string", "number"), ("number", "string")):
        text, times = (one, other) if isinstance(one, str) else (other, one)
        if not times > 0:
            return None
        count = math.ceil(min(times, float(_MOST_STEPS * _OF_TEXT)))
        run.spend_on_text(len(text) * count)
        return text * count
    if kinds == ("object", "object"):
        return _merged(run, one, other)
    raise JQError(f"{shown(run, one)} and {shown(run, other)} cannot be multiplied")


def _merged(run: Run, one: dict[str, Value], other: dict[str, Value]) -> Value:
    run.spend(len(one) + len(other))
    found = dict(one)
    for key, each in other.items():
        before = found.get(key)
        found[key] = _merged(run, before, each) if isinstance(before, dict) and isinstance(each, dict) else each
    return found


def divide(run: Run, one: Value, other: Value) -> Value:
    """Return the quotient, or the parts of a string. Raises JQError."""
    if type_name(one) == type_name(other) == "number":
        if other == 0:
            raise JQError(f"{shown(run, one)} and {shown(run, other)} cannot be divided because the divisor is zero")
        return number(one / other)
    if isinstance(one, str) and isinstance(other, str):
        return split(run, one, other)
    raise JQError(f"{shown(run, one)} and {shown(run, other)} cannot be divided")


def modulo(run: Run, one: Value, other: Value) -> Value:
    """Return the remainder of whole numbers. Raises JQError."""
    if type_name(one) == type_name(other) == "number" and math.isfinite(one) and math.isfinite(other):
        divisor = abs(int(other))
        if divisor == 0:
            raise JQError(f"{shown(run, one)} and {shown(run, other)} cannot be divided because the divisor is zero")
        found = abs(int(one)) % divisor
        return -found if one < 0 else found
    raise JQError(f"{shown(run, one)} and {shown(run, other)} cannot be divided")


def split(run: Run, text: str, separator: str) -> list[Value]:
    """Return the parts of a string."""
    run.spend_on_text(len(text))
    if not text:
        return []
    found = text.split(separator) if separator else list(text)
    run.spend(len(found))
    return list(found)


def index(run: Run, value: Value, key: Value) -> Value:
    """Return the member or element of a value. Raises JQError."""
    if isinstance(value, dict) and isinstance(key, str):
        return value.get(key)
    if isinstance(key, dict) and key.keys() <= {"start", "end"}:
        return part(run, value, key.get("start"), key.get("end"))
    if isinstance(value, list) and isinstance(key, int | float) and not isinstance(key, bool):
        at = math.floor(key) if math.isfinite(key) else len(value)
        return value[at] if -len(value) <= at < len(value) else None
    if value is None and (key is None or isinstance(key, str | int | float)) and not isinstance(key, bool):
        return None
    if isinstance(value, list) and isinstance(key, list):
        return indices(run, value, key)
    what = f'"{key}"' if isinstance(key, str) else type_name(key)
    raise JQError(f"Cannot index {type_name(value)} with {what}")


def part(run: Run, value: Value, begin: Value, end: Value) -> Value:
    """Return a part of an array or a string. Raises JQError."""
    if value is None:
        return None
    if not isinstance(value, list | str):
        raise JQError(f"Cannot index {type_name(value)} with object")
    for each in (begin, end):
        if each is not None and type_name(each) != "number":
            raise JQError("Start and end indices of an array slice must be numbers")
    first = None if begin is None else math.floor(max(min(begin, 1e9), -1e9))
    last = None if end is None else math.ceil(max(min(end, 1e9), -1e9))
    run.spend_on_text(len(value))
    return value[first:last]


def indices(run: Run, value: Value, wanted: Value) -> Value:
    """Return the places at which a value occurs in another."""
    if value is None:
        return None
    if isinstance(value, str) and isinstance(wanted, str):
        run.spend_on_text(len(value))
        run.spend(len(value) if wanted else 0)
        found, at = [], value.find(wanted) if wanted else -1
        while at >= 0:
            found.append(at)
            run.spend_on_text(len(wanted))
            at = value.find(wanted, at + 1)
        return found or None
    if isinstance(value, list) and isinstance(wanted, list):
        if not wanted:
            return None
        size = len(wanted)
        return [at for at in range(len(value)) if compare(run, value[at : at + size], wanted) == 0] or None
    if isinstance(value, list):
        return [at for at, each in enumerate(value) if compare(run, each, wanted) == 0] or None
    raise JQError(f"Cannot determine indices of {type_name(wanted)} in {type_name(value)}")


def contains(run: Run, value: Value, wanted: Value) -> bool:
    """Return True if a value contains another. Raises JQError."""
    run.spend()
    if isinstance(value, dict) and isinstance(wanted, dict):
        return all(key in value and contains(run, value[key], each) for key, each in wanted.items())
    if isinstance(value, list) and isinstance(wanted, list):
        return all(any(_contains_or_equals(run, here, each) for here in value) for each in wanted)
    if isinstance(value, str) and isinstance(wanted, str):
        run.spend_on_text(len(value))
        return wanted in value
    if type_name(value) == type_name(wanted):
        return compare(run, value, wanted) == 0
    raise JQError(f"{shown(run, value)} and {shown(run, wanted)} cannot have their containment checked")


def _contains_or_equals(run: Run, value: Value, wanted: Value) -> bool:
    return type_name(value) == type_name(wanted) and contains(run, value, wanted)


def values_of(run: Run, value: Value) -> list[Value]:
    """Return the values of an array or object. Raises JQError."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return list(value.values())
    raise JQError(f"Cannot iterate over {type_name(value) if value is None else shown(run, value)}")
