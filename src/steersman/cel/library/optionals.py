"""Optional values: `a.?b`, `a[?i]`, `orValue` (cel-go `cel.OptionalTypes`)."""

from __future__ import annotations

from typing import Any, Final

from steersman.cel.ast import (
    Call,
    Expr,
    Operator,
    copy_expr,
)
from steersman.cel.environment import Library, Overload
from steersman.cel.macros import bind, variable_name
from steersman.cel.types import BOOL, DYN, INT, OPTIONAL_NAME, STRING, list_of, map_of, opaque, optional_of, type_param
from steersman.cel.values import NONE, Duration, EvaluationError, Optional, Record, UInt, is_map

_K: Final = type_param("K")
_V: Final = type_param("V")
_OPTIONAL: Final = optional_of(_V)
_LIST: Final = list_of(_V)
_MAP: Final = map_of(_K, _V)


def _is_zero(value: Any) -> bool:
    kind = type(value)
    if kind in (bool, int, UInt, float):
        return not value
    if isinstance(value, Record):
        return value.is_zero
    if value is None or isinstance(value, str | bytes | list | tuple) or is_map(value):
        return value is None or len(value) == 0
    return isinstance(value, Duration) and value.nanos == 0


def _of_non_zero(value: Any) -> Optional:
    return NONE if _is_zero(value) else Optional(value)


def _last(values: Any) -> Optional:
    return Optional(values[-1]) if values else NONE


def _first(values: Any) -> Optional:
    return Optional(values[0]) if values else NONE


def _unwrap(values: Any) -> list[Any]:
    for value in values:
        if not isinstance(value, Optional):
            raise EvaluationError("no such overload")
    return [value.value for value in values if value.has_value]


def _mapped(offset: int, name: str, target: Expr, transform: Expr) -> Expr:
    """Return the transformation of the value of an optional target."""
    return bind(offset, name, Call(offset, "value", copy_expr(target), []), transform)


def _where_present(offset: int, target: Expr, value: Expr) -> Expr:
    present = Call(offset, "hasValue", target, [])
    return Call(offset, Operator.CONDITIONAL, None, [present, value, Call(offset, "optional.none", None, [])])


def _opt_map(offset: int, target: Expr | None, args: list[Expr]) -> Expr:
    assert target is not None
    name = variable_name(args[0], "optMap() variable name must be a simple identifier")
    mapped = Call(offset, "optional.of", None, [_mapped(offset, name, target, args[1])])
    return _where_present(offset, target, mapped)


def _opt_flat_map(offset: int, target: Expr | None, args: list[Expr]) -> Expr:
    assert target is not None
    name = variable_name(args[0], "optFlatMap() variable name must be a simple identifier")
    return _where_present(offset, target, _mapped(offset, name, target, args[1]))


OPTIONALS: Final = Library(
    functions={
        "optional.of": (Overload("optional_of", (_V,), _OPTIONAL, Optional),),
        "optional.ofNonZeroValue": (Overload("optional_ofNonZeroValue", (_V,), _OPTIONAL, _of_non_zero),),
        "optional.none": (Overload("optional_none", (), _OPTIONAL, lambda: NONE),),
        "value": (Overload("optional_value", (_OPTIONAL,), _V, lambda value: value.get(), member=True),),
        "hasValue": (Overload("optional_hasValue", (_OPTIONAL,), BOOL, lambda value: value.has_value, member=True),),
        "or": (Overload("optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL, member=True),),
        "orValue": (Overload("optional_orValue_value", (_OPTIONAL, _V), _V, member=True),),
        Operator.OPTIONAL_SELECT: (Overload("select_optional_field", (DYN, STRING), _OPTIONAL),),
        Operator.OPTIONAL_INDEX: (
            Overload("list_optindex_optional_int", (_LIST, INT), _OPTIONAL),
            Overload("optional_list_optindex_optional_int", (optional_of(_LIST), INT), _OPTIONAL),
            Overload("map_optindex_optional_value", (_MAP, _K), _OPTIONAL),
            Overload("optional_map_optindex_optional_value", (optional_of(_MAP), _K), _OPTIONAL),
        ),
        Operator.INDEX: (
            Overload("optional_list_index_int", (optional_of(_LIST), INT), _OPTIONAL),
            Overload("optional_map_index_value", (optional_of(_MAP), _K), _OPTIONAL),
        ),
        "last": (Overload("list_last", (_LIST,), _OPTIONAL, _last, member=True),),
        "first": (Overload("list_first", (_LIST,), _OPTIONAL, _first, member=True),),
        "optional.unwrap": (Overload("optional_unwrap", (list_of(_OPTIONAL),), _LIST, _unwrap),),
        "unwrapOpt": (Overload("optional_unwrapOpt", (list_of(_OPTIONAL),), _LIST, _unwrap, member=True),),
    },
    macros={("optMap", 2, True): _opt_map, ("optFlatMap", 2, True): _opt_flat_map},
    types=(opaque(OPTIONAL_NAME),),
)
