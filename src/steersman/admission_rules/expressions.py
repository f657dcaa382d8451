"""Compiled admission expressions, with upstream's texts for errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from steersman.admission_rules.environments import AUTHORIZER_NAME
from steersman.cel import types
from steersman.cel.environment import Environment
from steersman.cel.errors import CompileError
from steersman.cel.evaluator import Program
from steersman.cel.expression import compile_expression
from steersman.cel.library.kubernetes_costs import kubernetes_costs
from steersman.cel.steps import ProgramError
from steersman.cel.types import Type
from steersman.machinery.errors.field import FieldError, Path, internal, invalid

BOOLEAN: Final = (types.BOOL,)
ANYTHING: Final = (types.ANY, types.DYN)


@dataclass(frozen=True, slots=True)
class CompiledExpression:
    """An expression with its program, or with its error and without a program.

    `is_internal` is True if the error is not caused by the expression's text.
    """

    text: str
    type: Type | None = None
    program: Program | None = field(default=None, repr=False)
    error: str = ""
    is_internal: bool = False

    @property
    def asks_authorizer(self) -> bool:
        """Return True if the expression may use the authorizer."""
        return AUTHORIZER_NAME in self.text

    def field_error(self, path: Path) -> FieldError | None:
        """Return the expression's error as a field error at `path`, None if it has no error."""
        if not self.error:
            return None
        return internal(path, self.error) if self.is_internal else invalid(path, self.text, self.error)


def compile_admission(text: str, environment: Environment, results: tuple[Type, ...]) -> CompiledExpression:
    """Compile an expression whose type must be one of `results`, without conversion."""
    try:
        expression = compile_expression(text, environment)
    except CompileError as error:
        return CompiledExpression(text, error=f"compilation failed: {error}")
    if expression.type not in results and types.ANY not in results:
        return CompiledExpression(text, error=_not_of(results, expression.type))
    try:
        program = expression.program(kubernetes_costs)
    except ProgramError as error:
        return CompiledExpression(text, error=f"program instantiation failed: {error}", is_internal=True)
    return CompiledExpression(text, expression.type, program)


def _not_of(results: tuple[Type, ...], found: Type) -> str:
    if len(results) == 1:
        return f"must evaluate to {results[0].text()} but got {found.text()}"
    return f"must evaluate to one of [{' '.join(each.text() for each in results)}] but got {found.text()}"
