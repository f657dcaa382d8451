"""Variables of policies: named expressions that later expressions may use (apiserver `plugin/cel` composition.go).

The cost of a variable counts at its first use, which evaluates it.
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
"""Name of the object type with all variables as members."""


class NamedExpression(Protocol):
    """A Variable of a policy in the API."""

    name: str
    expression: str


class Variables:
    """Compiled variables of one policy, and environments for expressions that use them.

    All these environments share one dictionary of the variables' types, to which `add` adds an entry.
    """

    def __init__(self, *, params: bool) -> None:
        self._params: Final = params
        self._fields: Final[dict[str, DeclaredType]] = {}
        self._type: Final = declared_object(VARIABLES_TYPE, self._fields)
        self.expressions: Final[dict[str, CompiledExpression]] = {}
        self.ask_authorizer = False
        """True if any variable may use the authorizer."""
        self._environment: Final = self.environment()

    def environment(self, *, authorizer: bool = True, patches: bool = False) -> Environment:
        """Return the environment of an expression that may use all variables, including those added later."""
        base = environment(params=self._params, authorizer=authorizer, patches=patches)
        return base.about({VARIABLES: self._type.type}, {**base.objects, VARIABLES_TYPE: self._type})

    def add(self, name: str, expression: str) -> CompiledExpression:
        """Compile and add a variable. A variable with an error is dynamic and has no value."""
        compiled = compile_admission(expression, self._environment, ANYTHING)
        self._fields[name] = DeclaredType(types.DYN if compiled.type is None else declared_variable_type(compiled.type))
        self.expressions[name] = compiled
        self.ask_authorizer |= compiled.asks_authorizer
        return compiled

    def add_all(self, variables: Iterable[NamedExpression]) -> None:
        """Compile and add variables in order."""
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
"""Most nested lists and maps in the type of a variable."""


def declared_variable_type(type: Type, depth: int = 0) -> Type:
    """Return a variable's declared type: scalars, lists and maps keep their types, everything else is dynamic."""
    if depth > _DEEPEST:
        return types.DYN
    if type.kind is Kind.LIST:
        return types.list_of(declared_variable_type(type.params[0], depth + 1))
    if type.kind is Kind.MAP:
        key, item = type.params
        return types.map_of(declared_variable_type(key, depth + 1), declared_variable_type(item, depth + 1))
    return type if type.kind in _SCALARS else types.DYN
