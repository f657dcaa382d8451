"""Steps that call functions after evaluating all arguments, and the cost of a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from steersman.cel.access import dispatch
from steersman.cel.ast import Call, Operator
from steersman.cel.environment import Environment
from steersman.cel.regular import PatternError, check_pattern
from steersman.cel.runtime_cost import CallCosts, call_cost
from steersman.cel.steps import Constant, Frame, Plan, ProgramError, Step
from steersman.cel.values import EvaluationError

_CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
_PATTERN_FUNCTIONS: Final = frozenset({"matches", "find", "findAll"})


def call_of(plan: Plan, environment: Environment, costs: CallCosts, node: Call) -> Step:
    """Return the step of a function call: evaluates the arguments, charges the call's cost and calls the overload.

    A conversion of a constant is already evaluated here. Raises ProgramError if it fails, or if a constant pattern is
    invalid.
    """
    args = [plan(arg) for arg in node.args]
    nodes = node.args
    if node.target is not None:
        args.insert(0, plan(node.target))
        nodes = [node.target, *nodes]
    chosen = [environment.overloads[id] for id in node.overloads]
    call = dispatch(node.function, chosen, nodes)
    overload = chosen[0] if len(chosen) == 1 else None
    cost = call_cost(costs, node.function, overload)
    if node.function in _CONVERSIONS and len(args) == 1 and isinstance(args[0], Constant):
        try:
            return Constant(call(args[0].value))
        except EvaluationError as error:
            raise ProgramError(str(error)) from None
    if node.function in _PATTERN_FUNCTIONS and len(args) > 1:
        _check_pattern(args[1])
    if node.function == Operator.IN and isinstance(args[1], Constant) and isinstance(args[1].value, list):
        return _membership(args[0], args[1].value, call)
    if len(args) == 1:
        (only,) = args

        def unary(frame: Frame) -> Any:
            try:
                value = only(frame)
            except EvaluationError as error:
                frame.charge(cost([error], error))
                raise
            try:
                result = call(value)
            except EvaluationError as error:
                frame.charge(cost([value], error))
                raise
            frame.charge(cost([value], result))
            return result

        return unary

    def function(frame: Frame) -> Any:
        # All arguments are evaluated and the call is charged even if one of them fails.
        values = []
        failure: EvaluationError | None = None
        for arg in args:
            try:
                values.append(arg(frame))
            except EvaluationError as error:
                values.append(error)
                failure = failure or error
        if failure is None:
            try:
                result = call(*values)
            except EvaluationError as error:
                frame.charge(cost(values, error))
                raise
            frame.charge(cost(values, result))
            return result
        frame.charge(cost(values, failure))
        raise failure.with_traceback(None)

    return function


def _check_pattern(step: Step) -> None:
    if isinstance(step, Constant) and isinstance(step.value, str):
        try:
            check_pattern(step.value)
        except PatternError as error:
            raise ProgramError(str(error)) from None


def _membership(argument: Step, values: list[Any], call: Callable[..., Any]) -> Step:
    """Return a step that searches constants for its argument; it costs nothing beyond the argument."""
    if not values:
        return Constant(False)
    if all(type(value) is str for value in values):
        strings = frozenset(values)

        def is_string_in(frame: Frame) -> bool:
            value = argument(frame)
            return type(value) is str and value in strings

        return is_string_in
    return lambda frame: call(argument(frame), values)
