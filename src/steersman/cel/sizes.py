"""Ranges of the sizes of values and the costs of evaluation (cel-go `checker.SizeEstimate`, `CostEstimate`).

Numbers are unsigned 64-bit. Instead of overflowing they remain at the largest one, which also means "unknown".
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple, Protocol

from steersman.cel.ast import Expr
from steersman.cel.types import Type

UNBOUNDED: Final = 2**64 - 1

STRING_FACTOR: Final = 0.1
"""The cost of processing one character of a string."""
REGEX_FACTOR: Final = 0.25
"""The cost of one character of a regular expression."""
LIST_COST: Final = 10
MAP_COST: Final = 30
STRUCT_COST: Final = 40


def added(left: int, right: int) -> int:
    """Return the sum, at most UNBOUNDED."""
    return min(left + right, UNBOUNDED)


def multiplied(left: int, right: int) -> int:
    """Return the product, at most UNBOUNDED."""
    return min(left * right, UNBOUNDED)


def scaled(value: int, factor: float) -> int:
    """Return the product, rounded up, at most UNBOUNDED."""
    product = float(value) * factor
    return UNBOUNDED if product >= 2.0**64 else math.ceil(product)


class Range(NamedTuple):
    """The range of a size or a cost, from the least to the highest value."""

    min: int
    max: int

    def plus(self, other: Range) -> Range:
        """Return the range of sums."""
        return Range(min(self.min + other.min, UNBOUNDED), min(self.max + other.max, UNBOUNDED))

    def times(self, other: Range) -> Range:
        """Return the range of products."""
        return Range(multiplied(self.min, other.min), multiplied(self.max, other.max))

    def scaled(self, factor: float) -> Range:
        """Return the range with both ends multiplied by a factor, rounded up."""
        return Range(scaled(self.min, factor), scaled(self.max, factor))

    def union(self, other: Range) -> Range:
        """Return the smallest range that contains both."""
        return Range(min(self.min, other.min), max(self.max, other.max))


UNKNOWN: Final = Range(0, UNBOUNDED)
NOTHING: Final = Range(0, 0)
ONE: Final = Range(1, 1)


def fixed(value: int) -> Range:
    """Return the range of a known size or cost."""
    return Range(value, value)


class CallEstimate(NamedTuple):
    """The estimated cost of a call without its arguments, and the size of its result if known."""

    cost: Range
    result_size: Range | None = None


class CostNode(NamedTuple):
    """An expression in a rule for the cost of a function.

    `path` leads to it from a variable, with field names, `@items`, `@keys` and `@values`; it is empty for other
    expressions. `expr` is None for a node that represents all elements of a list.
    """

    path: tuple[str, ...]
    type: Type
    expr: Expr | None
    computed_size: Range | None


class Estimator(Protocol):
    """The knowledge of the caller of the compiler about sizes and costs beyond the language's rules."""

    def size(self, path: tuple[str, ...]) -> Range | None:
        """Return the size at a path."""

    def call(self, function: str, overload: str, target: CostNode | None, args: list[CostNode]) -> CallEstimate | None:
        """Return the cost of a call, None to use the language's rules."""


def size_of(estimator: Estimator, node: CostNode) -> Range:
    """Return the size of an expression, if known."""
    if node.computed_size is not None:
        return node.computed_size
    found = estimator.size(node.path) if node.path else None
    return UNKNOWN if found is None else found
