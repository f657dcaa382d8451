"""MutatingAdmissionPolicy: expressions change an object before it is stored (apiserver `policy/mutating`)."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from steersman.admission.interface import CONNECT, CREATE, UPDATE, Attributes, Reinvocation
from steersman.admission_plugins.declaration import Declaration
from steersman.admission_plugins.matching.versions import VersionConversion
from steersman.admission_plugins.policy.dispatch import Invocation, Misconfigured, PolicyPlugin
from steersman.admission_plugins.policy.patched import decode_patched
from steersman.admission_plugins.policy.policies import Policy
from steersman.kinds.kind import Kind
from steersman.machinery.codec.serializer import encode_in_order
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.errors.status import Cause, StatusError
from steersman.machinery.large_work.sizes import is_large
from steersman.machinery.managed_fields import Schema
from steersman.tracing.trace import step
from steersman.work.offloading import mark_large, offload
from steersman.work.yielding import TimeSlice

if TYPE_CHECKING:
    from steersman.admission_rules.answers import AuthorizerAnswers
    from steersman.admission_rules.evaluation import Inputs
    from steersman.admission_rules.mutating import Mutation

_Key = tuple[str, str, str, str]
"""Names of a policy and a binding, and namespace and name of the parameter."""


class _ReinvocationState:
    """State of a write between both rounds of the chain (apiserver `policyReinvokeContext`).

    In the second round a policy with reinvocation policy IfNeeded is evaluated again, if the object was changed after
    its first evaluation.
    """

    def __init__(self) -> None:
        self.reinvocable: set[_Key] = set()
        """Policies evaluated since the last change of the object that request a second evaluation."""
        self.to_reinvoke: set[_Key] = set()
        """Policies to evaluate again, because the object was changed after their evaluation."""
        self.last_json: Any = None
        """JSON of the object after the last mutation of the round."""

    def note_change(self) -> None:
        """Note that the object has changed: the policies evaluated so far are to be evaluated again."""
        self.to_reinvoke |= self.reinvocable
        self.reinvocable = set()


class _Failure(Exception):
    """A mutation failed. The request is refused if the failure policy is Fail. The text is upstream's."""

    def __init__(self, message: str, error_type: str) -> None:
        super().__init__(message)
        self.error_type = error_type


class MutatingAdmissionPolicy(PolicyPlugin):
    """Evaluates the policies in the order of their names; each gets the object as changed by the ones before."""

    name = "MutatingAdmissionPolicy"
    operations = frozenset({CREATE, UPDATE, CONNECT})
    mutates = True
    plural = "mutatingadmissionpolicies"
    bindings_plural = "mutatingadmissionpolicybindings"

    async def admit(self, attributes: Attributes) -> None:
        """Change `attributes.obj` by all matching policies. Raises StatusError."""
        if not await self._has_policies(attributes):
            return
        refusals: list[tuple[str, str]] = []
        invocations: list[Invocation] = []
        async for each in self._invocations(attributes):
            if isinstance(each, Invocation):
                invocations.append(each)
            elif each.policy.fails_closed:
                refusals.append((_misconfigured(each), ""))
        if invocations:
            await self._mutate(attributes, invocations, refusals)
        if refusals:
            message, reason = refusals[0]
            error = attributes.forbid("admission request denied by policy")
            error.message, error.reason = message, reason or error.reason
            error.causes = (*error.causes, *(Cause("", text, "") for text, _ in refusals))
            raise error

    async def _mutate(
        self, attributes: Attributes, invocations: list[Invocation], refusals: list[tuple[str, str]]
    ) -> None:
        context = attributes.reinvocation
        state: _ReinvocationState = context.plugin_states.setdefault(self.name, _ReinvocationState())
        if context.is_second and state.last_json != await self._object_json(attributes):
            state.note_change()
        try:
            mutating = _RequestMutation(self, attributes, state, context)
            for invocation in invocations:
                for param in invocation.params:
                    plain = None if param is None else await param.plain()
                    name = f"policy {invocation.policy.name}"
                    with step(name, binding=invocation.binding.name) as opened:
                        failures = await mutating.mutate(invocation, plain)
                        if opened is not None and failures:
                            opened.set("verdict", "failed")
                    for failure in failures:
                        if invocation.policy.fails_closed:
                            refusals.append((_denied(invocation, failure), "Invalid"))
            mutating.finish()
        finally:
            state.last_json = await self._object_json(attributes)

    async def _object_json(self, attributes: Attributes) -> Any:
        """Return the object's JSON in the stored version, to detect changes."""
        obj = attributes.obj
        if obj is None:
            return None
        return await offload(self._conversions.kind_of_object(attributes).body, obj)

    def conversion(self, attributes: Attributes, invocation: Invocation) -> VersionConversion:
        """Return the conversion to the version that a policy matched. Raises StatusError."""
        return self._conversions.find(attributes, invocation.matched)

    async def inputs(self, attributes: Attributes, invocation: Invocation, conversion: VersionConversion) -> Inputs:
        """Return the variables of the expressions, without parameters. Raises StatusError."""
        return await self._inputs(attributes, invocation.matched, conversion)

    def answers(self, attributes: Attributes) -> AuthorizerAnswers:
        """Return the authorizer's verdicts for expressions of a request."""
        return self._answers(attributes)

    async def rules(self, policy: Policy) -> Any:
        """Return the compiled expressions of a policy."""
        return await self._rules(policy)

    def count(self, invocation: Invocation, error_type: str, seconds: float) -> None:
        """Count a mutation."""
        self._metrics.count_mutation(invocation.policy.name, invocation.binding.name, error_type, seconds)


