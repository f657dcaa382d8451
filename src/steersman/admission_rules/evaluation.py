"""Expressions evaluated for one request, within a budget (apiserver `admission/plugin/cel` activation.go)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from steersman.admission_rules import environments
from steersman.admission_rules.answers import CALL_LIMIT, Answers
from steersman.admission_rules.expressions import CompiledExpression
from steersman.cel.evaluator import Program
from steersman.cel.library.authorizer import Judge, ResourceCheck, authorizer, request_resource
from steersman.cel.names import unescape
from steersman.cel.values import CostLimitExceeded, EvaluationError, LazyMap
from steersman.machinery.errors.field import quote
from steersman.work.offloading import ensure_offloaded

BUDGET: Final = 10_000_000
"""What all expressions of one policy may cost for a request and a parameter."""
MATCH_BUDGET: Final = 2_500_000
"""What the match conditions of one webhook or policy may cost for a request."""

_SPENT: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


_NO_VARIABLES: Final[Mapping[str, CompiledExpression]] = {}
_DEEPEST: Final = 200
"""Variables that wait for each other: each takes a dozen calls in calls."""
_DEEP: Final = 20
"""How many of these may on the loop."""


class OutOfBudget(Exception):
    """Nothing more is evaluated; the message is upstream's."""

    def __init__(self) -> None:
        super().__init__(_SPENT)


@dataclass(frozen=True, slots=True)
class Inputs:
    """What expressions are evaluated with: plain data, as JSON has it.

    `request` is an AdmissionRequest, whose own object and oldObject nobody asks for. The resource that
    `authorizer.requestResource` stands for is that of the request itself, whatever version was matched:
    `resource_group`, `resource`, `subresource`, `resource_namespace`, `name`.
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

    def given(self) -> dict[str, Any]:
        """The variables, but for those of the authorizer."""
        return {
            environments.OBJECT: self.object,
            environments.OLD_OBJECT: self.old_object,
            environments.REQUEST: self.request,
            environments.NAMESPACE_OBJECT: self.namespace,
            environments.PARAMS: self.params,
        }

    def with_params(self, params: Any) -> Inputs:
        """The same with parameters."""
        return replace(self, params=params)

    def without_namespace(self) -> Inputs:
        """The same, but for the namespace."""
        return replace(self, namespace=None)

    def request_resource(self, judge: Judge) -> ResourceCheck:
        """The variable `authorizer.requestResource`."""
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
    """The value of an expression, or why it has none (`error` is not empty)."""

    value: Any
    error: str = ""


class Activation:
    """The variables that expressions evaluated together see; what they cost is taken from `budget`.

    `variables` are the named expressions that others may refer to, each evaluated when it is first asked for.
    `has_authorizer` says whether there are the variables of the authorizer.
    """

    def __init__(
        self,
        inputs: Inputs,
        answers: Answers,
        budget: int,
        variables: Mapping[str, CompiledExpression] = _NO_VARIABLES,
        *,
        has_authorizer: bool = True,
    ) -> None:
        self.budget = budget
        self._answers: Final = answers
        given = inputs.given()
        if has_authorizer:
            given[environments.AUTHORIZER_NAME] = authorizer(answers.judge)
            given[environments.REQUEST_RESOURCE] = inputs.request_resource(answers.judge)
        self._variables: Final = _Variables(given, answers, variables) if variables else _EMPTY
        self._given: Final = {**given, environments.VARIABLES: self._variables}

    def evaluate(self, expression: CompiledExpression) -> Evaluation:
        """The value of an expression. Raises OutOfBudget, and Unanswered to stop it."""
        if expression.program is None:
            return Evaluation(None, f"compilation error: {expression.error}")
        variables = self._variables
        variables.budget = self.budget
        value, cost = _outcome(expression.program, self._given, self._answers)
        if variables.cost:
            cost += variables.cost
            variables.cost = 0
        if cost > self.budget:
            raise OutOfBudget
        self.budget -= cost
        if isinstance(value, EvaluationError | CostLimitExceeded):
            return Evaluation(None, f"expression '{expression.text}' resulted in error: {value}")
        return Evaluation(value)


def _outcome(program: Program, given: Mapping[str, Any], answers: Answers) -> tuple[Any, int]:
    """The outcome of a program, and its cost. Raises Unanswered."""
    if not answers.can_move_to_thread:
        return program.outcome(given, CALL_LIMIT)
    outer, allowance = answers.frame, answers.allowance
    value, cost = program.outcome(given, allowance, answers.begin)
    frame, answers.frame = answers.frame, outer
    # what checks cost is no time of the loop
    answers.spend(cost if frame is None else cost - (frame.limit - allowance))
    return value, cost


class _Variables(LazyMap):
    """The variable `variables`. It knows what it is evaluated with, but for itself, so that nothing goes in circles."""

    __slots__ = ("_answers", "_depth", "_expressions", "_given", "_known", "budget", "cost")

    def __init__(
        self, given: Mapping[str, Any], answers: Answers | None, expressions: Mapping[str, CompiledExpression]
    ) -> None:
        self._given: Final = given
        self._answers: Final = answers
        self._expressions: Final = expressions
        self._known: Final[dict[str, Any]] = {}
        self._depth = 0
        self.cost = 0
        """What was evaluated for the expression that is under way."""
        self.budget = 0
        """What that may cost in all."""

    def find(self, key: Any) -> tuple[Any, Any] | None:
        name = unescape(key) if type(key) is str else None
        if name is None or name not in self._expressions:
            return None
        if name not in self._known:
            try:
                self._known[name] = self._evaluate(name, self._expressions[name])
            except EvaluationError as error:
                self._known[name] = error.with_traceback(None)
        value = self._known[name]
        if isinstance(value, EvaluationError):
            raise value.with_traceback(None)
        return key, value

    def _evaluate(self, name: str, expression: CompiledExpression) -> Any:
        """The value of a named expression. Raises EvaluationError, and OutOfBudget as soon as that is certain."""
        if expression.program is None:
            raise EvaluationError(f"composited variable {quote(name)} fails to compile: {expression.error}")
        assert self._answers is not None
        if self._depth >= _DEEPEST:
            raise EvaluationError(f"composited variable {quote(name)} is needed by too many others at once")
        if self._depth >= _DEEP and self._answers.can_move_to_thread:
            ensure_offloaded()
        self._depth += 1
        try:
            value, cost = _outcome(expression.program, {**self._given, environments.VARIABLES: self}, self._answers)
        finally:
            self._depth -= 1
        self.cost += cost
        if self.cost > self.budget:
            raise OutOfBudget
        if isinstance(value, EvaluationError | CostLimitExceeded):
            raise EvaluationError(f"composited variable {quote(name)} fails to evaluate: {value}")
        return value

    def __iter__(self) -> Iterator[Any]:
        # as upstream, what goes through them has their values
        for name in self._expressions:
            found = self.find(name)
            yield None if found is None else found[1]

    def __len__(self) -> int:
        raise EvaluationError("no such overload: size")

    def equals(self, other: Any) -> bool:
        return self is other


_EMPTY: Final = _Variables({}, None, _NO_VARIABLES)
