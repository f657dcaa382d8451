"""Evaluation of expressions for one request within a budget (apiserver `admission/plugin/cel` activation.go)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from steersman.admission_rules import environments
from steersman.admission_rules.answers import CALL_LIMIT, AuthorizerAnswers
from steersman.admission_rules.expressions import CompiledExpression
from steersman.cel.evaluator import Program
from steersman.cel.library.authorizer import Judge, ResourceCheck, authorizer, request_resource
from steersman.cel.names import unescape
from steersman.cel.values import CostLimitExceeded, EvaluationError, LazyMap
from steersman.machinery.errors.field import quote
from steersman.work.offloading import ensure_offloaded

BUDGET: Final = 10_000_000
"""Cost limit of all expressions of one policy, for one request and one parameter."""
MATCH_BUDGET: Final = 2_500_000
"""Cost limit of the match conditions of one webhook or policy, for one request."""

_OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


_NO_VARIABLES: Final[Mapping[str, CompiledExpression]] = {}
_MAX_DEPTH: Final = 200
"""Most nested evaluations of variables. Each takes a dozen nested Python calls."""
_MAX_DEPTH_ON_LOOP: Final = 20
"""Most nested evaluations of variables on the event loop."""


class OutOfBudget(Exception):
    """The budget is exhausted, and no further expression is evaluated. The message is upstream's."""

    def __init__(self) -> None:
        super().__init__(_OUT_OF_BUDGET)


