"""Steps of a compiled expression, which are functions of the frame of one evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from steersman.cel.ast import Expr
from steersman.cel.values import CostLimitExceeded, EvaluationError


class Frame:
    """One evaluation: the values of variables and the cost so far."""

    __slots__ = ("_free", "cost", "limit", "variables")

    def __init__(self, variables: dict[str, Any], limit: int) -> None:
        self.variables = variables
        self.limit = limit
        self.cost = 0
        self._free = limit // _PER_FREE_STEP

    def charge(self, cost: int) -> None:
        """Add to the cost. Raises CostLimitExceeded."""
        self.cost += cost
        if self.cost > self.limit:
            raise CostLimitExceeded

    def afford(self, cost: int) -> None:
        """Check that a cost can still be charged. Raises CostLimitExceeded, after charging it, if not."""
        if self.cost + cost > self.limit:
            self.charge(cost)

    def work(self, steps: int) -> None:
        """Charge for steps that are not covered by the cost of a call, beyond the free ones. Raises CostLimitExceeded."""
        self._free -= steps
        if self._free < 0:
            cost, self._free = -(self._free // _STEPS_OF_A_UNIT), 0
            self.charge(cost)


_PER_FREE_STEP: Final = 1_000
"""The part of the limit per free step. Steps are free at first because upstream's costs do not include them."""
_STEPS_OF_A_UNIT: Final = 4
"""The steps per unit of cost beyond the free ones: about a microsecond, like other units."""

Step = Callable[[Frame], Any]
"""Computes the value of a node. Raises EvaluationError and CostLimitExceeded."""
Plan = Callable[[Expr], Step]
"""Returns the step of a node. Raises ProgramError."""


class ProgramError(ValueError):
    """A constant part has no value, so the expression can never be evaluated."""


class Constant:
    """A step with a constant value."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value: Final = value

    def __call__(self, frame: Frame) -> Any:
        return self.value


class Lazy:
    """The value of a bound name. It is computed once, when first needed, with the variables of the place where it was
    bound.
    """

    __slots__ = ("_step", "_value", "_variables")

    def __init__(self, step: Step, variables: dict[str, Any]) -> None:
        self._step: Step | None = step
        self._variables = dict(variables)
        self._value: Any = None

    def get(self, frame: Frame) -> Any:
        """Return the value. Raises EvaluationError."""
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
    """Return the value of a step, or the error that it raises."""
    try:
        return step(frame)
    except EvaluationError as error:
        return error
