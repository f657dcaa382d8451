"""Compiling a checked expression to functions that call each other, and the costs of calling them (cel-go
`interpreter`).

Each node becomes a function of the `Frame` of one evaluation. Errors are raised, and only caught by the operators that
may not need the failed operand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from steersman.cel import accesses, calls, construction, control
from steersman.cel.ast import (
    Call,
    Comprehension,
    CreateList,
    CreateMap,
    CreateStruct,
    Expr,
    Ident,
    Literal,
    Operator,
    Select,
)
from steersman.cel.environment import Environment
from steersman.cel.nesting import allows_nesting
from steersman.cel.runtime_cost import CallCosts
from steersman.cel.steps import Constant, Frame, ProgramError, Step
from steersman.cel.values import CostLimitExceeded, EvaluationError
from steersman.cel.work import HERE
from steersman.work.offloading import expect_offloading


class Program:
    """An expression that is ready to be evaluated any number of times."""

    @allows_nesting
    def __init__(self, tree: Expr, environment: Environment, costs: CallCosts) -> None:
        """Raises ProgramError."""
        self._step: Final = _Planner(environment, costs).plan(tree)

    @allows_nesting
    def evaluate(self, variables: Mapping[str, Any], limit: int) -> tuple[Any, int]:
        """Return the value and its cost.

        Raises EvaluationError, and CostLimitExceeded if the cost is above `limit`.
        """
        expect_offloading()
        frame = Frame(dict(variables), limit)
        return self._run(frame), frame.cost

    def outcome(
        self, variables: Mapping[str, Any], limit: int, begin: Callable[[Frame], None] | None = None
    ) -> tuple[Any, int]:
        """Return the value, or instead of it the EvaluationError or CostLimitExceeded, and the cost in any case.

        `begin` is called with the frame of the evaluation, whose limit it may change during the evaluation.
        """
        expect_offloading()
        try:
            return self._outcome(variables, limit, begin)
        except RecursionError:
            if HERE.worker is not None:  # the evaluation that contains this one has no more stack either
                raise
            return EvaluationError("evaluation nests too deeply"), limit

    @allows_nesting
    def _outcome(
        self, variables: Mapping[str, Any], limit: int, begin: Callable[[Frame], None] | None
    ) -> tuple[Any, int]:
        frame = Frame(dict(variables), limit)
        if begin is not None:
            begin(frame)
        try:
            return self._run(frame), frame.cost
        except (EvaluationError, CostLimitExceeded) as error:
            return error, frame.cost

    def _run(self, frame: Frame) -> Any:
        outer, HERE.worker = HERE.worker, frame  # like `counted_by`, which would take a microsecond
        try:
            return self._step(frame)
        finally:
            HERE.worker = outer


class _Planner:
    """Creates the step of each node of an expression."""

    def __init__(self, environment: Environment, costs: CallCosts) -> None:
        self._environment: Final = environment
        self._costs: Final = costs

    def plan(self, node: Expr) -> Step:
        """Return the step of a node. Raises ProgramError."""
        match node:
            case Literal():
                return Constant(node.value)
            case Ident():
                return accesses.of_variable(node)
            case Select():
                return accesses.of_field(self.plan, node)
            case Call():
                return self._call(node)
            case CreateList():
                return construction.new_list(self.plan, node)
            case CreateMap():
                return construction.new_map(self.plan, node)
            case Comprehension():
                return (control.binding_of if node.is_bind else control.loop_of)(self.plan, node)
            case CreateStruct():
                return construction.new_object(self.plan, self._environment, node)
        raise ProgramError("unknown expression")

    def _call(self, node: Call) -> Step:
        match node.function:
            case Operator.AND:
                return control.logic_of(self.plan, node, absorbing=False)
            case Operator.OR:
                return control.logic_of(self.plan, node, absorbing=True)
            case Operator.CONDITIONAL:
                return control.conditional_of(self.plan, node)
            case Operator.NOT_STRICTLY_FALSE:
                return control.not_strictly_false_of(self.plan, node)
            case Operator.INDEX | Operator.OPTIONAL_INDEX:
                return accesses.of_item(self.plan, node, optional=node.function == Operator.OPTIONAL_INDEX)
            case Operator.OPTIONAL_SELECT:
                return accesses.of_optional_field(self.plan, node)
        if node.overloads in (("optional_or_optional",), ("optional_orValue_value",)):
            return control.alternative_of(self.plan, node)
        if control.is_append(node):
            return control.appending_of(self.plan, node)
        return calls.call_of(self.plan, self._environment, self._costs, node)