class _RequestMutation:
    """Evaluation of all mutating policies for one request."""

    def __init__(
        self, plugin: MutatingAdmissionPolicy, attributes: Attributes, state: _ReinvocationState, context: Reinvocation
    ) -> None:
        self._plugin: Final = plugin
        self._attributes: Final = attributes
        self._state: Final = state
        self._context: Final = context
        self._answers: Final = plugin.answers(attributes)
        self._time_slice: Final = TimeSlice()
        self._has_changes = False

    async def mutate(self, invocation: Invocation, param: Any) -> list[str]:
        """Change the object by a policy with one parameter. Return the errors of its mutations. Raises StatusError."""
        attributes = self._attributes
        await self._time_slice.pause_if_over()
        rules = await self._plugin.rules(invocation.policy)
        conversion = self._plugin.conversion(attributes, invocation)
        inputs = (await self._plugin.inputs(attributes, invocation, conversion)).with_params(param)
        if not rules.conditions.is_empty:
            # As upstream, match conditions have no variable for the namespace.
            began = perf_counter()
            match = await rules.conditions.match(inputs.without_namespace(), self._answers)
            self._plugin.count_match(invocation.policy, attributes, match, perf_counter() - began)
            if match.error:
                return [match.error]
            if not match.matches:
                return []
        key = _key(invocation, param)
        if self._context.is_second and key not in self._state.to_reinvoke:
            return []
        before = inputs.object
        failures: list[str] = []
        for mutation, is_patch in rules.mutations if before is not None else ():
            await self._time_slice.pause_if_over()
            began = perf_counter()
            try:
                if not is_patch and not _is_typed(attributes, invocation, conversion):
                    text = "error applying patch: failed to convert patch object to typed object: no corresponding type"
                    raise _Failure(f"{text} for {_gvk(conversion)}", "invalid_error")
                await self._change(mutation, conversion, inputs, is_patch=is_patch)
            except _Failure as error:
                self._plugin.count(invocation, error.error_type, perf_counter() - began)
                failures.append(str(error))
                continue
            except StatusError:
                self._plugin.count(invocation, "invalid_error", perf_counter() - began)
                raise
            self._plugin.count(invocation, "no_error", perf_counter() - began)
            self._has_changes = True
            inputs = (await self._plugin.inputs(attributes, invocation, conversion)).with_params(param)
        if inputs.object != before:
            self._state.note_change()
            self._context.is_requested = True
        if getattr(invocation.policy.spec, "reinvocation_policy", "") == "IfNeeded":
            self._state.reinvocable.add(key)
        return failures

    async def _change(
        self, mutation: Mutation, conversion: VersionConversion, inputs: Inputs, *, is_patch: bool
    ) -> None:
        """Apply one mutation. Raises _Failure, and StatusError for errors regardless of the failure policy."""
        from steersman.admission_rules.mutating import MutationError  # slow to import

        attributes, kind = self._attributes, conversion.kind
        try:
            schema = kind.schema
        except LookupError:
            text = (
                f"Resource kind {_gvk(conversion)} not found. There can be a delay between "
                "when CustomResourceDefinitions are created and when they are available."
            )
            raise StatusError(503, "ServiceUnavailable", text, details_present=False) from None
        try:
            plain, large = await self._answers.run(_mutated, mutation, inputs, self._answers, schema)
        except MutationError as error:
            raise _Failure(str(error), error.error_type) from None
        if plain is inputs.object:
            return
        if large:
            mark_large()  # the account's work counted as small so far
        patched = await offload(_patched if is_patch else _applied, kind, plain)
        attributes.obj = await conversion.convert_back(attributes, patched)

    def finish(self) -> None:
        """Note a last change of the object, after all policies have been evaluated."""
        if self._has_changes:
            self._state.note_change()
            self._context.is_requested = True


