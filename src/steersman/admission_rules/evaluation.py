"""Expressions evaluated for one request, within a budget (apiserver `admission/plugin/cel` activation.go)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from steersman.admission_rules import environments
from steersman.admission_rules.answers import Answers
from steersman.admission_rules.expressions import CompiledExpression
from steersman.cel.evaluator import Frame, Program
from steersman.cel.library.authorizer import Answer, Check, Judge, ResourceCheck, authorizer, request_resource
from steersman.cel.library.kubernetes_costs import CHECK_COST
from steersman.cel.names import unescape
from steersman.cel.values import CostLimitExceeded, EvaluationError, LazyMap
from steersman.machinery.errors.field import quote

CALL_LIMIT: Final = 1_000_000
"""What one evaluation may cost."""
BUDGET: Final = 10_000_000
"""What all expressions of one policy may cost for a request and a parameter."""
MATCH_BUDGET: Final = 2_500_000
"""What the match conditions of one webhook or policy may cost for a request."""

_SPENT: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


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

    def with_others(self, **others: Any) -> Inputs:
        """The same with another namespace, or parameters."""
        return replace(self, **others)

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
        variables: Mapping[str, CompiledExpression] | None = None,
        *,
        has_authorizer: bool = True,
    ) -> None:
        self.budget = budget
        self._answers: Final = answers
        self._frame: Frame | None = None
        self._cost_of_variables = 0
        self._given: Final[dict[str, Any]] = {
            environments.OBJECT: inputs.object,
            environments.OLD_OBJECT: inputs.old_object,
            environments.REQUEST: inputs.request,
            environments.NAMESPACE_OBJECT: inputs.namespace,
            environments.PARAMS: inputs.params,
        }
        if has_authorizer:
            self._given[environments.AUTHORIZER_NAME] = authorizer(self._judge)
            self._given[environments.REQUEST_RESOURCE] = inputs.request_resource(self._judge)
        if variables is not None:
            self._given[environments.VARIABLES] = _Variables(self, variables)

    def evaluate(self, expression: CompiledExpression) -> Evaluation:
        """The value of an expression. Raises OutOfBudget, and Unanswered and TakesLong to stop it."""
        if expression.program is None:
            return Evaluation(None, f"compilation error: {expression.error}")
        value, cost = self._run(expression.program)
        cost += self._cost_of_variables
        self._cost_of_variables = 0
        if cost > self.budget:
            raise OutOfBudget
        self.budget -= cost
        if isinstance(value, EvaluationError | CostLimitExceeded):
            return Evaluation(None, f"expression '{expression.text}' resulted in error: {value}")
        return Evaluation(value)

    def variable(self, name: str, expression: CompiledExpression) -> Any:
        """The value of a named expression. Raises EvaluationError."""
        if expression.program is None:
            raise EvaluationError(f"composited variable {quote(name)} fails to compile: {expression.error}")
        value, cost = self._run(expression.program)
        self._cost_of_variables += cost
        if isinstance(value, EvaluationError | CostLimitExceeded):
            raise EvaluationError(f"composited variable {quote(name)} fails to evaluate: {value}")
        return value

    def _run(self, program: Program) -> tuple[Any, int]:
        """The outcome of a program, and its cost. Raises Unanswered, TakesLong."""
        answers = self._answers
        if not answers.is_hurried:
            return program.outcome(self._given, CALL_LIMIT)
        outer, allowance = self._frame, answers.allowance
        value, cost = program.outcome(self._given, allowance, self._begin)
        frame, self._frame = self._frame, outer
        # what checks cost is no time of the loop
        answers.spend(cost if frame is None else cost - (frame.limit - allowance))
        return value, cost

    def _begin(self, frame: Frame) -> None:
        self._frame = frame

    def _judge(self, check: Check) -> Answer:
        answer = self._answers.judge(check)
        if self._frame is not None:
            self._frame.limit = min(self._frame.limit + CHECK_COST, CALL_LIMIT)
        return answer


class _Variables(LazyMap):
    """The variable `variables`."""

    __slots__ = ("_activation", "_expressions", "_known")

    def __init__(self, activation: Activation, expressions: Mapping[str, CompiledExpression]) -> None:
        self._activation: Final = activation
        self._expressions: Final = expressions
        self._known: Final[dict[str, Any]] = {}

    def find(self, key: Any) -> tuple[Any, Any] | None:
        name = unescape(key) if type(key) is str else None
        if name is None or name not in self._expressions:
            return None
        if name not in self._known:
            try:
                self._known[name] = self._activation.variable(name, self._expressions[name])
            except EvaluationError as error:
                self._known[name] = error
        value = self._known[name]
        if isinstance(value, EvaluationError):
            raise value.with_traceback(None)
        return key, value

    def __iter__(self) -> Iterator[Any]:
        # as upstream, what goes through them has their values
        for name in self._expressions:
            found = self.find(name)
            yield None if found is None else found[1]

    def __len__(self) -> int:
        raise EvaluationError("no such overload: size")

    def equals(self, other: Any) -> bool:
        return self is other
