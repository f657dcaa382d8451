"""ValidatingAdmissionPolicy: expressions check a write (apiserver `policy/validating`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from steersman.admission.interface import CONNECT, CREATE, DELETE, UPDATE, Attributes
from steersman.admission_plugins.declaration import Declaration
from steersman.admission_plugins.matching.rules import MatchedResource
from steersman.admission_plugins.policy.dispatch import Invocation, Misconfigured, PolicyPlugin
from steersman.machinery.codec.serializer import encode_in_order
from steersman.machinery.errors.status import Cause
from steersman.machinery.validation.formats import byte_length
from steersman.tracing.trace import current_step, step
from steersman.work.yielding import TimeSlice

if TYPE_CHECKING:
    from steersman.admission_rules.answers import AuthorizerAnswers
    from steersman.admission_rules.evaluation import Inputs
    from steersman.admission_rules.validating import Annotation, Decision

_CODES: Final = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413, "Invalid": 422}
"""HTTP status codes by the reason of a refusal."""
_INVALID: Final = "Invalid"
_FAILURE: Final = "validation.policy.admission.k8s.io/validation_failure"
_LONGEST: Final = 10 << 10
"""Most bytes of an audit annotation's value."""


class ValidatingAdmissionPolicy(PolicyPlugin):
    """Evaluates all validations of all matching policies. The first refusal is reported."""

    name = "ValidatingAdmissionPolicy"
    operations = frozenset({CREATE, UPDATE, DELETE, CONNECT})
    validates = True
    plural = "validatingadmissionpolicies"
    bindings_plural = "validatingadmissionpolicybindings"

    async def validate(self, attributes: Attributes) -> None:
        """Raise StatusError if a policy refuses the request."""
        if not await self._has_policies(attributes):
            return
        judging = _RequestEvaluation(self, attributes)
        async for each in self._invocations(attributes):
            if isinstance(each, Misconfigured):
                judging.refuse_misconfigured(each)
            else:
                with step(f"policy {each.policy.name}", binding=each.binding.name):
                    await judging.evaluate(each)
        judging.finish()

    async def inputs(self, attributes: Attributes, matched: MatchedResource) -> Inputs:
        """Return the variables of the expressions, without parameters. Raises StatusError."""
        return await self._inputs(attributes, matched, self._conversions.find(attributes, matched))

    def answers(self, attributes: Attributes) -> AuthorizerAnswers:
        """Return the authorizer's verdicts for expressions of a request."""
        return self._answers(attributes)

    async def rules(self, invocation: Invocation) -> Any:
        """Return the compiled expressions of the policy."""
        return await self._rules(invocation.policy)

    def count(self, invocation: Invocation, error_type: str, action: str, seconds: float) -> None:
        """Count a validation with the action that followed."""
        self._metrics.count_validation(invocation.policy.name, invocation.binding.name, error_type, action, seconds)


