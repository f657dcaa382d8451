"""Further functions of lists: slices, sorting and flattening (cel-go `ext.Lists`)."""

from __future__ import annotations

from functools import cmp_to_key
from typing import Any, Final

from steersman.cel.arithmetic import compare
from steersman.cel.ast import UNUSED_VARIABLE, Call, Comprehension, CreateList, Expr, Ident, Literal, Select
from steersman.cel.environment import CallCost, Library, Overload
from steersman.cel.macros import MacroError, make_map
from steersman.cel.runtime_cost import actual_size
from steersman.cel.sizes import (
    LIST_COST,
    STRING_FACTOR,
    UNBOUNDED,
    CallEstimate,
    CostNode,
    Estimator,
    Range,
    fixed,
    size_of,
)
from steersman.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    type_param,
)
from steersman.cel.values import EvaluationError, equal, type_of_value
from steersman.cel.work import spend

_LIST: Final = list_of(type_param("T"))
_COMPARABLE: Final = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)
_SORT_INPUT: Final = "@__sortBy_input__"
_MAX_RANGE: Final = 1_000_000
"""The maximum size of a range, which is as much as the largest cost limit permits."""
_NUMBERS_OF_A_STEP: Final = 8


def _slice(values: Any, start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(values) < end:
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(values)}")
    return list(values[start:end])


def _flatten(values: Any, depth: int = 1) -> list[Any]:
    if not isinstance(values, list | tuple):
        raise EvaluationError(f"no such overload: {type_of_value(values).name}.flatten()")
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    found: list[Any] = []
    spend(len(values))
    for value in values:
        if depth and isinstance(value, list | tuple):
            found.extend(_flatten(value, depth - 1))
        else:
            found.append(value)
    return found


def _sort(values: Any) -> list[Any]:
    return _sort_by_keys(values, values)


def _sort_by_keys(values: Any, keys: Any) -> list[Any]:
    if len(values) != len(keys):
        raise EvaluationError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got "
            f"{len(values)} and {len(keys)} elements respectively"
        )
    if not values:
        return []
    kind = type(keys[0])
    compare(keys[0], keys[0])
    if any(type(key) is not kind for key in keys):
        raise EvaluationError("list elements must have the same type")
    spend(len(keys) * len(keys).bit_length())
    order = sorted(range(len(keys)), key=cmp_to_key(lambda one, other: compare(keys[one], keys[other])))
    return [values[index] for index in order]