def _gvk(conversion: VersionConversion) -> str:
    """Return a kind as Go prints it."""
    return f"{conversion.kind.group}/{conversion.kind.version}, Kind={conversion.kind.name}"


def _is_typed(attributes: Attributes, invocation: Invocation, conversion: VersionConversion) -> bool:
    """Return True if upstream finds the type of the object.

    Upstream searches the OpenAPI document of the resource's group version. Options of CONNECT are in no document, and
    Scale, Eviction and TokenRequest are in documents of other groups.
    """
    matched = invocation.matched
    return attributes.operation != CONNECT and (conversion.kind.group, conversion.kind.version) == (
        matched.group,
        matched.version,
    )


def _mutated(mutation: Mutation, inputs: Inputs, answers: AuthorizerAnswers, schema: Schema) -> tuple[Any, bool]:
    """Return the mutated object as plain data, and True if it is a new, large object."""
    plain = mutation(inputs, answers, schema)
    return plain, plain is not inputs.object and is_large(encode_in_order(plain))


def _patched(kind: Kind[Any], plain: Any) -> Any:
    """Return the object that results from a JSON Patch. Raises StatusError."""
    return _without_type(decode_patched(kind, plain))


def _applied(kind: Kind[Any], plain: Any) -> Any:
    """Return the object that results from an apply configuration. Raises _Failure."""
    try:
        return _without_type(kind.from_applied(plain).obj)
    except DecodeError as error:
        raise _Failure(f"unable to convert unstructured object to {kind.gvk}: {error}", "invalid_error") from None


def _without_type(obj: Any) -> Any:
    obj.kind = obj.api_version = ""
    return obj


def _key(invocation: Invocation, param: Any) -> _Key:
    metadata = {} if param is None else param.get("metadata", {})
    return invocation.policy.name, invocation.binding.name, metadata.get("namespace", ""), metadata.get("name", "")


def _misconfigured(found: Misconfigured) -> str:
    if found.binding is None:
        return f'policy "{found.policy.name}" denied request: {found.message}'
    return f"policy '{found.policy.name}' with binding '{found.binding.name}' denied request: {found.message}"


def _denied(invocation: Invocation, message: str) -> str:
    return f"policy '{invocation.policy.name}' with binding '{invocation.binding.name}' denied request: {message}"


MUTATING_ADMISSION_POLICY: Final = Declaration(
    MutatingAdmissionPolicy, on_by_default=True, make=MutatingAdmissionPolicy
)
