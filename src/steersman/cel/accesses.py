"""Steps that read variables, fields and items, and the cost of each access."""

from __future__ import annotations

from typing import Any, Final

from steersman.cel.access import find_field, find_item
from steersman.cel.ast import Call, Expr, Ident, Literal, Operator, Select
from steersman.cel.steps import Constant, Frame, Lazy, Plan, ProgramError, Step
from steersman.cel.types import Kind, Type
from steersman.cel.values import (
    NONE,
    CostLimitExceeded,
    Duration,
    EvaluationError,
    Map,
    Optional,
    Record,
    Timestamp,
    print_value,
)

_NO_INDEX: Final = {
    type(None): "types.Null",
    bytes: "types.Bytes",
    list: "*types.baseList",
    Map: "*types.baseMap",
    Type: "*types.Type",
    Duration: "types.Duration",
    Timestamp: "types.Timestamp",
}
"""Go's names of types that a constant index cannot have."""


def of_variable(node: Ident) -> Step:
    """Return the step that reads a variable, or the constant if the identifier names a constant or a type.

    Raises ProgramError for the name of a type that has no value.
    """
    if node.constant is not None:
        if node.constant.kind is Kind.STRUCT or node.constant.name != node.name:
            # As upstream, the checker knows names of types that have no value.
            raise ProgramError(f"reference to undefined type: {node.name}")
        return Constant(node.constant)
    name = node.name

    def variable(frame: Frame) -> Any:
        try:
            value = frame.variables[name]
        except KeyError:
            raise EvaluationError(f"no such attribute(s): {name}") from None
        frame.cost += 1  # like `charge`, whose call would take longer than the rest
        if frame.cost > frame.limit:
            raise CostLimitExceeded
        kind = type(value)
        if kind is EvaluationError:
            # Without this, an error that is kept over many iterations of a loop would collect the traceback of each.
            raise value.with_traceback(None)
        if kind is Lazy:
            return value.get(frame)
        return value

    return variable


def of_field(plan: Plan, node: Select) -> Step:
    """Return the step of `operand.field`, or of `has(operand.field)`, which tests if the field is there."""
    if node.resolved is not None:
        return of_variable(node.resolved)
    operand, field = plan(node.operand), node.field
    surcharge = 0 if _is_attribute(node.operand) else 1
    is_typed = node.operand.type.kind is Kind.STRUCT
    if node.test_only:

        def has(frame: Frame) -> bool:
            container = operand(frame)
            frame.charge(surcharge)
            if is_typed and isinstance(container, Record):
                return container.has(field)
            if isinstance(container, Optional):
                return bool(container.has_value) and find_field(container.value, field) is not None
            return find_field(container, field) is not None

        return has

    def select(frame: Frame) -> Any:
        container = operand(frame)
        if surcharge:
            frame.charge(surcharge)
        if isinstance(container, Optional):
            return _optional_field(frame, container, field)
        frame.cost += 1
        if frame.cost > frame.limit:
            raise CostLimitExceeded
        if is_typed and isinstance(container, Record):
            return container.get(field)
        found = find_field(container, field)
        if found is None:
            if isinstance(container, list | tuple):
                raise EvaluationError("unsupported index type 'string' in list")
            raise EvaluationError(f"no such key: {field}")
        return found[1]

    return select


def of_item(plan: Plan, node: Call, *, optional: bool) -> Step:
    """Return the step of `operand[index]`, or with `optional` of `operand[?index]`, which gives an optional value.

    Raises ProgramError for a constant index whose type no container has.
    """
    operand, index = plan(node.args[0]), plan(node.args[1])
    if isinstance(index, Constant) and (wrong := _NO_INDEX.get(type(index.value))):
        raise ProgramError(f"invalid qualifier type: {wrong}")
    surcharge = (0 if _is_attribute(node.args[0]) else 1) - (1 if is_access(node.args[1]) else 0)

    def get(frame: Frame) -> Any:
        container = operand(frame)
        key = index(frame)
        frame.charge(surcharge)
        if optional or isinstance(container, Optional):
            if isinstance(container, Optional):
                if not container.has_value:
                    return NONE
                container = container.value
            item = find_item(container, key)
            if item is None:
                return NONE
            frame.charge(1)
            return Optional(item[1])
        frame.charge(1)
        item = find_item(container, key)
        if item is None:
            if wrong := _NO_INDEX.get(type(key)):
                raise EvaluationError(f"invalid qualifier type: {wrong}")
            kind = "index out of bounds" if isinstance(container, list | tuple) else "no such key"
            raise EvaluationError(f"{kind}: {print_value(key)}")
        return item[1]

    return get


def of_optional_field(plan: Plan, node: Call) -> Step:
    """Return the step of `operand.?field`, which gives an optional value."""
    operand, field = plan(node.args[0]), node.args[1]
    assert isinstance(field, Literal)
    name = field.value
    surcharge = 0 if _is_attribute(node.args[0]) else 1

    def select(frame: Frame) -> Any:
        container = operand(frame)
        frame.charge(surcharge)
        wrapped = container if isinstance(container, Optional) else Optional(container)
        return _optional_field(frame, wrapped, name)

    return select


def _is_attribute(node: Expr) -> bool:
    """Return True if a selection from `node` is part of the same access, which costs one unit in all."""
    return isinstance(node, Ident | Select) or (
        isinstance(node, Call)
        and node.function in (Operator.INDEX, Operator.OPTIONAL_INDEX, Operator.OPTIONAL_SELECT, Operator.CONDITIONAL)
    )


def is_access(node: Expr) -> bool:
    """Return True for a variable or a selection, which cost one unit less as a branch or an index."""
    if isinstance(node, Ident):
        return node.constant is None
    if isinstance(node, Select):
        return not node.test_only
    return isinstance(node, Call) and node.function in (
        Operator.INDEX,
        Operator.OPTIONAL_INDEX,
        Operator.OPTIONAL_SELECT,
    )


def _optional_field(frame: Frame, container: Optional, field: str) -> Optional:
    found = find_field(container.value, field) if container.has_value else None
    if found is None:
        return NONE
    frame.charge(1)
    return Optional(found[1])