@dataclass(frozen=True, slots=True)
class Inputs:
    """Values of the variables, as plain data.

    `request` is an AdmissionRequest, whose members object and oldObject are never read. `authorizer.requestResource`
    refers to the resource of the request itself, whatever version was matched: `resource_group`, `resource`,
    `subresource`, `resource_namespace`, `name`.
    """

    object: Any
    old_object: Any
    request: Mapping[str, Any]
    resource_group: str
    resource: str
    subresource: str
    resource_namespace: str
    name: str
    namespace: Mapping[str, Any] | None = None
    params: Any = None

    def variables(self) -> dict[str, Any]:
        """Return the variables by name, without those of the authorizer."""
        return {
            environments.OBJECT: self.object,
            environments.OLD_OBJECT: self.old_object,
            environments.REQUEST: self.request,
            environments.NAMESPACE_OBJECT: self.namespace,
            environments.PARAMS: self.params,
        }

    def with_params(self, params: Any) -> Inputs:
        """Return a copy with other parameters."""
        return replace(self, params=params)

    def without_namespace(self) -> Inputs:
        """Return a copy without the namespace."""
        return replace(self, namespace=None)

    def request_resource(self, judge: Judge) -> ResourceCheck:
        """Return the value of the variable `authorizer.requestResource`."""
        return request_resource(
            judge,
            group=self.resource_group,
            resource=self.resource,
            subresource=self.subresource,
            namespace=self.resource_namespace,
            name=self.name,
        )


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The value of an expression, or the error of its evaluation if `error` is not empty."""

    value: Any
    error: str = ""


class Activation:
    """Variables of expressions that are evaluated together, with a common cost `budget`.

    `variables` are the named expressions of a policy, each evaluated at its first use. With `has_authorizer` the
    variables of the authorizer exist.
    """

    def __init__(
        self,
        inputs: Inputs,
        answers: AuthorizerAnswers,
        budget: int,
        variables: Mapping[str, CompiledExpression] = _NO_VARIABLES,
        *,
        has_authorizer: bool = True,
    ) -> None:
        self.budget = budget
        self._answers: Final = answers
        values = inputs.variables()
        if has_authorizer:
            values[environments.AUTHORIZER_NAME] = authorizer(answers.answer)
            values[environments.REQUEST_RESOURCE] = inputs.request_resource(answers.answer)
        self._variables: Final = _Variables(values, answers, variables) if variables else _EMPTY
        self._given: Final = {**values, environments.VARIABLES: self._variables}

    def evaluate(self, expression: CompiledExpression) -> Evaluation:
        """Return the value or the error of an expression. Raises OutOfBudget, and Unanswered to stop the evaluation."""
        if expression.program is None:
            return Evaluation(None, f"compilation error: {expression.error}")
        variables = self._variables
        variables.budget = self.budget
        value, cost = _run_program(expression.program, self._given, self._answers)
        if variables.cost:
            cost += variables.cost
            variables.cost = 0
        if cost > self.budget:
            raise OutOfBudget
        self.budget -= cost
        if isinstance(value, EvaluationError | CostLimitExceeded):
            return Evaluation(None, f"expression '{expression.text}' resulted in error: {value}")
        return Evaluation(value)


def _run_program(program: Program, values: Mapping[str, Any], answers: AuthorizerAnswers) -> tuple[Any, int]:
    """Return the result of a program, and its cost. Raises Unanswered."""
    if not answers.can_move_to_thread:
        return program.outcome(values, CALL_LIMIT)
    outer, allowance = answers.frame, answers.allowance
    value, cost = program.outcome(values, allowance, answers.enter)
    frame, answers.frame = answers.frame, outer
    # The cost of authorization checks is not time on the event loop.
    answers.spend(cost if frame is None else cost - (frame.limit - allowance))
    return value, cost


class _Variables(LazyMap):
    """Value of the variable `variables`.

    It holds the other variables, but no reference to itself, so that there is no reference cycle.
    """

    __slots__ = ("_answers", "_depth", "_expressions", "_given", "_values", "budget", "cost")

    def __init__(
        self,
        values: Mapping[str, Any],
        answers: AuthorizerAnswers | None,
        expressions: Mapping[str, CompiledExpression],
    ) -> None:
        self._given: Final = values
        self._answers: Final = answers
        self._expressions: Final = expressions
        self._values: Final[dict[str, Any]] = {}
        self._depth = 0
        self.cost = 0
        """Cost of the variables evaluated for the current expression."""
        self.budget = 0
        """Cost limit of the variables evaluated for the current expression."""

    def find(self, key: Any) -> tuple[Any, Any] | None:
        name = unescape(key) if type(key) is str else None
        if name is None or name not in self._expressions:
            return None
        if name not in self._values:
            try:
                self._values[name] = self._evaluate(name, self._expressions[name])
            except EvaluationError as error:
                self._values[name] = error.with_traceback(None)
        value = self._values[name]
        if isinstance(value, EvaluationError):
            raise value.with_traceback(None)
        return key, value

    def _evaluate(self, name: str, expression: CompiledExpression) -> Any:
        """Return the value of a named expression. Raises EvaluationError, and OutOfBudget as soon as the limit is
        exceeded.
        """
        if expression.program is None:
            raise EvaluationError(f"composited variable {quote(name)} fails to compile: {expression.error}")
        assert self._answers is not None
        if self._depth >= _MAX_DEPTH:
            raise EvaluationError(f"composited variable {quote(name)} is needed by too many others at once")
        if self._depth >= _MAX_DEPTH_ON_LOOP and self._answers.can_move_to_thread:
            ensure_offloaded()
        self._depth += 1
        try:
            value, cost = _run_program(expression.program, {**self._given, environments.VARIABLES: self}, self._answers)
        finally:
            self._depth -= 1
        self.cost += cost
        if self.cost > self.budget:
            raise OutOfBudget
        if isinstance(value, EvaluationError | CostLimitExceeded):
            raise EvaluationError(f"composited variable {quote(name)} fails to evaluate: {value}")
        return value

    def __iter__(self) -> Iterator[Any]:
        # As upstream, an iteration yields the values of the variables.
        for name in self._expressions:
            found = self.find(name)
            yield None if found is None else found[1]

    def __len__(self) -> int:
        raise EvaluationError("no such overload: size")

    def equals(self, other: Any) -> bool:
        return self is other


_EMPTY: Final = _Variables({}, None, _NO_VARIABLES)