def _range(count: int) -> list[int]:
    if count > _MAX_RANGE:
        raise EvaluationError(f"lists.range() of {count} is too large")
    spend(max(count, 0) // _NUMBERS_OF_A_STEP)
    return list(range(count))


def _distinct(values: Any) -> list[Any]:
    found: list[Any] = []
    for value in values:
        spend(len(found))
        if not any(equal(value, other) for other in found):
            found.append(value)
    return found


def _sort_by(offset: int, target: Expr | None, args: list[Expr]) -> Expr:
    if not isinstance(target, CreateList | Select | Ident | Comprehension | Call):
        raise MacroError(
            offset if target is None else target.offset,
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
        )
    keys = make_map(offset, Ident(offset, _SORT_INPUT), args)
    sort = Call(offset, "@sortByAssociatedKeys", Ident(offset, _SORT_INPUT), [keys])
    return Comprehension(
        offset,
        CreateList(offset, []),
        UNUSED_VARIABLE,
        "",
        _SORT_INPUT,
        target,
        Literal(offset, False),
        Ident(offset, _SORT_INPUT),
        sort,
    )


def _allocating(factor: float, size: Range) -> CallEstimate:
    """Return the cost of a call that creates a list of some size."""
    return CallEstimate(size.scaled(factor).plus(fixed(1 + LIST_COST)), size)


def _constant(node: CostNode, default: int) -> int:
    """Return the number in a literal argument, at least 0; `default` if the argument is not a literal."""
    if isinstance(node.expr, Literal) and type(node.expr.value) is int:
        return max(node.expr.value, 0)
    return default


def _estimate_slice(estimator: Estimator, target: CostNode | None, args: list[CostNode]) -> CallEstimate | None:
    if target is None:
        return None
    start = _constant(args[0], 0)
    end = _constant(args[1], size_of(estimator, target).max)
    # The difference overflows, as in the reference implementation.
    return _allocating(1, fixed((end - start) & UNBOUNDED))


def _estimate_range(estimator: Estimator, target: CostNode | None, args: list[CostNode]) -> CallEstimate | None:
    return _allocating(1, fixed(_constant(args[0], UNBOUNDED)))


def _estimate_reverse(estimator: Estimator, target: CostNode | None, args: list[CostNode]) -> CallEstimate | None:
    return None if target is None else _allocating(1, size_of(estimator, target))


def _estimate_flatten(estimator: Estimator, target: CostNode | None, args: list[CostNode]) -> CallEstimate | None:
    depth = _constant(args[0], UNBOUNDED) if args else 1
    return None if target is None else _allocating(float(depth), size_of(estimator, target))


def _estimate_distinct(estimator: Estimator, target: CostNode | None, args: list[CostNode]) -> CallEstimate | None:
    if target is None:
        return None
    size = size_of(estimator, target)
    return _allocating(2.0, size.times(size))


def _sort_factor(type: Type) -> float:
    return 2.0 + STRING_FACTOR if type in (STRING, BYTES) else 2.0


def _paid(factor: float, size: int) -> int:
    return int(size * factor) + 1 + LIST_COST


def _cost_of_output(args: list[Any], result: Any) -> int:
    return _paid(1, actual_size(result))


def _cost_of_flatten(args: list[Any], result: Any) -> int:
    return _paid(float(args[1]) if len(args) == 2 else 1.0, actual_size(args[0]))


def _cost_of_comparing(which: int) -> CallCost:
    def cost(args: list[Any], result: Any) -> int:
        values = args[which]
        size = actual_size(values)
        is_text = isinstance(values, list | tuple) and size and isinstance(values[0], str | bytes)
        factor = 2.0 + STRING_FACTOR if is_text else 2.0
        return _paid(factor, size * size)

    return cost


def _sort_overload(type: Type) -> Overload:
    def estimate(estimator: Estimator, target: CostNode | None, args: list[CostNode]) -> CallEstimate | None:
        if target is None:
            return None
        size = size_of(estimator, target)
        return _allocating(_sort_factor(type), size.times(size))

    listed = list_of(type)
    return Overload(
        f"list_{type.name}_sort",
        (listed,),
        listed,
        _sort,
        member=True,
        estimate=estimate,
        cost=_cost_of_comparing(0),
    )


def _sort_by_overload(type: Type) -> Overload:
    def estimate(estimator: Estimator, target: CostNode | None, args: list[CostNode]) -> CallEstimate | None:
        size = size_of(estimator, args[0])
        return _allocating(_sort_factor(type), size.times(size))

    return Overload(
        f"list_{type.name}_sortByAssociatedKeys",
        (_LIST, list_of(type)),
        _LIST,
        _sort_by_keys,
        member=True,
        estimate=estimate,
        cost=_cost_of_comparing(1),
    )


LISTS: Final = Library(
    functions={
        "slice": (
            Overload(
                "list_slice",
                (_LIST, INT, INT),
                _LIST,
                _slice,
                member=True,
                estimate=_estimate_slice,
                cost=_cost_of_output,
            ),
        ),
        "flatten": (
            Overload(
                "list_flatten",
                (list_of(_LIST),),
                _LIST,
                _flatten,
                member=True,
                estimate=_estimate_flatten,
                cost=_cost_of_flatten,
                checks_arguments=False,
            ),
            Overload(
                "list_flatten_int",
                (list_of(DYN), INT),
                list_of(DYN),
                _flatten,
                member=True,
                estimate=_estimate_flatten,
                cost=_cost_of_flatten,
                checks_arguments=False,
            ),
        ),
        "sort": tuple(map(_sort_overload, _COMPARABLE)),
        "@sortByAssociatedKeys": tuple(map(_sort_by_overload, _COMPARABLE)),
        "lists.range": (
            Overload("lists_range", (INT,), list_of(INT), _range, estimate=_estimate_range, cost=_cost_of_output),
        ),
        "reverse": (
            Overload(
                "list_reverse",
                (_LIST,),
                _LIST,
                lambda values: list(reversed(values)),
                member=True,
                estimate=_estimate_reverse,
                cost=_cost_of_output,
            ),
        ),
        "distinct": (
            Overload(
                "list_distinct",
                (_LIST,),
                _LIST,
                _distinct,
                member=True,
                estimate=_estimate_distinct,
                cost=_cost_of_comparing(0),
            ),
        ),
    },
    macros={("sortBy", 2, True): _sort_by},
)
