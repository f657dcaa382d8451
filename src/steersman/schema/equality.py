"""Equality of plain values as in Go's reflect.DeepEqual: 1 is not 1.0, true is not 1."""

from __future__ import annotations

from typing import Any

from steersman.machinery.codec.serializer import whole_or_float
from steersman.work.threads import paced


def same(one: Any, other: Any) -> bool:
    """Return True if two plain values are equal, including their types."""
    kind = one.__class__
    if kind is not other.__class__:
        return False
    if kind is dict:
        return len(one) == len(other) and all(
            name in other and same(member, other[name]) for name, member in paced(one.items())
        )
    if kind is list:
        return len(one) == len(other) and all(map(same, paced(one), other))
    return bool(one == other)


def as_key(value: Any) -> Any:
    """Return a hashable key that is equal only for the same values."""
    if value.__class__ is dict:
        return dict, frozenset((name, as_key(member)) for name, member in paced(value.items()))
    if value.__class__ is list:
        return list, tuple(as_key(item) for item in paced(value))
    return value if value.__class__ is str else (value.__class__, value)


def copied(value: Any) -> Any:
    """Return a deep copy of a plain value."""
    if value.__class__ is dict:
        return {name: copied(member) for name, member in paced(value.items())}
    if value.__class__ is list:
        return [copied(item) for item in paced(value)]
    return value


def as_in_json(value: Any) -> Any:
    """Return a value with each float without a fraction as an integer, as Go's JSON has it."""
    if value.__class__ is dict:
        return {name: as_in_json(member) for name, member in paced(value.items())}
    if value.__class__ is list:
        return [as_in_json(item) for item in paced(value)]
    return whole_or_float(value) if value.__class__ is float else value
