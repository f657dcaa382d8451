"""Variables of policies: named expressions that later ones may refer to (apiserver `plugin/cel` composition.go).

What one costs is counted where it is evaluated, which is when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from steersman.admission_rules.environments import VARIABLES, environment
from steersman.admission_rules.expressions import ANYTHING, CompiledExpression, compile_admission
from steersman.cel import types
from steersman.cel.declared import DeclaredType, declared_object
from steersman.cel.environment import Environment
from steersman.cel.types import Kind, Type

VARIABLES_TYPE: Final = "kubernetes.variables"
"""The name of the type of all variables together."""


class Named(Protocol):
    """A Variable of a policy."""

    name: str
    expression: str


class Variables:
    """The variables of one policy, compiled, and the environments of expressions that may name them.

    A variable that is added is one entry of a dictionary that all these environments share.
    """

    def __init__(self, *, params: bool) -> None:
        self._params: Final = params
        self._fields: Final[dict[str, DeclaredType]] = {}
        self._type: Final = declared_object(VARIABLES_TYPE, self._fields)
        self.expressions: Final[dict[str, CompiledExpression]] = {}
        self.ask_authorizer = False
        """Whether any of them may ask the authorizer."""
        self._environment: Final = self.environment()

    def environment(self, *, authorizer: bool = True, patches: bool = False) -> Environment:
        """What an expression may use that may name variables, those too that are added later."""
        base = environment(params=self._params, authorizer=authorizer, patches=patches)
        return base.about({VARIABLES: self._type.type}, {**base.objects, VARIABLES_TYPE: self._type})

    def add(self, name: str, expression: str) -> CompiledExpression:
        """Compiles a variable and adds it. One whose expression is wrong may be anything, and has no value."""
        compiled = compile_admission(expression, self._environment, ANYTHING)
        self._fields[name] = DeclaredType(types.DYN if compiled.type is None else told_of_variable(compiled.type))
        self.expressions[name] = compiled
        self.ask_authorizer |= compiled.asks_authorizer
        return compiled

    def add_all(self, variables: Iterable[Named]) -> None:
        """Adds them in their order."""
        for each in variables:
            self.add(each.name, each.expression)


_SCALARS: Final = frozenset(
    {
        Kind.ANY,
        Kind.BOOL,
        Kind.BYTES,
        Kind.DOUBLE,
        Kind.DURATION,
        Kind.INT,
        Kind.NULL,
        Kind.STRING,
        Kind.TIMESTAMP,
        Kind.UINT,
    }
)


_DEEPEST: Final = 50
"""Lists and maps in each other."""


def told_of_variable(type: Type, depth: int = 0) -> Type:
    """As much of a type as is told of a variable: scalars, and lists and maps of what is told."""
    if depth > _DEEPEST:
        return types.DYN
    if type.kind is Kind.LIST:
        return types.list_of(told_of_variable(type.params[0], depth + 1))
    if type.kind is Kind.MAP:
        key, item = type.params
        return types.map_of(told_of_variable(key, depth + 1), told_of_variable(item, depth + 1))
    return type if type.kind in _SCALARS else types.DYN
