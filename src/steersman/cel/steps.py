"""Steps of a planned expression: functions of the frame of one evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from steersman.cel.ast import Expr
from steersman.cel.values import CostLimitExceeded, EvaluationError


class Frame:
    """One evaluation: what variables stand for and what it has cost."""

    __slots__ = ("_free", "cost", "limit", "variables")

    def __init__(self, variables: dict[str, Any], limit: int) -> None:
        self.variables = variables
        self.limit = limit
        self.cost = 0
        self._free = limit // _PER_FREE_STEP

    def charge(self, cost: int) -> None:
        """Adds to the cost. Raises CostLimitExceeded."""
        self.cost += cost
        if self.cost > self.limit:
            raise CostLimitExceeded

    def afford(self, cost: int) -> None:
        """Raises CostLimitExceeded if so much would be too much, and charges it then."""
        if self.cost + cost > self.limit:
            self.charge(cost)

    def work(self, steps: int) -> None:
        """Charges for steps that the cost of no call tells, beyond those that are free. Raises CostLimitExceeded."""
        self._free -= steps
        if self._free < 0:
            cost, self._free = -(self._free // _STEPS_OF_A_UNIT), 0
            self.charge(cost)


_PER_FREE_STEP: Final = 1_000
"""Units of the limit of an evaluation that bring one free step: upstream's cost does not count steps either."""
_STEPS_OF_A_UNIT: Final = 4
"""Steps that one unit of cost pays for beyond the free ones: about a microsecond, as other units."""

Step = Callable[[Frame], Any]
"""Computes the value of a node. Raises EvaluationError, CostLimitExceeded."""
Plan = Callable[[Expr], Step]
"""Makes the step of a node. Raises ProgramError."""


class ProgramError(ValueError):
    """A part that is constant has no value: the expression can never be evaluated."""


class Constant:
    """A step that is known beforehand."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value: Final = value

    def __call__(self, frame: Frame) -> Any:
        return self.value


class Lazy:
    """The value of a bound name, made once, when it is first asked for, of what names stood for where it was bound."""

    __slots__ = ("_step", "_value", "_variables")

    def __init__(self, step: Step, variables: dict[str, Any]) -> None:
        self._step: Step | None = step
        self._variables = dict(variables)
        self._value: Any = None

    def get(self, frame: Frame) -> Any:
        """The value. Raises EvaluationError."""
        if self._step is not None:
            within, frame.variables = frame.variables, self._variables
            try:
                self._value = attempt(self._step, frame)
            finally:
                frame.variables = within
            self._step, self._variables = None, {}
        if type(self._value) is EvaluationError:
            raise self._value.with_traceback(None)
        return self._value


def attempt(step: Step, frame: Frame) -> Any:
    """The value of a step, or the error it raises."""
    try:
        return step(frame)
    except EvaluationError as error:
        return error
