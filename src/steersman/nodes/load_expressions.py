"""CEL expressions of simulated load, such as `curves.day * (1.0 + 0.1 * noise) / replicas`.

Slow to import, as the expression compiler is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from math import isfinite
from typing import Any, Final

from steersman.cel import types
from steersman.cel.environment import Environment
from steersman.cel.errors import CompileError
from steersman.cel.evaluator import Program
from steersman.cel.expression import compile_expression
from steersman.cel.library.kubernetes import base_environment
from steersman.cel.library.kubernetes_costs import kubernetes_costs
from steersman.cel.library.quantities import QuantityValue
from steersman.cel.moments import timestamp
from steersman.cel.steps import ProgramError
from steersman.cel.values import CostLimitExceeded, EvaluationError, LazyMap
from steersman.machinery.values.quantity import QuantityError, parse
from steersman.work.bounded_cache import BoundedCache

LONGEST: Final = 1024
"""Characters of an expression."""
_MOST_COST: Final = 1000
"""Cost of one evaluation: less than a millisecond."""
_MOST_PROGRAMS: Final = 4096
_VARIABLES: Final = {
    "age": types.DOUBLE,
    "container": types.STRING,
    "curves": types.map_of(types.STRING, types.DOUBLE),
    "noise": types.DOUBLE,
    "now": types.TIMESTAMP,
    "object": types.DYN,
    "replicas": types.DOUBLE,
    "request": types.DOUBLE,
}
_NUMBERS: Final = frozenset({types.DOUBLE, types.INT, types.UINT, types.STRING, types.DYN, QuantityValue.cel_type})


class ExpressionError(ValueError):
    """The expression cannot be compiled. The text says why."""


class _CurveValues(LazyMap):
    """Values of curves at a moment."""

    __slots__ = ("_at", "_names")

    def __init__(self, names: Mapping[str, object], at: Callable[[str], float]) -> None:
        self._names = names
        self._at = at

    def find(self, key: Any) -> tuple[Any, Any] | None:
        return (key, self._at(key)) if type(key) is str and key in self._names else None

    def __iter__(self) -> Iterator[Any]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class LoadExpressions:
    """Compiled expressions, within bounds."""

    def __init__(self) -> None:
        self._programs: BoundedCache[str, Program | str] = BoundedCache(_MOST_PROGRAMS)

    def check(self, text: str) -> None:
        """Raise ExpressionError for an expression that cannot be compiled."""
        program = self._program(text)
        if isinstance(program, str):
            raise ExpressionError(program)

    def value(
        self,
        text: str,
        curves: Mapping[str, object],
        curve_at: Callable[[str], float],
        variables: Mapping[str, Any],
        moment: float,
    ) -> float | None:
        """Return the value of an expression; None if it has none, or no number."""
        program = self._program(text)
        if isinstance(program, str):
            return None
        now = timestamp(int(moment * 1000) * 1_000_000)
        known = {**variables, "curves": _CurveValues(curves, curve_at), "now": now}
        try:
            return _number(program.evaluate(known, _MOST_COST)[0])
        except (EvaluationError, CostLimitExceeded):
            return None

    def _program(self, text: str) -> Program | str:
        """Return the program of an expression, or its error."""
        if len(text) > LONGEST:
            return f"an expression has at most {LONGEST} characters"
        found = self._programs[text]
        if found is None:
            found = _compiled(text)
            self._programs.keep(text, found)
        return found


@cache
def _environment() -> Environment:
    return base_environment().extended(_VARIABLES)


def _compiled(text: str) -> Program | str:
    try:
        expression = compile_expression(text, _environment())
        if expression.type not in _NUMBERS:
            return f"{text}: must evaluate to a number or a quantity but got {expression.type.text()}"
        return expression.program(kubernetes_costs)
    except (CompileError, ProgramError) as error:
        return str(error)


def _number(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = parse(value).as_float()
        except QuantityError:
            return None
    elif isinstance(value, QuantityValue):
        value = value.amount.as_float()
    return float(value) if isinstance(value, int | float) and isfinite(value) else None
