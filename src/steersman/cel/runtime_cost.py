"""Actual costs of calls, computed from their arguments (cel-go `interpreter.CostTracker`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from steersman.cel.ast import OF_VALUES
from steersman.cel.environment import Overload
from steersman.cel.sizes import REGEX_FACTOR, STRING_FACTOR
from steersman.cel.values import Optional, size_of_value

CallCosts = Callable[[str, str, list[Any], Any], int | None]
"""Further rules: returns the cost from the function, the overload ("" if it depends on the values), the arguments and
the result.
"""


def actual_size(value: Any) -> int:
    """Return the size of a value for costs."""
    if isinstance(value, Optional) and value.has_value:
        return actual_size(value.value)
    return size_of_value(value)


def scaled_size(value: Any) -> int:
    """Return the cost of walking a string, a part of its size, rounded up."""
    return math.ceil(actual_size(value) * STRING_FACTOR)


_BY_FIRST: Final = frozenset(
    {"starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string", "strings_quote", "string_format"}
)
_BY_SMALLER: Final = frozenset(
    [f"{name}_{type}" for name in ("less", "greater", "less_equals", "greater_equals") for type in ("string", "bytes")]
    + ["equals", "not_equals"]
)


_OWN: Final = OF_VALUES | {
    *("size", "startsWith", "endsWith", "contains", "matches"),
    *("string", "int", "double", "bool"),
}
"""Functions of the language for which no library has other rules."""


def _by_first(args: list[Any], result: Any) -> int:
    return scaled_size(args[0])


def _by_smaller(args: list[Any], result: Any) -> int:
    return math.ceil(min(actual_size(args[0]), actual_size(args[1])) * STRING_FACTOR)


def _by_sum(args: list[Any], result: Any) -> int:
    return math.ceil((actual_size(args[0]) + actual_size(args[1])) * STRING_FACTOR)


def _in_list(args: list[Any], result: Any) -> int:
    return actual_size(args[1])


def matching_cost(text: Any, pattern: Any) -> int:
    """Return the cost of searching for a regular expression."""
    return math.ceil((1.0 + actual_size(text)) * STRING_FACTOR) * math.ceil(actual_size(pattern) * REGEX_FACTOR)


def _matches(args: list[Any], result: Any) -> int:
    return matching_cost(args[0], args[1])


def _contains(args: list[Any], result: Any) -> int:
    return scaled_size(args[0]) * scaled_size(args[1])


def _one(args: list[Any], result: Any) -> int:
    return 1


def _standard(overload: str) -> Callable[[list[Any], Any], int]:
    if overload in _BY_FIRST:
        return _by_first
    if overload in _BY_SMALLER:
        return _by_smaller
    match overload:
        case "in_list":
            return _in_list
        case "add_string" | "add_bytes":
            return _by_sum
        case "matches_string":
            return _matches
        case "contains_string":
            return _contains
        case _:
            return _one


def call_cost(costs: CallCosts, function: str, overload: Overload | None) -> Callable[[list[Any], Any], int]:
    """Return the rule for a call; `overload` is None if several may apply."""
    if overload is not None and overload.cost is not None:
        return overload.cost
    id = "" if overload is None else overload.id
    standard = _standard(id)
    if function in _OWN:
        return standard

    def cost(args: list[Any], result: Any) -> int:
        special = costs(function, id, args, result)
        return standard(args, result) if special is None else special

    return cost
