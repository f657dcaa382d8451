"""Selection of the policies of a request: the common base of both policy plugins (apiserver `policy/generic`)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from steersman.admission.interface import Attributes, Plugin, WriteKind
from steersman.admission_plugins.declaration import PluginDependencies
from steersman.admission_plugins.matching.rules import MatchedResource
from steersman.admission_plugins.matching.selectors import SelectorMatcher
from steersman.admission_plugins.matching.versions import Conversions, VersionConversion
from steersman.admission_plugins.policy.params import Param, ParamError, Params
from steersman.admission_plugins.policy.policies import Binding, Policies, Policy
from steersman.machinery.codec.serializer import to_plain
from steersman.machinery.errors.status import StatusError, not_found
from steersman.machinery.identity.schema import GroupResource, GroupVersionKind
from steersman.rest.objects import Reading
from steersman.work.offloading import offload, offload_if
from steersman.work.yielding import TimeSlice

if TYPE_CHECKING:
    from steersman.admission_rules.answers import AuthorizerAnswers
    from steersman.admission_rules.evaluation import Inputs
    from steersman.admission_rules.match_conditions import Match

_GROUP: Final = "admissionregistration.k8s.io"
_EXEMPT: Final = {
    resource: group
    for group, resources in {
        _GROUP: (
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
        ),
        "authentication.k8s.io": ("selfsubjectreviews", "tokenreviews"),
        "authorization.k8s.io": (
            "localsubjectaccessreviews",
            "selfsubjectaccessreviews",
            "selfsubjectrulesreviews",
            "subjectaccessreviews",
        ),
    }.items()
    for resource in resources
}
"""Resources, with their groups, that are exempt from all policies.

Policies themselves are exempt, so that bad ones can be repaired, and reviews, because clusters do not work without
them.
"""
_NAMESPACES: Final = GroupResource("", "namespaces")
_NAMESPACE: Final = GroupVersionKind("", "v1", "Namespace")
_HIDDEN: Final = ("managedFields", "ownerReferences", "selfLink")


def _plain_namespace(namespace: Any) -> Mapping[str, Any]:
    """Return a namespace as expressions get it, without the metadata that upstream hides."""
    metadata = {name: value for name, value in _non_empty(namespace.metadata).items() if name not in _HIDDEN}
    return {"metadata": metadata, "spec": _non_empty(namespace.spec), "status": _non_empty(namespace.status)}


def _non_empty(part: Any) -> dict[str, Any]:
    """Return the members of a part that are not empty."""
    return {name: value for name, value in to_plain(part).items() if value}


_PLAIN: Final[Reading[Mapping[str, Any]]] = Reading(_plain_namespace, "metadata", "spec", "status")


class Invocation(Struct, frozen=True):
    """A policy that matches a request by a binding, and the parameters to evaluate it with, one after the other."""

    policy: Policy
    binding: Binding
    matched: MatchedResource
    params: Sequence[Param | None]


class Misconfigured(Struct, frozen=True):
    """A matching policy, or one of its bindings, that cannot be used. `message` is upstream's."""

    policy: Policy
    binding: Binding | None
    message: str


