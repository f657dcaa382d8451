"""Expressions of CEL over objects, with kwok's functions (kwok `pkg/utils/cel`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from random import Random
from typing import Any, Final

from steersman.cel.ast import Operator
from steersman.cel.environment import Environment, Library, Overload
from steersman.cel.errors import CompileError
from steersman.cel.evaluator import Program
from steersman.cel.expression import compile_expression
from steersman.cel.library.kubernetes import base_environment
from steersman.cel.library.kubernetes_costs import kubernetes_costs
from steersman.cel.library.quantities import QUANTITY, QuantityValue, read_quantity
from steersman.cel.moments import SECOND, read_timestamp
from steersman.cel.steps import ProgramError
from steersman.cel.types import BOOL, DOUBLE, DYN, INT, STRING, TIMESTAMP, UINT, Type
from steersman.cel.values import CostLimitExceeded, Duration, EvaluationError, Timestamp
from steersman.machinery.values import times
from steersman.machinery.values.durations import DurationError, parse_duration
from steersman.machinery.values.quantity import Quantity
from steersman.nodes.stages.declaration import StageError
from steersman.nodes.stages.typed_values import typed

MOST_SOURCE: Final = 1 << 14
"""Characters of an expression."""
_MOST_COST: Final = 100_000
"""Cost of one evaluation, about a tenth of a second."""
_NANO: Final = -9
_MILLI: Final = -3


class Failed(ValueError):
    """An expression has no value, or none of the wanted type. The text says why."""


class Conditions:
    """Compiler of expressions over the variables of one purpose, such as `self`.

    `functions` are further functions. `random` is the source of `Rand()`. `most_cost` is the cost of one evaluation.
    """

    def __init__(
        self,
        random: Random,
        *variables: str,
        functions: Mapping[str, tuple[Overload, ...]] = {},
        most_cost: int = _MOST_COST,
    ) -> None:
        self._random = random
        self._most_cost = most_cost
        self._variables = variables
        self._functions = functions
        self._environment: Environment | None = None

    def compile(self, source: str) -> Condition:
        """Compile an expression. Raises StageError."""
        if len(source) > MOST_SOURCE:
            raise StageError(f"an expression of more than {MOST_SOURCE} characters")
        if self._environment is None:
            own = Library(functions={**_functions(self._random), **self._functions})
            self._environment = base_environment().extended(dict.fromkeys(self._variables, DYN), (own,))
        try:
            program = compile_expression(source, self._environment).program(kubernetes_costs)
        except (CompileError, ProgramError) as error:
            raise StageError(f"failed to compile expression: {error}") from None
        return Condition(program, self._most_cost)


class Condition:
    """Compiled expression."""

    def __init__(self, program: Program, most_cost: int) -> None:
        self._program = program
        self._most_cost = most_cost

    def _value(self, variables: Mapping[str, Any]) -> Any:
        try:
            return self._program.evaluate(variables, self._most_cost)[0]
        except (EvaluationError, CostLimitExceeded, RecursionError) as error:
            raise Failed(str(error)) from None

    def truth(self, variables: Mapping[str, Any]) -> bool:
        """Return the value of a condition. Raises Failed."""
        value = self._value(variables)
        if not isinstance(value, bool):
            raise Failed("the expression is no condition")
        return value

    def seconds(self, variables: Mapping[str, Any]) -> float:
        """Return the seconds of a duration, of its text, or of a number of nanoseconds. Raises Failed."""
        value = self._value(variables)
        if isinstance(value, str):
            try:
                return parse_duration(value) / SECOND
            except DurationError as error:
                raise Failed(str(error)) from None
        if isinstance(value, Duration):
            return value.nanos / SECOND
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value / SECOND
        raise Failed("the expression is no duration")

    def whole(self, variables: Mapping[str, Any]) -> int:
        """Return a whole number. Raises Failed."""
        return int(self.number(variables))

    def number(self, variables: Mapping[str, Any]) -> float:
        """Return a number, the amount of a quantity, or 1 or 0 for a boolean. Raises Failed."""
        value = self._value(variables)
        if isinstance(value, Duration):
            return value.nanos
        if isinstance(value, QuantityValue):
            try:
                value = value.amount.as_float()
            except ValueError:  # thousands of digits
                raise Failed("the quantity is too large") from None
        if isinstance(value, int | float) and isfinite(value):
            return value
        raise Failed("the expression is no number")

    def text(self, variables: Mapping[str, Any]) -> str:
        """Return a text. Raises Failed."""
        value = self._value(variables)
        if not isinstance(value, str):
            raise Failed("the expression is no text")
        return value


def both(name: str, args: tuple[Type, ...], result: Type, call: Callable[..., Any]) -> tuple[Overload, ...]:
    """Return a function that is also a method of its first argument."""
    return (
        Overload(f"kwok_{name}", args, result, call),
        Overload(f"kwok_method_{name}", args, result, call, member=True),
    )


def _functions(random: Random) -> dict[str, tuple[Overload, ...]]:
    return {
        "Now": (Overload("kwok_now", (), TIMESTAMP, lambda: Timestamp(int(times.unix_now() * SECOND))),),
        "Rand": (Overload("kwok_rand", (), DOUBLE, random.random),),
        "SinceSecond": both("since_second", (DYN,), DOUBLE, _since_second),
        "UnixSecond": both("unix_second", (TIMESTAMP,), DOUBLE, lambda moment: moment.nanos / SECOND),
        "Quantity": both("quantity", (STRING,), QUANTITY, read_quantity),
        **_ARITHMETIC,
    }


def _since_second(value: Any) -> float:
    """Return the seconds since the creation of an object."""
    found = typed(value).find("metadata")
    created = None if found is None else typed(found[1]).find("creationTimestamp")
    moment = None if created is None else created[1]
    if isinstance(moment, str):
        moment = read_timestamp(moment)
    if not isinstance(moment, Timestamp):
        raise EvaluationError("no such key: creationTimestamp")
    return times.unix_now() - moment.nanos / SECOND


def _times(value: QuantityValue, factor: float) -> QuantityValue:
    if isinstance(factor, int):
        return QuantityValue(value.amount * factor)
    return QuantityValue(Quantity(_whole(lambda: value.amount.nanos() * factor), _NANO))


def _over(value: QuantityValue, divisor: float) -> QuantityValue:
    if not divisor:
        raise EvaluationError("division by zero")
    if not isfinite(divisor):
        raise EvaluationError("no such overload")
    return QuantityValue(Quantity(_whole(lambda: value.amount.nanos() / divisor / 10**6), _MILLI))


def _whole(number: Callable[[], float]) -> int:
    """Return the whole part of a calculated number. Raises EvaluationError for one beyond all floats, and for none."""
    try:
        return int(number())
    except OverflowError:
        raise EvaluationError("the quantity is too large") from None
    except ValueError:
        raise EvaluationError("no such overload") from None


_TWO: Final = (QUANTITY, QUANTITY)
_ARITHMETIC: Final = {
    Operator.ADD: (Overload("kwok_add", _TWO, QUANTITY, lambda one, other: QuantityValue(one.amount + other.amount)),),
    Operator.SUBTRACT: (
        Overload("kwok_subtract", _TWO, QUANTITY, lambda one, other: QuantityValue(one.amount - other.amount)),
    ),
    Operator.NEGATE: (Overload("kwok_negate", (QUANTITY,), QUANTITY, lambda one: QuantityValue(one.amount * -1)),),
    Operator.MULTIPLY: tuple(
        Overload(f"kwok_multiply_{each.name}", (QUANTITY, each), QUANTITY, _times) for each in (INT, UINT, DOUBLE)
    ),
    Operator.DIVIDE: tuple(
        Overload(f"kwok_divide_{each.name}", (QUANTITY, each), QUANTITY, _over) for each in (INT, UINT, DOUBLE)
    ),
    Operator.LESS: (Overload("kwok_less", _TWO, BOOL, lambda one, other: one.amount < other.amount),),
    Operator.LESS_EQUALS: (Overload("kwok_less_equals", _TWO, BOOL, lambda one, other: one.amount <= other.amount),),
    Operator.GREATER: (Overload("kwok_greater", _TWO, BOOL, lambda one, other: one.amount > other.amount),),
    Operator.GREATER_EQUALS: (
        Overload("kwok_greater_equals", _TWO, BOOL, lambda one, other: one.amount >= other.amount),
    ),
}
