"""How large values may be and what evaluating may cost, as ranges (cel-go `checker.SizeEstimate`, `CostEstimate`).

Numbers are unsigned 64-bit and stay at the largest one instead of overflowing, which also stands for "unknown".
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple, Protocol

from steersman.cel.ast import Expr
from steersman.cel.types import Type

UNBOUNDED: Final = 2**64 - 1

STRING_FACTOR: Final = 0.1
"""Cost of passing over one character of a string."""
REGEX_FACTOR: Final = 0.25
"""Cost of one character of a regular expression."""
LIST_COST: Final = 10
MAP_COST: Final = 30
STRUCT_COST: Final = 40


def added(left: int, right: int) -> int:
    """The sum, at most UNBOUNDED."""
    return min(left + right, UNBOUNDED)


def multiplied(left: int, right: int) -> int:
    """The product, at most UNBOUNDED."""
    return min(left * right, UNBOUNDED)


def scaled(value: int, factor: float) -> int:
    """The product rounded up, at most UNBOUNDED."""
    product = float(value) * factor
    return UNBOUNDED if product >= 2.0**64 else math.ceil(product)


class Range(NamedTuple):
    """From the least to the most: of a size or a cost."""

    min: int
    max: int

    def plus(self, other: Range) -> Range:
        """The range of sums."""
        return Range(min(self.min + other.min, UNBOUNDED), min(self.max + other.max, UNBOUNDED))

    def times(self, other: Range) -> Range:
        """The range of products."""
        return Range(multiplied(self.min, other.min), multiplied(self.max, other.max))

    def scaled(self, factor: float) -> Range:
        """Both ends times a factor, rounded up."""
        return Range(scaled(self.min, factor), scaled(self.max, factor))

    def union(self, other: Range) -> Range:
        """The range that has both in it."""
        return Range(min(self.min, other.min), max(self.max, other.max))


UNKNOWN: Final = Range(0, UNBOUNDED)
NOTHING: Final = Range(0, 0)
ONE: Final = Range(1, 1)


def fixed(value: int) -> Range:
    """A size or cost that is known."""
    return Range(value, value)


class CallEstimate(NamedTuple):
    """What a call may cost without its arguments, and how large the result may be if that is known."""

    cost: Range
    result_size: Range | None = None


class CostNode(NamedTuple):
    """An expression as the rules of a function's cost see it.

    `path` leads to it from a variable: field names, `@items`, `@keys`, `@values`; empty if it comes from none. `expr`
    is None for what stands for all elements of a list.
    """

    path: tuple[str, ...]
    type: Type
    expr: Expr | None
    computed_size: Range | None


class Estimator(Protocol):
    """What the one who compiles an expression knows of sizes and costs beyond the language."""

    def size(self, path: tuple[str, ...]) -> Range | None:
        """The size of what a path leads to."""

    def call(self, function: str, overload: str, target: CostNode | None, args: list[CostNode]) -> CallEstimate | None:
        """The cost of a call; None leaves it to the language's rules."""


def size_of(estimator: Estimator, node: CostNode) -> Range:
    """The size of an expression, as far as it is known."""
    if node.computed_size is not None:
        return node.computed_size
    found = estimator.size(node.path) if node.path else None
    return UNKNOWN if found is None else found
