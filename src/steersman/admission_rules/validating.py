"""Expressions of a ValidatingAdmissionPolicy, and their decisions (apiserver `admission/plugin/policy/validating`).

Follows validator.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Final

from steersman.admission_rules.answers import AuthorizerAnswers
from steersman.admission_rules.evaluation import BUDGET, Activation, Inputs, OutOfBudget
from steersman.admission_rules.expressions import BOOLEAN, CompiledExpression, compile_admission
from steersman.admission_rules.match_conditions import Match, MatchConditions
from steersman.admission_rules.variables import Variables
from steersman.api.admissionregistration.v1 import ValidatingAdmissionPolicySpec, Validation
from steersman.cel import types
from steersman.machinery.go.strings import trim_space
from steersman.machinery.validation.formats import byte_length

TEXT: Final = (types.STRING,)
TEXT_OR_NULL: Final = (types.STRING, types.NULL)

_MAX_MESSAGE: Final = 5 << 10
"""Most bytes of a message from a message expression."""
_INVALID: Final = "Invalid"


@dataclass(frozen=True, slots=True)
class Decision:
    """Result of one validation.

    With `is_error` its evaluation failed, and the failure policy decides if the request is denied. `seconds` is the
    duration of the evaluation.
    """

    denies: bool
    is_error: bool = False
    message: str = ""
    reason: str = ""
    seconds: float = 0.0

    @property
    def error_type(self) -> str:
        """Return the error's name in metrics."""
        if not self.denies and not self.is_error:
            return "no_error"
        if self.message.startswith("compilation"):
            return "compile_error"
        if self.message.startswith("validation failed due to running out of cost budget"):
            return "out_of_budget"
        return "invalid_error"


@dataclass(frozen=True, slots=True)
class Annotation:
    """An audit annotation: its value, or the error of its expression."""

    key: str
    value: str = ""
    error: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """The decisions of all validations in order, and the audit annotations.

    `match` is the result of the match conditions, None without conditions, and `match_seconds` the duration of their
    evaluation.
    """

    decisions: Sequence[Decision] = ()
    annotations: Sequence[Annotation] = ()
    match: Match | None = None
    match_seconds: float = 0.0


_ADMITTED: Final = Decision(denies=False)


class ValidatingRules:
    """Compiled expressions of one policy. Compiling one takes several hundred microseconds."""

    def __init__(self, spec: ValidatingAdmissionPolicySpec) -> None:
        has_params = spec.param_kind is not None
        variables = Variables(params=has_params)
        variables.add_all(spec.variables)
        self._fails: Final = spec.failure_policy != "Ignore"
        self._variables: Final = variables.expressions
        self._conditions: Final = MatchConditions(
            spec.match_conditions, failure_policy=spec.failure_policy, variables=variables
        )
        environment = variables.environment()
        without_authorizer = variables.environment(authorizer=False)
        self._validations: Final = tuple(
            (each, compile_admission(each.expression, environment, BOOLEAN)) for each in spec.validations
        )
        self._messages: Final = tuple(
            compile_admission(each.message_expression, without_authorizer, TEXT) if each.message_expression else None
            for each in spec.validations
        )
        self._annotations: Final = tuple(
            (each.key, compile_admission(each.value_expression, environment, TEXT_OR_NULL))
            for each in spec.audit_annotations
        )
        self._asks: Final = variables.ask_authorizer or any(each.asks_authorizer for _, each in self._validations)
        self._has_messages: Final = any(each is not None for each in self._messages)

    def evaluate(self, inputs: Inputs, answers: AuthorizerAnswers) -> PolicyResult:
        """Return the result for a request with one parameter, called by code that `AuthorizerAnswers.run` runs. Raises
        Unanswered.
        """
        if self._conditions.is_empty:
            return self._validate(inputs, answers)
        began = perf_counter()
        # As upstream, match conditions have no variable for the namespace.
        match = self._conditions.evaluate(inputs.without_namespace(), answers)
        seconds = perf_counter() - began
        if match.error:
            judgement = self._failed(match.error)
        else:
            judgement = self._validate(inputs, answers) if match.matches else PolicyResult()
        return replace(judgement, match=match, match_seconds=seconds)

    def _validate(self, inputs: Inputs, answers: AuthorizerAnswers) -> PolicyResult:
        # The variables of the authorizer are created only if an expression uses them.
        activation = Activation(inputs, answers, BUDGET, self._variables, has_authorizer=self._asks)
        evaluated = []
        try:
            for validation, expression in self._validations:
                began = perf_counter()
                evaluation = activation.evaluate(expression)
                evaluated.append((validation, evaluation.value, evaluation.error, perf_counter() - began))
        except OutOfBudget as error:
            return self._failed(str(error))
        messages, failure = self._make_messages(inputs, answers, activation.budget)
        decisions = [
            self._decision(validation, value, error or failure, message, seconds)
            for (validation, value, error, seconds), message in zip(evaluated, messages, strict=True)
        ]
        try:
            return PolicyResult(decisions, self._annotate(inputs, answers))
        except OutOfBudget as error:
            return self._failed(str(error))

    def _failed(self, message: str) -> PolicyResult:
        return PolicyResult((Decision(denies=self._fails, is_error=True, message=message),))

    def _make_messages(self, inputs: Inputs, answers: AuthorizerAnswers, budget: int) -> tuple[Sequence[str], str]:
        """Return the messages of the message expressions, "" where there is none, and the error if they exceed the
        budget.
        """
        nothing = [""] * len(self._messages)
        if not self._has_messages:
            return nothing, ""
        activation = Activation(inputs, answers, budget, self._variables, has_authorizer=False)
        try:
            return [_message(activation, expression) for expression in self._messages], ""
        except OutOfBudget as error:
            return nothing, f"failed messageExpression: {error}"

    def _decision(self, validation: Validation, value: object, error: str, message: str, seconds: float) -> Decision:
        if error:
            return Decision(denies=self._fails, is_error=True, message=error, seconds=seconds)
        if value is True:
            return _ADMITTED
        message_text = (
            message or trim_space(validation.message) or f"failed expression: {trim_space(validation.expression)}"
        )
        return Decision(denies=True, message=message_text, reason=validation.reason or _INVALID, seconds=seconds)

    def _annotate(self, inputs: Inputs, answers: AuthorizerAnswers) -> list[Annotation]:
        """Return the audit annotations, without those whose value is null or empty. Raises OutOfBudget."""
        annotations: list[Annotation] = []
        if not self._annotations:
            return annotations
        # As upstream, these expressions compile with the variables of the authorizer, but are evaluated without them.
        activation = Activation(inputs, answers, BUDGET, self._variables, has_authorizer=False)
        for key, expression in self._annotations:
            began = perf_counter()
            evaluation = activation.evaluate(expression)
            seconds = perf_counter() - began
            if evaluation.error:
                if self._fails:
                    annotations.append(Annotation(key, error=evaluation.error, seconds=seconds))
                continue
            text = trim_space(evaluation.value) if isinstance(evaluation.value, str) else ""
            if text:
                annotations.append(Annotation(key, text, seconds=seconds))
        return annotations


def _message(activation: Activation, expression: CompiledExpression | None) -> str:
    """Return the message of an expression; "" if its value is no usable message. Raises OutOfBudget."""
    if expression is None:
        return ""
    value = activation.evaluate(expression).value
    if not isinstance(value, str):
        return ""
    text = trim_space(value)
    return "" if "\n" in text or byte_length(text) > _MAX_MESSAGE else text
