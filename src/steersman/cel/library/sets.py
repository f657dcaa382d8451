"""Functions of lists as sets (cel-go `ext.Sets`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from steersman.cel.environment import CallCost, EstimateCost, Library, Overload
from steersman.cel.runtime_cost import actual_size
from steersman.cel.sizes import ONE, CallEstimate, CostNode, Estimator, size_of
from steersman.cel.types import BOOL, list_of, type_param
from steersman.cel.values import equal
from steersman.cel.work import spend

_LIST: Final = list_of(type_param("T"))


def _contains(values: Any, others: Any) -> bool:
    return all(_is_in(values, other) for other in others)


def _is_in(values: Any, wanted: Any) -> bool:
    spend(len(values))
    return any(equal(value, wanted) for value in values)


def _equivalent(values: Any, others: Any) -> bool:
    return _contains(values, others) and _contains(others, values)


def _intersects(values: Any, others: Any) -> bool:
    return any(_is_in(others, value) for value in values)


def _estimate(factor: float) -> EstimateCost:
    def estimate(estimator: Estimator, target: CostNode | None, args: list[CostNode]) -> CallEstimate | None:
        pairs = size_of(estimator, args[0]).times(size_of(estimator, args[1]))
        return CallEstimate(pairs.scaled(factor).plus(ONE))

    return estimate


def _cost(factor: float) -> CallCost:
    return lambda args, result: 1 + int(actual_size(args[0]) * actual_size(args[1]) * factor)


def _overload(id: str, call: Callable[[Any, Any], bool], factor: float) -> tuple[Overload, ...]:
    return (Overload(id, (_LIST, _LIST), BOOL, call, estimate=_estimate(factor), cost=_cost(factor)),)


SETS: Final = Library(
    functions={
        "sets.contains": _overload("list_sets_contains_list", _contains, 1.0),
        "sets.equivalent": _overload("list_sets_equivalent_list", _equivalent, 2.0),
        "sets.intersects": _overload("list_sets_intersects_list", _intersects, 1.0),
    }
)
