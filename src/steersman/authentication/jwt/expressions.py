"""CEL expressions over the claims of tokens and over users (apiserver `authentication/cel`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, Final

from steersman.cel import declared, types
from steersman.cel.ast import Call, Expr, Ident, Literal, Operator, Select, descendants
from steersman.cel.declared import declared_list, declared_map, declared_object
from steersman.cel.environment import Environment
from steersman.cel.errors import CompileError
from steersman.cel.evaluator import Program
from steersman.cel.expression import compile_expression
from steersman.cel.library.kubernetes import base_environment
from steersman.cel.library.kubernetes_costs import kubernetes_costs
from steersman.cel.names import unescape
from steersman.cel.steps import ProgramError
from steersman.cel.values import CostLimitExceeded, EvaluationError, LazyMap
from steersman.machinery.errors.field import FieldError, Path, internal, invalid
from steersman.work.offloading import ensure_offloaded

CLAIMS: Final = "claims"
USER: Final = "user"
LIMIT: Final = 100_000
"""Limit of an expression's cost for one token: some hundred milliseconds. Upstream has no such limit."""
_ALLOWANCE: Final = 5_000
"""Limit of an expression's cost before it is moved to a worker thread: some milliseconds."""

_UNLIMITED: Final = -1
_TEXTS: Final = declared_list(declared.STRING, _UNLIMITED)
_USER_TYPE: Final = declared_object(
    "kubernetes.UserInfo",
    {
        "username": declared.STRING,
        "uid": declared.STRING,
        "groups": _TEXTS,
        "extra": declared_map(declared.STRING, _TEXTS, _UNLIMITED),
    },
)


class ExpressionError(Exception):
    """An expression that fails, or whose value has the wrong type; the text is upstream's."""


@cache
def _environment(variable: str) -> Environment:
    if variable == USER:
        objects = {each.type.name: each for each in _USER_TYPE.objects()}
        return base_environment().about({USER: _USER_TYPE.type}, objects)
    return base_environment().about({CLAIMS: types.map_of(types.STRING, types.ANY)}, {})


@dataclass(frozen=True, slots=True)
class Compiled:
    """An expression over a variable, with its program or with the error of its compilation."""

    text: str
    variable: str
    tree: Expr | None = field(default=None, repr=False)
    program: Program | None = field(default=None, repr=False)
    error: str = ""
    is_internal: bool = False

    def field_error(self, path: Path) -> FieldError | None:
        """Return the error at its path in a configuration; None if the expression is valid."""
        if not self.error:
            return None
        return internal(path, self.error) if self.is_internal else invalid(path, self.text, self.error)

    def evaluate(self, value: Any) -> Any:
        """Return the value of the expression for `value`, its variable. Raises ExpressionError."""
        if self.program is None:
            raise ExpressionError(self.error)
        outcome, _ = self.program.outcome({self.variable: value}, _ALLOWANCE)
        if isinstance(outcome, CostLimitExceeded):
            ensure_offloaded()
            outcome, _ = self.program.outcome({self.variable: value}, LIMIT)
        if isinstance(outcome, EvaluationError | CostLimitExceeded):
            raise ExpressionError(f"expression '{self.text}' resulted in error: {outcome}")
        return outcome

    def selects(self, name: str) -> bool:
        """Return True if the expression selects a member of its variable: `claims.name`, or `claims.?name`."""
        return self.tree is not None and any(_selects(each, self.variable, name) for each in descendants(self.tree))


@lru_cache(maxsize=1024)
def compiled(text: str, variable: str, *, is_rule: bool) -> Compiled:
    """Compile an expression over `claims` or `user`, in some milliseconds; a rule must have a boolean value."""
    try:
        expression = compile_expression(text, _environment(variable))
    except CompileError as error:
        return Compiled(text, variable, error=f"compilation failed: {error}")
    if is_rule and expression.type != types.BOOL:
        return Compiled(text, variable, error=f"must evaluate to {types.BOOL.text()}")
    try:
        program = expression.program(kubernetes_costs)
    except ProgramError as error:
        return Compiled(text, variable, error=f"program instantiation failed: {error}", is_internal=True)
    return Compiled(text, variable, expression.tree, program)


def _selects(node: Expr, variable: str, name: str) -> bool:
    if isinstance(node, Select):
        return node.field == name and _is_variable(node.operand, variable)
    if not isinstance(node, Call) or node.function != Operator.OPTIONAL_SELECT or len(node.args) != 2:
        return False
    operand, selected = node.args
    return _is_variable(operand, variable) and isinstance(selected, Literal) and selected.value == name


def _is_variable(node: Expr, variable: str) -> bool:
    return isinstance(node, Ident) and node.name == variable


class Plain(LazyMap):
    """A JSON object as a CEL value.

    Expressions may use escaped names (`acme__dot__com`) for its members too. Numbers are doubles, as Go decodes numbers
    of unknown type.
    """

    __slots__ = ("_members",)

    def __init__(self, members: dict[str, Any]) -> None:
        self._members: Final = members

    def find(self, key: Any) -> tuple[Any, Any] | None:
        if type(key) is not str:
            return None
        name = unescape(key)
        if name is None:
            name = key
        return (key, plain(self._members[name])) if name in self._members else None

    def __iter__(self) -> Iterator[Any]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def items(self) -> Iterator[tuple[Any, Any]]:
        for key, value in self._members.items():
            yield key, plain(value)


def plain(value: Any) -> Any:
    """Return a JSON value as a CEL value."""
    if isinstance(value, dict):
        return Plain(value)
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return float(value) if type(value) is int else value


def texts_of(value: Any) -> tuple[str, ...]:
    """Return the texts in an expression's value, without empty ones. Raises ExpressionError for a value of another
    type.
    """
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,) if value else ()
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise ExpressionError("expression must return a string or a list of strings")
    return tuple(each for each in value if each)
