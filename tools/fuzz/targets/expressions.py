"""Expressions of CEL: read, checked, their cost estimated, and evaluated within it."""

from __future__ import annotations

from functools import cache
from typing import Final

from steersman.cel import declared, types
from steersman.cel.declared import declared_list, declared_map, declared_object
from steersman.cel.environment import Environment
from steersman.cel.errors import CompileError
from steersman.cel.expression import compile_expression
from steersman.cel.library.kubernetes import base_environment
from steersman.cel.library.kubernetes_costs import KubernetesEstimator, declared_size, kubernetes_costs
from steersman.cel.steps import ProgramError
from steersman.cel.values import CostLimitExceeded, EvaluationError
from tools.fuzz.target import Target

_LIMIT: Final = 20_000
"""Cost limit of an expression, some milliseconds."""
_OBJECT: Final = declared_object(
    "Obj",
    {
        "s": declared.STRING,
        "i": declared.INT,
        "d": declared.DOUBLE,
        "b": declared.BOOL,
        "y": declared.BYTES,
        "list": declared_list(declared.STRING, 7),
        "map": declared_map(declared.STRING, declared.STRING, 5),
    },
)
_VALUES: Final = {
    "o": {"s": "hello", "i": 7, "d": 2.5, "b": True, "y": b"bytes", "list": ["b", "a"], "map": {"k": "v"}},
    "x": {"a": 1, "l": [1, "two", 3.0], "n": None},
    "i": 42,
}


@cache
def _environment() -> Environment:
    return base_environment().extended({"o": _OBJECT, "x": types.DYN, "i": types.INT})


def cel(data: bytes) -> str:
    """The type of what an expression comes to."""
    expression = compile_expression(data.decode("utf-8", "replace"), _environment())
    expression.estimate(KubernetesEstimator(lambda path: declared_size(_OBJECT, path[1:]) if path[0] == "o" else None))
    expression.program(kubernetes_costs).evaluate(_VALUES, _LIMIT)
    return str(expression.type)[:20]


_WORDS: Final = (
    b"o.s",
    b"o.list",
    b"o.map",
    b"x.a",
    b"x.?b",
    b"==",
    b"&&",
    b"||",
    b"!",
    b"? 1 : 2",
    b".all(v, v != '')",
    b"has(o.s)",
    b".map(v, [v, v])",
    b".exists(v, v == 1)",
    b".filter(v, true)",
    b".matches('^[a-z]+$')",
    b"size(",
    b"dyn(",
    b"[1, 2]",
    b"{'a': 1}",
    b"'a' + 'b'",
    b"duration('1h')",
    b"timestamp('2020-01-01T00:00:00Z')",
    b"quantity('1Ki')",
    b"1u",
    b"0x1F",
    b"1e3",
    b"b'\\xff'",
    b"r'\\d'",
    b"'''a'''",
    b"in",
    b"type(",
    b"cel.bind(v, 1, v)",
    b".split(',')",
    b".join()",
    b"optional.of(1)",
    b".orValue(1)",
    b"'%s %d'.format([1])",
    b".replace('a', 'b')",
    b"ip('1.2.3.4')",
    b"url('http://a')",
    b"semver('1.2.3')",
    b"sets.contains([1], [1])",
    b".sum()",
    b".isSorted()",
    b"math.greatest(1, 2)",
    b"9223372036854775807",
    b"(",
    b")",
    b"// c\n",
    b"\\u00e9",
    b"Obj{s: 'a'}",
    b".find('a')",
    b".indexOf('a', 2)",
    b".transformMap(k, v, v)",
)

TARGETS: Final = (
    Target(
        "cel",
        cel,
        (CompileError, ProgramError, EvaluationError, CostLimitExceeded),
        _WORDS,
        most=2048,
        base=0.4,
        each=0.2,
    ),
)
