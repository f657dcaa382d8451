"""Kubernetes' functions of lists: `isSorted`, `sum`, `min`, `max`, `indexOf` (apiserver `cel/library` lists)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from steersman.cel.arithmetic import add, compare
from steersman.cel.environment import Library, Overload
from steersman.cel.types import BOOL, BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT, Type, list_of, type_param
from steersman.cel.values import Duration, EvaluationError, UInt, equal
from steersman.cel.work import spend

_A: Final = type_param("A")
_COMPARABLE: Final = (
    ("int", INT),
    ("uint", UINT),
    ("double", DOUBLE),
    ("bool", BOOL),
    ("duration", DURATION),
    ("timestamp", TIMESTAMP),
    ("string", STRING),
    ("bytes", BYTES),
)
_ZEROS: Final = (("int", INT, 0), ("uint", UINT, UInt(0)), ("double", DOUBLE, 0.0), ("duration", DURATION, Duration(0)))


def _is_sorted(values: Any) -> bool:
    spend(len(values))
    return all(compare(values[index], values[index + 1]) <= 0 for index in range(len(values) - 1))


def _sum_from(zero: Any) -> Callable[[Any], Any]:
    def total(values: Any) -> Any:
        result = zero
        spend(len(values))
        for value in values:
            result = add(result, value)
        return result

    return total


def _extreme(name: str, preferred: int) -> Callable[[Any], Any]:
    def extreme(values: Any) -> Any:
        if not values:
            raise EvaluationError(f"{name} called on empty list")
        result = values[0]
        spend(len(values))
        for value in values[1:]:
            if compare(result, value) == preferred:
                result = value
        return result

    return extreme


_max: Final = _extreme("max", -1)
_min: Final = _extreme("min", 1)


def _index_of(values: Any, wanted: Any) -> int:
    spend(len(values))
    return next((index for index, value in enumerate(values) if equal(value, wanted)), -1)


def _last_index_of(values: Any, wanted: Any) -> int:
    spend(len(values))
    return next((index for index in range(len(values) - 1, -1, -1) if equal(values[index], wanted)), -1)


def _of_list(id: str, type: Type, result: Type, call: Callable[[Any], Any]) -> Overload:
    return Overload(id, (list_of(type),), result, call, member=True)


KUBERNETES_LISTS: Final = Library(
    functions={
        "isSorted": tuple(
            _of_list(f"list_{name}_is_sorted_bool", type, BOOL, _is_sorted) for name, type in _COMPARABLE
        ),
        "sum": tuple(_of_list(f"list_{name}_sum_{name}", type, type, _sum_from(zero)) for name, type, zero in _ZEROS),
        "max": tuple(_of_list(f"list_{name}_max_{name}", type, type, _max) for name, type in _COMPARABLE),
        "min": tuple(_of_list(f"list_{name}_min_{name}", type, type, _min) for name, type in _COMPARABLE),
        "indexOf": (Overload("list_a_index_of_int", (list_of(_A), _A), INT, _index_of, member=True),),
        "lastIndexOf": (Overload("list_a_last_index_of_int", (list_of(_A), _A), INT, _last_index_of, member=True),),
    }
)
