"""The functions that every expression may use (CEL language definition, "Standard Definitions")."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from steersman.cel import arithmetic, types
from steersman.cel.ast import Operator
from steersman.cel.environment import Library, Overload
from steersman.cel.macros import STANDARD_MACROS
from steersman.cel.moments import SECOND, local_time, time_zone
from steersman.cel.regular import matches
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
    map_of,
    type_of,
    type_param,
)
from steersman.cel.validators import (
    validate_durations,
    validate_homogeneous_literals,
    validate_patterns,
    validate_timestamps,
)
from steersman.cel.values import (
    Duration,
    EvaluationError,
    Extension,
    Record,
    Timestamp,
    equal,
    find_key,
    is_equal,
    is_map,
    no_such_overload,
    type_of_value,
)

A: Final = type_param("A")
B: Final = type_param("B")
LIST_A: Final = list_of(A)
MAP_AB: Final = map_of(A, B)

Signature = tuple[str, tuple[Type, ...], Type]


def overloads(call: Callable[..., Any] | None, *signatures: Signature, member: bool = False) -> tuple[Overload, ...]:
    """Return overloads of one function with the same implementation."""
    return tuple(Overload(id, args, result, call, member=member) for id, args, result in signatures)


def _comparison(name: str, call: Callable[..., Any]) -> tuple[Overload, ...]:
    short = {INT: "int64", UINT: "uint64", DOUBLE: "double"}
    signatures: list[Signature] = [(f"{name}_bool", (BOOL, BOOL), BOOL)]
    for left, others in ((INT, (DOUBLE, UINT)), (UINT, (DOUBLE, INT)), (DOUBLE, (INT, UINT))):
        signatures.append((f"{name}_{short[left]}", (left, left), BOOL))
        signatures.extend((f"{name}_{short[left]}_{short[right]}", (left, right), BOOL) for right in others)
    for text, type in (("string", STRING), ("bytes", BYTES), ("timestamp", TIMESTAMP), ("duration", DURATION)):
        signatures.append((f"{name}_{text}", (type, type), BOOL))
    return overloads(call, *signatures)


def _equals(left: Any, right: Any) -> bool:
    """Return `left == right`. As upstream, values of library types cannot be compared by `==` with values of other
    types, but by `!=`.
    """
    is_special = isinstance(left, Extension) and not isinstance(left, Record)
    if is_special and right is not None and type(left) is not type(right):
        raise no_such_overload()
    return equal(left, right)


def _is_in(value: Any, container: Any) -> bool:
    if isinstance(container, list | tuple):
        return any(is_equal(value, each) for each in container)
    if is_map(container):
        return find_key(container, value) is not None
    raise no_such_overload()


def _size(value: Any) -> int:
    if isinstance(value, str | bytes | list | tuple) or is_map(value):
        return len(value)
    if isinstance(value, Timestamp | Duration):
        raise no_such_overload()
    raise EvaluationError("no such overload: size")


def _not(value: Any) -> bool:
    if value is True or value is False:
        return not value
    raise no_such_overload()


def _contains(text: Any, part: Any) -> bool:
    return part in text


def _starts_with(text: Any, part: Any) -> bool:
    return bool(text.startswith(part))


def _ends_with(text: Any, part: Any) -> bool:
    return bool(text.endswith(part))


def _identity(value: Any) -> Any:
    return value


def _convert(name: str, result: Type, call: Callable[..., Any], *sources: tuple[str, Type]) -> tuple[Overload, ...]:
    return overloads(call, *((f"{source}_to_{name}", (type,), result) for source, type in sources))


def _time_part(
    ids: tuple[str, str], part: Callable[[datetime], int], of_duration: tuple[str, int] | None = None
) -> tuple[Overload, ...]:
    """Return the overloads of a function for a part of a timestamp, in UTC or a time zone, and optionally for a part of
    a duration.
    """

    def here(moment: Any) -> int:
        return part(local_time(moment, time_zone("UTC")))

    def there(moment: Any, zone: Any) -> int:
        return part(local_time(moment, time_zone(zone)))

    found = [
        Overload(ids[0], (TIMESTAMP,), INT, here, member=True),
        Overload(ids[1], (TIMESTAMP, STRING), INT, there, member=True),
    ]
    if of_duration is not None:
        id, unit = of_duration
        found.append(Overload(id, (DURATION,), INT, lambda length: _truncated(length.nanos, unit), member=True))
    return tuple(found)


def _truncated(nanos: int, unit: int) -> int:
    return nanos // unit if nanos >= 0 else -(-nanos // unit)


def _milliseconds() -> tuple[Overload, ...]:
    def of_moment(moment: Any, zone: Any = "UTC") -> int:
        time_zone(zone)
        return int(moment.nanos % SECOND // 10**6)

    return (
        Overload("timestamp_to_milliseconds", (TIMESTAMP,), INT, of_moment, member=True),
        Overload("timestamp_to_milliseconds_with_tz", (TIMESTAMP, STRING), INT, of_moment, member=True),
        Overload(
            "duration_to_milliseconds", (DURATION,), INT, lambda length: _truncated(length.nanos, 10**6), member=True
        ),
    )


def _both(name: str, type: Type) -> tuple[Overload, Overload]:
    return (
        Overload(f"size_{name}", (type,), INT, _size),
        Overload(f"{name}_size", (type,), INT, _size, member=True),
    )


STANDARD: Final = Library(
    functions={
        Operator.CONDITIONAL: overloads(None, ("conditional", (BOOL, A, A), A)),
        Operator.AND: overloads(None, ("logical_and", (BOOL, BOOL), BOOL)),
        Operator.OR: overloads(None, ("logical_or", (BOOL, BOOL), BOOL)),
        Operator.NOT: overloads(_not, ("logical_not", (BOOL,), BOOL)),
        Operator.NOT_STRICTLY_FALSE: overloads(None, ("not_strictly_false", (BOOL,), BOOL)),
        Operator.EQUALS: overloads(_equals, ("equals", (A, A), BOOL)),
        Operator.NOT_EQUALS: overloads(lambda left, right: not is_equal(left, right), ("not_equals", (A, A), BOOL)),
        Operator.ADD: overloads(
            arithmetic.add,
            ("add_bytes", (BYTES, BYTES), BYTES),
            ("add_double", (DOUBLE, DOUBLE), DOUBLE),
            ("add_duration_duration", (DURATION, DURATION), DURATION),
            ("add_duration_timestamp", (DURATION, TIMESTAMP), TIMESTAMP),
            ("add_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP),
            ("add_int64", (INT, INT), INT),
            ("add_list", (LIST_A, LIST_A), LIST_A),
            ("add_string", (STRING, STRING), STRING),
            ("add_uint64", (UINT, UINT), UINT),
        ),
        Operator.DIVIDE: overloads(
            arithmetic.divide,
            ("divide_double", (DOUBLE, DOUBLE), DOUBLE),
            ("divide_int64", (INT, INT), INT),
            ("divide_uint64", (UINT, UINT), UINT),
        ),
        Operator.MODULO: overloads(
            arithmetic.modulo, ("modulo_int64", (INT, INT), INT), ("modulo_uint64", (UINT, UINT), UINT)
        ),
        Operator.MULTIPLY: overloads(
            arithmetic.multiply,
            ("multiply_double", (DOUBLE, DOUBLE), DOUBLE),
            ("multiply_int64", (INT, INT), INT),
            ("multiply_uint64", (UINT, UINT), UINT),
        ),
        Operator.NEGATE: overloads(
            arithmetic.negate, ("negate_double", (DOUBLE,), DOUBLE), ("negate_int64", (INT,), INT)
        ),
        Operator.SUBTRACT: overloads(
            arithmetic.subtract,
            ("subtract_double", (DOUBLE, DOUBLE), DOUBLE),
            ("subtract_duration_duration", (DURATION, DURATION), DURATION),
            ("subtract_int64", (INT, INT), INT),
            ("subtract_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP),
            ("subtract_timestamp_timestamp", (TIMESTAMP, TIMESTAMP), DURATION),
            ("subtract_uint64", (UINT, UINT), UINT),
        ),
        Operator.LESS: _comparison("less", arithmetic.less),
        Operator.LESS_EQUALS: _comparison("less_equals", arithmetic.less_equals),
        Operator.GREATER: _comparison("greater", arithmetic.greater),
        Operator.GREATER_EQUALS: _comparison("greater_equals", arithmetic.greater_equals),
        Operator.INDEX: overloads(None, ("index_list", (LIST_A, INT), A), ("index_map", (MAP_AB, A), B)),
        Operator.IN: overloads(_is_in, ("in_list", (A, LIST_A), BOOL), ("in_map", (A, MAP_AB), BOOL)),
        "in": overloads(_is_in, ("in_list", (A, LIST_A), BOOL), ("in_map", (A, MAP_AB), BOOL)),
        "size": (*_both("bytes", BYTES), *_both("list", LIST_A), *_both("map", MAP_AB), *_both("string", STRING)),
        "type": overloads(type_of_value, ("type", (A,), type_of(A))),
        "bool": _convert("bool", BOOL, arithmetic.convert_bool, ("bool", BOOL), ("string", STRING)),
        "bytes": _convert("bytes", BYTES, arithmetic.convert_bytes, ("bytes", BYTES), ("string", STRING)),
        "double": _convert(
            "double",
            DOUBLE,
            arithmetic.convert_double,
            ("double", DOUBLE),
            ("int64", INT),
            ("string", STRING),
            ("uint64", UINT),
        ),
        "duration": _convert(
            "duration",
            DURATION,
            arithmetic.convert_duration,
            ("duration", DURATION),
            ("int64", INT),
            ("string", STRING),
        ),
        "dyn": overloads(_identity, ("to_dyn", (A,), DYN)),
        "int": _convert(
            "int64",
            INT,
            arithmetic.convert_int,
            ("int64", INT),
            ("double", DOUBLE),
            ("duration", DURATION),
            ("string", STRING),
            ("timestamp", TIMESTAMP),
            ("uint64", UINT),
        ),
        "string": _convert(
            "string",
            STRING,
            arithmetic.convert_string,
            ("string", STRING),
            ("bool", BOOL),
            ("bytes", BYTES),
            ("double", DOUBLE),
            ("duration", DURATION),
            ("int64", INT),
            ("timestamp", TIMESTAMP),
            ("uint64", UINT),
        ),
        "timestamp": _convert(
            "timestamp",
            TIMESTAMP,
            arithmetic.convert_timestamp,
            ("timestamp", TIMESTAMP),
            ("int64", INT),
            ("string", STRING),
        ),
        "uint": _convert(
            "uint64",
            UINT,
            arithmetic.convert_uint,
            ("uint64", UINT),
            ("double", DOUBLE),
            ("int64", INT),
            ("string", STRING),
        ),
        "contains": overloads(_contains, ("contains_string", (STRING, STRING), BOOL), member=True),
        "endsWith": overloads(_ends_with, ("ends_with_string", (STRING, STRING), BOOL), member=True),
        "startsWith": overloads(_starts_with, ("starts_with_string", (STRING, STRING), BOOL), member=True),
        "matches": (
            Overload("matches", (STRING, STRING), BOOL, matches),
            Overload("matches_string", (STRING, STRING), BOOL, matches, member=True),
        ),
        "getFullYear": _time_part(("timestamp_to_year", "timestamp_to_year_with_tz"), lambda at: at.year),
        "getMonth": _time_part(("timestamp_to_month", "timestamp_to_month_with_tz"), lambda at: at.month - 1),
        "getDayOfYear": _time_part(
            ("timestamp_to_day_of_year", "timestamp_to_day_of_year_with_tz"), lambda at: at.timetuple().tm_yday - 1
        ),
        "getDayOfMonth": _time_part(
            ("timestamp_to_day_of_month", "timestamp_to_day_of_month_with_tz"), lambda at: at.day - 1
        ),
        "getDate": _time_part(
            ("timestamp_to_day_of_month_1_based", "timestamp_to_day_of_month_1_based_with_tz"), lambda at: at.day
        ),
        "getDayOfWeek": _time_part(
            ("timestamp_to_day_of_week", "timestamp_to_day_of_week_with_tz"), lambda at: at.isoweekday() % 7
        ),
        "getHours": _time_part(
            ("timestamp_to_hours", "timestamp_to_hours_with_tz"),
            lambda at: at.hour,
            ("duration_to_hours", 3600 * SECOND),
        ),
        "getMinutes": _time_part(
            ("timestamp_to_minutes", "timestamp_to_minutes_with_tz"),
            lambda at: at.minute,
            ("duration_to_minutes", 60 * SECOND),
        ),
        "getSeconds": _time_part(
            ("timestamp_to_seconds", "timestamp_to_seconds_tz"),
            lambda at: at.second,
            ("duration_to_seconds", SECOND),
        ),
        "getMilliseconds": _milliseconds(),
    },
    macros=STANDARD_MACROS,
    types=(
        BOOL,
        BYTES,
        DOUBLE,
        DURATION,
        INT,
        LIST_A,
        MAP_AB,
        types.NULL,
        STRING,
        TIMESTAMP,
        types.TYPE,
        UINT,
    ),
)

STRICT_LITERALS: Final = Library(
    validators=(validate_durations, validate_timestamps, validate_patterns, validate_homogeneous_literals)
)
"""Finds constants that are certain to be invalid when an expression is compiled."""
