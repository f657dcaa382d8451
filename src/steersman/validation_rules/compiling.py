"""Compilation of the rules of one schema node (apiserver `schema/cel/compilation.go`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from steersman.cel import types
from steersman.cel.ast import Ident, descendants
from steersman.cel.declared import DeclaredType
from steersman.cel.environment import Environment
from steersman.cel.errors import CompileError
from steersman.cel.evaluator import Program
from steersman.cel.expression import Expression, compile_expression
from steersman.cel.library.kubernetes import base_environment
from steersman.cel.library.kubernetes_costs import KubernetesEstimator, declared_size, kubernetes_costs
from steersman.cel.steps import ProgramError
from steersman.cel.types import Type, optional_of
from steersman.machinery.go.strings import trim_space
from steersman.validation_rules.declarations import Declarations, Sized
from steersman.work.threads import give_way

SELF: Final = "self"
OLD_SELF: Final = "oldSelf"
ROOT: Final = "\ue000"
"""The beginning of type names; no expression can contain this character."""

_SHOWN_ROOT: Final = "selfType0"
"""The replacement of ROOT in messages, where upstream has a number that changes each time."""

Rule = Mapping[str, Any]
"""An item of x-kubernetes-validations."""


@dataclass(frozen=True, slots=True)
class RuleScope:
    """A schema node with rules: the type of its values, and the name of the type."""

    sized: Sized
    name: str

    @property
    def declared(self) -> DeclaredType:
        """The type of its values as expressions see it."""
        return self.sized.type


@dataclass(slots=True)
class CompiledRule:
    """A compiled rule, or the error of its compilation."""

    rule: Rule
    error: str | None = None
    uses_old_self: bool = False
    cost: int = 0
    """The maximal cost of one evaluation."""
    program: Program | None = field(default=None, repr=False)
    message_error: str | None = None
    message_cost: int | None = None
    """The maximal cost of the message expression; None without a usable message expression."""
    message_program: Program | None = field(default=None, repr=False)

    @property
    def optional_old_self(self) -> bool:
        """True if the rule is also evaluated without an old value."""
        return bool(self.rule.get("optionalOldSelf"))


class RuleCompiler:
    """Compiles the rules of one schema, against the types of the schema."""

    def __init__(self, declarations: Declarations) -> None:
        self._declarations: Final = declarations

    def compile(self, rules: tuple[Rule, ...], scope: RuleScope) -> Iterator[CompiledRule]:
        """Yield the compiled rules of a node one by one."""
        environments = {optional: self._environment(scope, optional=optional) for optional in (False, True)}
        estimator = KubernetesEstimator(lambda path: declared_size(scope.declared, path[1:]))
        for rule in rules:
            give_way()
            compiled = CompiledRule(rule)
            environment = environments[compiled.optional_old_self]
            _compile(compiled, environment, estimator, scope)
            yield compiled

    def _environment(self, scope: RuleScope, *, optional: bool) -> Environment:
        kind = scope.declared.type
        variables: dict[str, Type] = {SELF: kind, OLD_SELF: optional_of(kind) if optional else kind}
        return base_environment().about(variables, self._declarations.objects)


def _compile(
    compiled: CompiledRule, environment: Environment, estimator: KubernetesEstimator, scope: RuleScope
) -> None:
    text = compiled.rule.get("rule", "")
    if not trim_space(text):
        return
    try:
        expression = compile_expression(text, environment)
    except CompileError as error:
        compiled.error = f"compilation failed: {_error_text(error, scope)}"
        return
    if expression.type is not types.BOOL:
        compiled.error = "cel expression must evaluate to a bool"
        return
    compiled.uses_old_self = _uses_old_self(expression)
    try:
        compiled.program = expression.program(kubernetes_costs)
    except ProgramError as error:
        compiled.error = f"program instantiation failed: {error}"
        return
    compiled.cost = expression.estimate(estimator).max
    if compiled.rule.get("messageExpression"):
        _compile_message(compiled, environment, estimator, scope)


def _compile_message(
    compiled: CompiledRule, environment: Environment, estimator: KubernetesEstimator, scope: RuleScope
) -> None:
    try:
        expression = compile_expression(compiled.rule["messageExpression"], environment)
    except CompileError as error:
        compiled.message_error = f"messageExpression compilation failed: {_error_text(error, scope)}"
        return
    if expression.type is not types.STRING:
        compiled.message_error = "messageExpression must evaluate to a string"
        return
    try:
        compiled.message_program = expression.program(kubernetes_costs)
    except ProgramError as error:
        compiled.message_error = f"messageExpression instantiation failed: {error}"
        return
    compiled.message_cost = expression.estimate(estimator).max


def _error_text(error: CompileError, scope: RuleScope) -> str:
    return str(error).replace(scope.name, _SHOWN_ROOT)


def _uses_old_self(expression: Expression) -> bool:
    return OLD_SELF in expression.text and any(
        isinstance(node, Ident) and node.constant is None and node.name == OLD_SELF
        for node in descendants(expression.tree)
    )
