"""Compiling the text of an expression."""

from __future__ import annotations

from msgspec import Struct

from steersman.cel.ast import Expr
from steersman.cel.checker import check
from steersman.cel.cost import estimate_cost
from steersman.cel.environment import Environment
from steersman.cel.errors import CompileError, Errors, Source
from steersman.cel.evaluator import Program
from steersman.cel.nesting import allows_nesting
from steersman.cel.parser import parse
from steersman.cel.runtime_cost import CallCosts
from steersman.cel.sizes import Estimator, Range
from steersman.cel.types import Type


class Expression(Struct, frozen=True, eq=False):
    """An expression without errors."""

    text: str
    tree: Expr
    environment: Environment

    @property
    def type(self) -> Type:
        """The type of the result."""
        return self.tree.type

    def estimate(self, estimator: Estimator) -> Range:
        """Return the estimated cost of an evaluation."""
        return estimate_cost(self.tree, self.environment.overloads, estimator)

    def program(self, costs: CallCosts) -> Program:
        """Return a program that evaluates the expression. Raises ProgramError if a constant part has no value."""
        return Program(self.tree, self.environment, costs)


@allows_nesting
def compile_expression(text: str, environment: Environment) -> Expression:
    """Parse and check an expression. Raises CompileError with all errors."""
    errors = Errors(Source(text))
    tree = parse(text, environment.macros, errors)
    if errors:
        raise CompileError(errors.text())
    nodes = check(tree, environment, errors)
    if not errors:
        for validate in environment.validators:
            validate(nodes, errors.report)
    if errors:
        raise CompileError(errors.text())
    return Expression(text, tree, environment)
