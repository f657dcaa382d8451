"""Steps that control whether, how often and with which names others run: logical operators, loops and bindings."""

from __future__ import annotations

from typing import Any

from steersman.cel.access import iterate
from steersman.cel.accesses import is_access
from steersman.cel.ast import ACCUMULATOR, Call, Comprehension, CreateList, Ident, Operator
from steersman.cel.sizes import LIST_COST
from steersman.cel.steps import Constant, Frame, Lazy, Plan, Step, attempt
from steersman.cel.values import EvaluationError, Map, Optional
from steersman.work.threads import give_way


def logic_of(plan: Plan, node: Call, *, absorbing: bool) -> Step:
    """Return the step of `&&` (`absorbing` False) or `||` (`absorbing` True).

    If either argument has the absorbing value, that is the result, even if the other argument fails.
    """
    left, right = plan(node.args[0]), plan(node.args[1])

    def logic(frame: Frame) -> bool:
        failure: EvaluationError | None = None
        value: Any = None
        try:
            value = left(frame)
        except EvaluationError as error:
            failure = error
        else:
            if value is absorbing:
                return bool(absorbing)
            if value is not (not absorbing):
                failure = EvaluationError("no such overload")
        value = right(frame) if failure is None else attempt(right, frame)
        if value is absorbing:
            return bool(absorbing)
        if failure is not None:
            raise failure.with_traceback(None)
        if value is not (not absorbing):
            raise EvaluationError("no such overload")
        return not absorbing

    return logic


def conditional_of(plan: Plan, node: Call) -> Step:
    """Return the step of `condition ? one : other`, which evaluates only the chosen operand."""
    condition, one, other = (plan(arg) for arg in node.args)
    discount_one, discount_other = (1 if is_access(arg) else 0 for arg in node.args[1:])

    def conditional(frame: Frame) -> Any:
        value = condition(frame)
        if value is True:
            result = one(frame)
            frame.cost -= discount_one
            return result
        if value is False:
            result = other(frame)
            frame.cost -= discount_other
            return result
        raise EvaluationError("no such overload")

    return conditional


def not_strictly_false_of(plan: Plan, node: Call) -> Step:
    """Return the step of `@not_strictly_false`: False if the argument is False; True for other values and errors."""
    argument = plan(node.args[0])

    def not_strictly_false(frame: Frame) -> bool:
        try:
            value = argument(frame)
        except EvaluationError:
            value = True
        frame.charge(1)
        return value is not False

    return not_strictly_false


def alternative_of(plan: Plan, node: Call) -> Step:
    """Return the step of `optional.or(other)` or `optional.orValue(other)`, which evaluates `other` only if the
    optional is empty.
    """
    assert node.target is not None
    one, other = plan(node.target), plan(node.args[0])
    unwrap = node.function == "orValue"

    def alternative(frame: Frame) -> Any:
        value = one(frame)
        if not isinstance(value, Optional):
            raise EvaluationError("no such overload")
        if not value.has_value:
            return other(frame)
        return value.value if unwrap else value

    return alternative


def loop_of(plan: Plan, node: Comprehension) -> Step:
    """Return the step of a comprehension, which lets other users' work run between iterations.

    Its variables hide outer ones of the same names and are restored at the end.
    """
    over, init = plan(node.range), plan(node.init)
    condition, turn, result = plan(node.condition), plan(node.step), plan(node.result)
    first, second, accumulator = node.variable, node.second_variable, node.accumulator

    def loop(frame: Frame) -> Any:
        container = over(frame)
        variables = frame.variables
        outer = {name: variables[name] for name in (first, second, accumulator) if name in variables}
        start = init(frame)
        # Collected values are appended in place.
        if isinstance(start, list):
            start = [*start]
        elif isinstance(start, Map):
            start = Map(start.items())
        variables[accumulator] = start
        try:
            for one, other in iterate(container, two=bool(second)):
                give_way()
                variables[first], variables[second] = one, other
                if condition(frame) is False:
                    break
                variables[accumulator] = attempt(turn, frame)
            _restore(variables, outer, (first, second))
            return result(frame)
        finally:
            _restore(variables, outer, (first, second, accumulator))

    return loop


def binding_of(plan: Plan, node: Comprehension) -> Step:
    """Return the step of `cel.bind`, whose variable is evaluated when it is first read."""
    init, result, name = plan(node.init), plan(node.result), node.accumulator

    def bind(frame: Frame) -> Any:
        variables = frame.variables
        known = name in variables
        outer = variables.get(name)
        variables[name] = Lazy(init, variables)
        try:
            return result(frame)
        finally:
            if known:
                variables[name] = outer
            else:
                del variables[name]

    return bind


def appending_of(plan: Plan, node: Call) -> Step:
    """Return a step that appends an element to a loop's list, in place because nothing else can see the list."""
    elements = node.args[1]
    assert isinstance(elements, CreateList)
    element = plan(elements.elements[0])
    constant = isinstance(element, Constant)
    gathered = plan(node.args[0])

    def append(frame: Frame) -> Any:
        values = gathered(frame)
        values.append(element(frame))
        frame.charge(1 if constant else LIST_COST + 1)
        return values

    return append


def is_append(node: Call) -> bool:
    """Return True for a call of the form `accumulator + [element]`, as `map` and `filter` expand to."""
    return (
        node.function == Operator.ADD
        and isinstance(node.args[0], Ident)
        and node.args[0].name == ACCUMULATOR
        and isinstance(node.args[1], CreateList)
        and len(node.args[1].elements) == 1
        and not node.args[1].optional
    )


def _restore(variables: dict[str, Any], outer: dict[str, Any], names: tuple[str, ...]) -> None:
    """Restore the values that names had before a loop used them."""
    for name in names:
        if name in outer:
            variables[name] = outer[name]
        else:
            variables.pop(name, None)
