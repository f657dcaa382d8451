"""Bounds on what a schema requires: values that would be too large are not tried."""

from __future__ import annotations

from typing import Any, Final

from .constraints import Constraints
from .errors import Unsatisfiable
from .pattern_texts import LONGEST
from .scalars import number_problem, strings

MOST_ITEMS: Final = 1000
"""The most items that a list may need."""
MOST_VALUES: Final = 1_100
"""The most values, at all levels, that an object may need."""


class Feasibility:
    """Problems of the positions of one schema, found once each."""

    def __init__(self) -> None:
        self._found: dict[Any, tuple[str, int]] = {}

    def problem(self, constraints: Constraints) -> str:
        """Return the reason why no value is small enough, with the field; "" if there may be one."""
        return self._measured(constraints)[0]

    def _measured(self, constraints: Constraints) -> tuple[str, int]:
        """Return the problem and the number of values that a value needs at least."""
        key = constraints.key
        found = self._found.get(key)
        if found is None:
            found = self._measure(constraints)
            if not found[0] and found[1] > MOST_VALUES:
                found = f"it needs at least {found[1]} values; {MOST_VALUES} are the most", found[1]
            self._found[key] = found
        return found

    def _measure(self, constraints: Constraints) -> tuple[str, int]:
        if constraints.enum is not None:
            return ("" if constraints.enum else "no value of the enumeration is allowed"), 1
        match constraints.node.types:
            case ("object",):
                return self._object(constraints)
            case ("array",):
                return self._array(constraints)
            case ("string",):
                return _string(constraints), 1
            case ("number",) | ("integer",):
                return number_problem(constraints), 1
        return "", 1

    def _object(self, constraints: Constraints) -> tuple[str, int]:
        size = 1
        for name in constraints.required:
            if name in constraints.absent:
                return f"{name}: it is required, and forbidden", size
            member = constraints.member(name)
            if member is None:
                return f"{name}: it is required, and the schema has no such field", size
            problem, more = self._measured(member)
            if problem:
                return below(name, problem), size
            size += more
        least = constraints.least("min_properties")
        if least > MOST_ITEMS:
            return f"it needs at least {least} members; {MOST_ITEMS} are the most", size
        return "", size

    def _array(self, constraints: Constraints) -> tuple[str, int]:
        least = constraints.least("min_items")
        if least > MOST_ITEMS:
            return f"it needs at least {least} items; {MOST_ITEMS} are the most", 1
        most = constraints.most("max_items")
        if most is not None and most < least:
            return f"minItems is {least}, maxItems {most}", 1
        if not least or constraints.items is None:
            return "", 1
        problem, size = self._measured(constraints.items)
        return (below("[0]", problem) if problem else ""), 1 + least * size


def below(name: str, problem: str) -> str:
    """Return a problem with the field above its own; fields far below are cut off."""
    if len(problem) > 1000:
        return problem
    between = "" if problem.startswith("[") else "." if _begins_with_field(problem) else ": "
    return f"{name}{between}{problem}"


def _begins_with_field(problem: str) -> bool:
    return ": " in problem and " " not in problem.partition(": ")[0]


def _string(constraints: Constraints) -> str:
    least, most = constraints.least("min_length"), constraints.most("max_length")
    if least > LONGEST:
        return f"it needs at least {least} characters; {LONGEST} are the most"
    if most is not None and most < least:
        return f"minLength is {least}, maxLength {most}"
    if not constraints.patterns:
        return ""
    try:
        strings(constraints)
    except Unsatisfiable as error:
        return str(error)
    return ""
