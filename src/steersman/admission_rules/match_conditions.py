"""Match conditions, which decide if a webhook or policy applies to a request.

Follows apiserver `admission/plugin/webhook/matchconditions`, and for their validation
`apis/admissionregistration/validation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from steersman.admission_rules.answers import AuthorizerAnswers
from steersman.admission_rules.environments import environment
from steersman.admission_rules.evaluation import MATCH_BUDGET, Activation, Inputs, OutOfBudget
from steersman.admission_rules.expressions import BOOLEAN, CompiledExpression, compile_admission
from steersman.admission_rules.variables import Variables
from steersman.machinery.errors.field import FieldError, Path, duplicate, invalid, required, too_many
from steersman.machinery.go.strings import trim_space
from steersman.machinery.validation.formats import is_qualified_name

MAX_CONDITIONS: Final = 64
"""Most conditions of one webhook or policy."""


class Condition(Protocol):
    """A MatchCondition of the API."""

    name: str
    expression: str


@dataclass(frozen=True, slots=True)
class Match:
    """Result of match conditions for a request.

    If `error` is not empty, the request is refused: the evaluation failed, and the failure policy is Fail. `unmet` is
    the name of the first condition that does not hold. `failures` is the number of conditions whose evaluation failed.
    """

    matches: bool
    error: str = ""
    unmet: str = ""
    failures: int = 0


_MATCHES: Final = Match(matches=True)


class MatchConditions:
    """Compiled conditions of one webhook or policy. Compiling one takes several hundred microseconds."""

    def __init__(
        self,
        conditions: Iterable[Condition],
        *,
        failure_policy: str | None,
        has_params: bool = False,
        variables: Variables | None = None,
    ) -> None:
        """Compile conditions.

        `failure_policy` is "Fail" (also None) or "Ignore". With `has_params` expressions may use `params`. `variables`
        are those of a policy.
        """
        names = environment(params=has_params, authorizer=True) if variables is None else variables.environment()
        self._variables: Final = {} if variables is None else variables.expressions
        self._conditions: Final = tuple(
            (each.name, compile_admission(each.expression, names, BOOLEAN)) for each in conditions
        )
        self._fails: Final = failure_policy != "Ignore"

    @property
    def is_empty(self) -> bool:
        """Return True if there are no conditions, so that every request matches."""
        return not self._conditions

    async def match(self, inputs: Inputs, answers: AuthorizerAnswers) -> Match:
        """Return the result of the conditions for a request. It includes errors."""
        if not self._conditions:
            return _MATCHES
        return await answers.run(self.evaluate, inputs, answers)

    def evaluate(self, inputs: Inputs, answers: AuthorizerAnswers) -> Match:
        """Evaluate the conditions, called by code that `AuthorizerAnswers.run` runs. Raises Unanswered to stop the
        evaluation.
        """
        activation = Activation(inputs, answers, MATCH_BUDGET, self._variables)
        try:
            evaluated = [(name, activation.evaluate(condition)) for name, condition in self._conditions]
        except OutOfBudget as error:
            return Match(matches=False, error=str(error) if self._fails else "")
        # As upstream, all conditions are evaluated first. Failures before the first unmet condition are counted.
        failures: list[str] = []
        for name, evaluation in evaluated:
            if evaluation.error:
                failures.append(evaluation.error)
            if evaluation.value is False:
                return Match(matches=False, unmet=name, failures=len(failures))
        if not failures:
            return _MATCHES
        return Match(matches=False, error=_aggregate(failures) if self._fails else "", failures=len(failures))


def _aggregate(errors: Sequence[str]) -> str:
    """Return several errors as one text (apimachinery `util/errors.Aggregate`)."""
    different = list(dict.fromkeys(errors))
    return different[0] if len(different) == 1 else f"[{', '.join(different)}]"


def match_condition_errors(
    conditions: Sequence[Condition], path: Path, *, has_params: bool = False
) -> Iterator[FieldError]:
    """Yield the field errors of the conditions of a webhook or policy.

    `path` is the path of `matchConditions`. Callers skip this validation, as upstream, on an update that changes
    neither the conditions nor a policy's paramKind.
    """
    if len(conditions) > MAX_CONDITIONS:
        yield too_many(path, len(conditions), MAX_CONDITIONS)
    names: set[str] = set()
    for index, condition in enumerate(conditions):
        at = path[index]
        text = trim_space(condition.expression)
        if not text:
            yield required(at / "expression")
        else:
            error = _compile(text, has_params=has_params).field_error(at / "expression")
            if error is not None:
                yield error
        if not condition.name:
            yield required(at / "name")
            continue
        for message in is_qualified_name(condition.name):
            yield invalid(at / "name", condition.name, message)
        if condition.name in names:
            yield duplicate(at / "name", condition.name)
        names.add(condition.name)


def _compile(text: str, *, has_params: bool) -> CompiledExpression:
    return compile_admission(text, environment(params=has_params, authorizer=True), BOOLEAN)