class _RequestEvaluation:
    """Evaluation of all validating policies for one request."""

    def __init__(self, plugin: ValidatingAdmissionPolicy, attributes: Attributes) -> None:
        self._plugin: Final = plugin
        self._attributes: Final = attributes
        self._time_slice: Final = TimeSlice()
        self._refusals: Final[list[tuple[str, str]]] = []
        """Messages and reasons of refusals."""
        self._answers: AuthorizerAnswers | None = None
        self._inputs: tuple[MatchedResource, Inputs] | None = None
        self._annotations: dict[str, dict[str, dict[str, None]]] = {}
        """Values of audit annotations by policy and key, in order."""

    def refuse_misconfigured(self, found: Misconfigured) -> None:
        """Refuse the request because of an unusable policy, if its failure policy is Fail."""
        if found.policy.fails_closed:
            self._refuse(found.policy.name, None if found.binding is None else found.binding.name, found.message, "")

    def _refuse(self, policy: str, binding: str | None, message: str, reason: str) -> None:
        where = "" if binding is None else f" with binding '{binding}'"
        text = f"ValidatingAdmissionPolicy '{policy}'{where} denied request: {message}"
        self._refusals.append((text, reason or _INVALID))

    async def evaluate(self, invocation: Invocation) -> None:
        """Evaluate a policy with each of its parameters. Raises StatusError."""
        plugin, attributes = self._plugin, self._attributes
        rules = await plugin.rules(invocation)
        if self._answers is None:
            self._answers = plugin.answers(attributes)
        if self._inputs is None or self._inputs[0] != invocation.matched:
            self._inputs = invocation.matched, await plugin.inputs(attributes, invocation.matched)
        inputs = self._inputs[1]
        judgements = []
        for param in invocation.params:
            await self._time_slice.pause_if_over()
            with_param = inputs if param is None else inputs.with_params(await param.plain())
            judgements.append(await self._answers.run(rules.evaluate, with_param, self._answers))
        for judgement in judgements:
            if judgement.match is not None:
                plugin.count_match(invocation.policy, attributes, judgement.match, judgement.match_seconds)
            for index, decision in enumerate(judgement.decisions):
                await self._time_slice.pause_if_over()
                if decision.denies:
                    self._enforce(invocation, index, decision)
                elif decision.is_error:
                    plugin.count(invocation, decision.error_type, "allow", decision.seconds)
            for annotation in judgement.annotations:
                self._annotate(invocation, annotation)

    def _enforce(self, invocation: Invocation, index: int, decision: Decision) -> None:
        if (opened := current_step()) is not None:
            opened.set("verdict", f"{','.join(invocation.binding.actions)} (validation {index})")
        policy, binding = invocation.policy.name, invocation.binding.name
        for action in invocation.binding.actions:
            match action:
                case "Deny":
                    self._refuse(policy, binding, decision.message, decision.reason)
                    self._plugin.count(invocation, decision.error_type, "deny", decision.seconds)
                case "Audit":
                    self._attributes.annotate(_FAILURE, _failure(invocation, index, decision))
                    self._plugin.count(invocation, decision.error_type, "audit", decision.seconds)
                case "Warn":
                    text = f"Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{binding}': "
                    self._attributes.warn(text + decision.message)
                    self._plugin.count(invocation, decision.error_type, "warn", decision.seconds)

    def _annotate(self, invocation: Invocation, annotation: Annotation) -> None:
        policy = invocation.policy.name
        if annotation.error:
            self._refuse(policy, invocation.binding.name, annotation.error, "")
            self._plugin.count(invocation, _error_type(annotation.error), "deny", annotation.seconds)
            return
        value = annotation.value
        if byte_length(value) > _LONGEST:
            value = value.encode()[:_LONGEST].decode(errors="ignore")
        self._annotations.setdefault(policy, {}).setdefault(annotation.key, {})[value] = None

    def finish(self) -> None:
        """Add the collected audit annotations. Raises StatusError if a policy refused the request."""
        for policy, by_key in self._annotations.items():
            for key, values in by_key.items():
                self._attributes.annotate(f"{policy}/{key}", ", ".join(values))
        if self._refusals:
            message, reason = self._refusals[0]
            error = self._attributes.forbid(message)
            error.reason, error.code = reason, _CODES.get(reason, _CODES[_INVALID])
            error.causes = (*error.causes, Cause("", message, ""))
            raise error


def _error_type(message: str) -> str:
    from steersman.admission_rules.validating import Decision  # slow to import

    return Decision(denies=True, is_error=True, message=message).error_type


def _failure(invocation: Invocation, index: int, decision: Decision) -> str:
    """Return the value of the audit annotation for a failed validation."""
    value: Mapping[str, Any] = {
        "message": decision.message,
        "policy": invocation.policy.name,
        "binding": invocation.binding.name,
        "expressionIndex": index,
        "validationActions": list(invocation.binding.actions),
    }
    return encode_in_order([value]).decode()


VALIDATING_ADMISSION_POLICY: Final = Declaration(
    ValidatingAdmissionPolicy, on_by_default=True, make=ValidatingAdmissionPolicy
)
