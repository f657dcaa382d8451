"""Strategies for texts, numbers, and values of any type, under constraints."""

from __future__ import annotations

import math
import sys
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from steersman.schema.formats import FORMATS as CHECKS
from steersman.schema.formats import normalized
from steersman.schema.numbers import INT64_MAX, INT64_MIN
from steersman.schema.patterns import matches

from .constraints import Constraints
from .pattern_texts import pattern_texts
from .texts import FORMATS, names, plain_texts, quantities

_QUANTITY: Final = "[KMGTPE]i"
"""A part of the pattern that controller-gen writes for quantities."""
_INTEGERS: Final = {"int32": (-(2**31), 2**31 - 1)}
_LARGEST_FLOAT: Final = 1e15
"""Without limits in the schema: so that arithmetic in rules and programs stays exact."""


def strings(constraints: Constraints) -> SearchStrategy[str]:
    """Return a strategy for texts. Raises Unsatisfiable."""
    least, most = constraints.least("min_length"), constraints.most("max_length")
    patterns = constraints.patterns
    if any(_QUANTITY in each for each in patterns):
        return quantities().filter(lambda text: all(matches(each, text) for each in patterns))
    if patterns:
        found = pattern_texts(patterns[0], least, most)
        others = patterns[1:]
        if others:
            found = found.filter(lambda text: all(matches(each, text) for each in others))
    elif (named := normalized(constraints.format)) in FORMATS:
        found = FORMATS[named]
        if least or most is not None:
            found = found.filter(lambda text: least <= len(text) and (most is None or len(text) <= most))
        return found
    else:
        return plain_texts(least, most)
    check = CHECKS.get(normalized(constraints.format))
    return found if check is None else found.filter(check)


def int_or_strings(constraints: Constraints) -> SearchStrategy[int | str]:
    """Return a strategy for integers and texts. Raises Unsatisfiable."""
    found: SearchStrategy[int] = integers(constraints, 0, 100)
    if constraints.patterns or constraints.least("min_length") or constraints.most("max_length") is not None:
        return st.one_of(found, strings(constraints))
    percent = st.integers(0, 100).map(lambda number: f"{number}%")
    return st.one_of(found, percent, names())


def integers(constraints: Constraints, low: int = INT64_MIN, high: int = INT64_MAX) -> SearchStrategy[int]:
    """Return a strategy for integers within the limits of the schema, otherwise between `low` and `high`."""
    least, most = _INTEGERS.get(constraints.format, (INT64_MIN, INT64_MAX))
    limited_low, limited_high = _limits(constraints)
    if limited_low is not None:
        low = least = max(least, math.ceil(limited_low))
        low += limited_low == low and _excludes(constraints, "exclusive_minimum", limited_low)
    if limited_high is not None:
        high = most = min(most, math.floor(limited_high))
        high -= limited_high == high and _excludes(constraints, "exclusive_maximum", limited_high)
    low, high = max(low, least), min(high, most)
    factors = [each.multiple_of for each in constraints.checks if each.multiple_of]
    if not factors:
        return st.integers(low, max(low, high))
    factor = max(1, math.lcm(*(int(each) or 1 for each in factors)))
    first, last = -(-low // factor), high // factor
    return st.integers(first, max(first, last)).map(lambda number: number * factor)


def numbers(constraints: Constraints) -> SearchStrategy[int | float]:
    """Return a strategy for numbers: integers, and fractions."""
    low, high = _limits(constraints)
    factors = [each.multiple_of for each in constraints.checks if each.multiple_of]
    least = -_LARGEST_FLOAT if low is None else low
    most = _LARGEST_FLOAT if high is None else high
    if low is None:
        least = min(least, most)
    if high is None:
        most = max(least, most)
    if factors:
        factor = factors[0]
        first, last = math.ceil(least / factor), math.floor(most / factor)
        return st.integers(first, max(first, last)).map(lambda number: number * factor)
    excludes_low = low is not None and _excludes(constraints, "exclusive_minimum", low)
    excludes_high = high is not None and _excludes(constraints, "exclusive_maximum", high)
    is_tiny = max(abs(least), abs(most)) < sys.float_info.min
    fractions = st.floats(
        least, most, allow_nan=False, exclude_min=excludes_low, exclude_max=excludes_high, allow_subnormal=is_tiny
    )
    first, last = math.ceil(least) + excludes_low, math.floor(most) - excludes_high
    return st.one_of(st.integers(first, last), fractions) if first <= last else fractions


def number_problem(constraints: Constraints) -> str:
    """Return the reason why no number is within the limits of the schema, "" if there may be one."""
    low, high = _limits(constraints)
    if low is None or high is None:
        return ""
    least = math.nextafter(low, math.inf) if _excludes(constraints, "exclusive_minimum", low) else low
    most = math.nextafter(high, -math.inf) if _excludes(constraints, "exclusive_maximum", high) else high
    return f"no number is between minimum {low:g} and maximum {high:g}" if least > most else ""


def _limits(constraints: Constraints) -> tuple[float | None, float | None]:
    least = [each.minimum for each in constraints.checks if each.minimum is not None]
    most = [each.maximum for each in constraints.checks if each.maximum is not None]
    return max(least, default=None), min(most, default=None)


def _excludes(constraints: Constraints, name: str, limit: float) -> bool:
    """Return True if a limit itself is excluded."""
    bound = name.removeprefix("exclusive_")
    return any(getattr(each, name) and getattr(each, bound) == limit for each in constraints.checks)


def anything() -> SearchStrategy[Any]:
    """Return a strategy for small values of any type, as fields without a schema may have."""
    return _ANYTHING


_SCALARS: Final = st.one_of(st.integers(0, 100), st.booleans(), plain_texts())
_ANYTHING: Final = st.one_of(_SCALARS, st.lists(_SCALARS, max_size=2), st.dictionaries(names(), _SCALARS, max_size=2))
