"""An environment with a variable of each sort, values for them, and how outcomes are written down.

`recorded_expressions.jsonl` has what cel-go 0.26 with Kubernetes 1.36's libraries makes of expressions in the
same environment: the error, or the type, the estimated cost, and the value with what it cost, or how it fails.
"""

from __future__ import annotations

import json
from typing import Any

from steersman.cel import declared, types
from steersman.cel.declared import DeclaredType, declared_list, declared_map, declared_object
from steersman.cel.errors import CompileError
from steersman.cel.expression import compile_expression
from steersman.cel.library.kubernetes import base_environment
from steersman.cel.library.kubernetes_costs import KubernetesEstimator, declared_size, kubernetes_costs
from steersman.cel.library.quantities import QUANTITY
from steersman.cel.moments import read_timestamp, timestamp_text
from steersman.cel.steps import ProgramError
from steersman.cel.values import (
    CostLimitExceeded,
    Duration,
    EvaluationError,
    Optional,
    Timestamp,
    UInt,
    entries,
    format_double,
    is_map,
    type_of_value,
)
from steersman.machinery.values.durations import format_duration

LIMIT = 100_000


def _text(maximum: int) -> DeclaredType:
    return declared.STRING.limited(maximum)


_INNER = declared_object("Inner", {"name": _text(63), "count": declared.INT, "__namespace__": _text(20)})
_OBJECT = declared_object(
    "Obj",
    {
        "s": _text(100),
        "u": declared.STRING,
        "i": declared.INT,
        "d": declared.DOUBLE,
        "b": declared.BOOL,
        "y": declared.BYTES.limited(50),
        "t": declared.TIMESTAMP,
        "dur": declared.DURATION,
        "inner": _INNER,
        "list": declared_list(_text(10), 7),
        "ints": declared_list(declared.INT, 9),
        "inners": declared_list(_INNER, 5),
        "map": declared_map(_text(11), _text(12), 13),
        "q": DeclaredType(QUANTITY),
        "any": declared.DYN.limited(64),
    },
)

ENVIRONMENT = base_environment().extended(
    {"o": _OBJECT, "x": types.DYN, "s": types.STRING, "i": types.INT, "a.b": types.INT}
)
ESTIMATOR = KubernetesEstimator(lambda path: declared_size(_OBJECT, path[1:]) if path[0] == "o" else None)

VALUES: dict[str, Any] = {
    "o": {
        "s": "hello world",
        "u": "üñí",
        "i": 7,
        "d": 2.5,
        "b": True,
        "y": b"bytes",
        "t": read_timestamp("2024-02-29T12:30:45.123456789Z"),
        "dur": Duration(90 * 60 * 10**9),
        "inner": {"name": "n", "count": 3, "namespace": "ns", "__namespace__": "ns"},
        "list": ["b", "a", "c"],
        "ints": [3, 1, 2],
        "inners": [{"name": "p", "count": 1}, {"name": "q", "count": 2}],
        "map": {"k1": "v1", "k2": "v2"},
        "any": 5,
    },
    "x": {"a": 1, "l": [1, "two", 3.0], "n": None, "u": UInt(3)},
    "s": "str",
    "i": 42,
    "a.b": 1,
}


def plain(value: Any) -> Any:
    """A value with its type, as JSON can say it."""
    if isinstance(value, bool | str):
        return value
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if is_map(value):
        return {"map": {_key(key): plain(each) for key, each in entries(value)}}
    match value:
        case UInt():
            return {"uint": str(int(value))}
        case int():
            return {"int": str(value)}
        case float():
            return {"double": format_double(value)}
        case bytes():
            return {"bytes": value.hex()}
        case None:
            return {"null": True}
        case Timestamp():
            return {"timestamp": timestamp_text(value)}
        case Duration():
            return {"duration": format_duration(value.nanos)}
        case Optional():
            return {"optional": plain(value.value) if value.has_value else "none"}
        case types.Type():
            return {"type": value.name}
    return {"other": type_of_value(value).name}


def _key(key: Any) -> str:
    return json.dumps(plain(key), separators=(",", ":"), ensure_ascii=False)


def error_of(text: str) -> str:
    """All that is wrong with an expression; empty if nothing is."""
    try:
        compile_expression(text, ENVIRONMENT)
    except CompileError as error:
        return str(error)
    return ""


def evaluate(text: str, limit: int = LIMIT) -> Any:
    """The value of an expression."""
    return compile_expression(text, ENVIRONMENT).program(kubernetes_costs).evaluate(VALUES, limit)[0]


def outcome(text: str) -> dict[str, Any]:
    """Return the outcome of an expression, in the form of the recorded ones."""
    try:
        expression = compile_expression(text, ENVIRONMENT)
    except CompileError as error:
        return {"error": str(error)}
    found: dict[str, Any] = {
        "type": types.format_type(expression.type),
        "cost": list(expression.estimate(ESTIMATOR)),
    }
    try:
        value, spent = expression.program(kubernetes_costs).evaluate(VALUES, LIMIT)
    except ProgramError as error:
        return found | {"fails": f"program: {error}"}
    except (EvaluationError, CostLimitExceeded) as error:
        return found | {"fails": str(error)}
    return found | {"value": plain(value), "spent": spent}