class PolicyPlugin(Plugin):
    """Base of both policy plugins: it finds the policies of a request, and subclasses evaluate them."""

    plural = ""
    """Resource of the policies."""
    bindings_plural = ""

    def __init__(self, dependencies: PluginDependencies) -> None:
        policies, bindings = (
            dependencies.objects(_GROUP, self.plural),
            dependencies.objects(_GROUP, self.bindings_plural),
        )
        self._policies: Final = Policies(policies, bindings, dependencies.mapper)
        self._namespaces: Final = dependencies.objects("", "namespaces")
        self._selectors: Final = SelectorMatcher(self._namespaces)
        self._conversions: Final = Conversions(dependencies.mapper)
        self._params: Final = Params(dependencies.objects, dependencies.mapper)
        self._authorizer: Final = dependencies.authorizer
        self._metrics: Final = dependencies.policy_metrics
        self._condition_metrics: Final = dependencies.condition_metrics
        policies.subscribe(self.notify_work_changed)
        bindings.subscribe(self.notify_work_changed)

    def has_work(self, writes: WriteKind, *, mutating: bool) -> bool:
        return not self._policies.is_known_to_be_empty

    async def _has_policies(self, attributes: Attributes) -> bool:
        """Return True if policies exist and the request is not exempt. Changed policies are reread."""
        policies = self._policies
        if policies.is_stale:
            await policies.refresh()
            self.notify_work_changed()
        if policies.is_empty:
            return False
        action = attributes.action
        return _EXEMPT.get(action.resource) != action.group

    async def _invocations(self, attributes: Attributes) -> AsyncIterator[Invocation | Misconfigured]:
        """Yield the policies that match a request, in the order of their names, once for each binding. Raises
        StatusError.
        """
        time_slice = TimeSlice()
        found = self._policies.matching(attributes)
        if found:
            await self._selectors.refresh_namespace(attributes)
        for bound, matched in found:
            await time_slice.pause_if_over()
            policy = bound.policy
            try:
                if not self._is_selected(policy, attributes):
                    continue
                self._params.check(policy)
            except (StatusError, ParamError) as error:
                yield Misconfigured(policy, None, f"failed to configure policy: {_message(error)}")
                continue
            for binding, _ in bound.bindings.matching(attributes):
                await time_slice.pause_if_over()
                try:
                    if not self._is_selected(binding, attributes):
                        continue
                    params = await self._params.collect(policy, binding, attributes.action.namespace)
                except (StatusError, ParamError) as error:
                    yield Misconfigured(policy, binding, f"failed to configure binding: {_message(error)}")
                    continue
                if params:
                    yield Invocation(policy, binding, matched, params)

    def _is_selected(self, definition: Policy | Binding, attributes: Attributes) -> bool:
        return self._selectors.matches(attributes, definition.namespace_selector, definition.object_selector)

    async def _rules(self, policy: Policy) -> Any:
        """Return the compiled expressions of a policy."""
        rules = policy.rules
        return await offload_if(True, policy.compile) if rules is None else rules

    def count_match(self, policy: Policy, attributes: Attributes, match: Match, seconds: float) -> None:
        """Count an evaluation of match conditions.

        As upstream, the metric's type is `validate` for both kinds of policies, and exclusions are not counted.
        """
        self._condition_metrics.observe(
            "policy", policy.name, attributes.operation, "validate", seconds, match.failures, excluded=False
        )

    def _namespace(self, attributes: Attributes) -> Mapping[str, Any] | None:
        """Return the namespace of a request as plain data, None without a namespace. Raises StatusError 404."""
        name = attributes.action.namespace
        if not name or attributes.kind == _NAMESPACE:
            return None
        cached = self._namespaces.read_cached("", name, _PLAIN)
        if cached is None:
            raise not_found(_NAMESPACES, name)
        return cached

    def _answers(self, attributes: Attributes) -> AuthorizerAnswers:
        """Return the authorizer's verdicts for expressions of a request."""
        from steersman.admission_plugins.matching.expressions import authorizer_answers  # slow to import

        return authorizer_answers(attributes, self._authorizer)

    async def _inputs(self, attributes: Attributes, matched: MatchedResource, conversion: VersionConversion) -> Inputs:
        """Return the variables of a request's expressions, without parameters. Raises StatusError."""
        from steersman.admission_plugins.matching.expressions import expression_inputs  # slow to import

        plain: list[Any] = []
        for each in (attributes.obj, attributes.old):
            obj = None if each is None else await conversion.convert(attributes, each)
            plain.append(None if obj is None else await offload(_plain_object, conversion, obj))
        obj, old = plain
        return expression_inputs(attributes, matched, obj, old, self._namespace(attributes))


def _plain_object(conversion: VersionConversion, obj: Any) -> dict[str, Any]:
    kind = conversion.kind
    return {"apiVersion": kind.api_version, "kind": kind.name, **kind.to_plain(obj)}


def _message(error: Exception) -> str:
    return error.message if isinstance(error, StatusError) else str(error)
