"""Positions in plain values: found by the field of an error, read, set and removed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from .constraints import Constraints

Steps = tuple[str | int, ...]
"""Names of members and numbers of items, from the whole object on."""

MISSING: Final = object()


def steps_of(field: str, value: Any) -> Steps:
    """Return the steps of an error's field in a value; they may lead one step beyond it.

    Fields are written `spec.ports[0].name`, with `[key]` for keys of maps. Names with dots in them are known by the
    members that are there.
    """
    steps: list[str | int] = []
    rest = "" if field in ("<nil>", "[]") else field
    while rest:
        if rest[0] == "[":
            text, _, rest = rest[1:].partition("]")
            if isinstance(value, list) and text.isascii() and text.isdigit():
                step: str | int = int(text)
            else:
                step = text
        else:
            step, rest = _name(rest.removeprefix("."), value)
        steps.append(step)
        value = _child(value, step)
    return tuple(steps)


def _name(text: str, value: Any) -> tuple[str, str]:
    """Return the first name in a text, and the rest."""
    if isinstance(value, dict):
        fitting = [
            name for name in value if text.startswith(name) and text[len(name) : len(name) + 1] in ("", ".", "[")
        ]
        if fitting:
            name = max(fitting, key=len)
            return name, text[len(name) :]
    end = min((at for mark in ".[" if (at := text.find(mark)) >= 0), default=len(text))
    return text[:end], text[end:]


def _child(value: Any, step: str | int) -> Any:
    if isinstance(value, dict) and isinstance(step, str):
        return value.get(step, MISSING)
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return value[step]
    return MISSING


def get(value: Any, steps: Sequence[str | int]) -> Any:
    """Return the value at a position, MISSING if there is none."""
    for step in steps:
        value = _child(value, step)
    return value


def put(value: Any, steps: Steps, new: Any) -> bool:
    """Set the value at a position; return False if the value around it is missing."""
    around = get(value, steps[:-1])
    last = steps[-1]
    if isinstance(around, dict) and isinstance(last, str):
        around[last] = new
        return True
    if isinstance(around, list) and isinstance(last, int) and last <= len(around):
        around[last : last + 1] = [new]
        return True
    return False


def remove(value: Any, steps: Steps) -> bool:
    """Remove the value at a position; return False if there is none."""
    if get(value, steps) is MISSING:
        return False
    around: Any = get(value, steps[:-1])
    del around[steps[-1]]
    return True


def constraints_at(root: Constraints, steps: Sequence[str | int]) -> Constraints | None:
    """Return the constraints on a position, None if the schema does not know it."""
    found: Constraints | None = root
    for step in steps:
        if found is None:
            return None
        found = found.items if isinstance(step, int) else found.member(step)
    return found


def may_be_removed(root: Constraints, steps: Steps, value: Any) -> bool:
    """Return True if the schema does not require the value at a position."""
    around = constraints_at(root, steps[:-1])
    if around is None:
        return len(steps) > 1
    if isinstance(steps[-1], int):
        items = get(value, steps[:-1])
        return isinstance(items, list) and len(items) > around.least("min_items")
    return steps[-1] not in around.required and len(steps) > 1
