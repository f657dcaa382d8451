"""The stored policies with their bindings, indexed by the requests that they match."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from steersman.admission.interface import Attributes
from steersman.admission_plugins.matching.rules import Entry, MatchedResource, RuleIndex
from steersman.admission_plugins.matching.selectors import ParsedSelector, parse_selector
from steersman.api.admissionregistration.v1 import (
    MatchResources,
    MutatingAdmissionPolicyBindingSpec,
    MutatingAdmissionPolicySpec,
    ValidatingAdmissionPolicyBindingSpec,
    ValidatingAdmissionPolicySpec,
)
from steersman.catalogue.rest_mapper import RESTMapper
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.rest.objects import Objects, Reading

if TYPE_CHECKING:
    from steersman.admission_rules.mutating import MutatingRules
    from steersman.admission_rules.validating import ValidatingRules

Spec = ValidatingAdmissionPolicySpec | MutatingAdmissionPolicySpec
BindingSpec = ValidatingAdmissionPolicyBindingSpec | MutatingAdmissionPolicyBindingSpec
R = TypeVar("R", "ValidatingRules", "MutatingRules")


class Policy:
    """A policy, with its compiled expressions once it has been used."""

    __slots__ = (
        "_rules",
        "entry",
        "fails_closed",
        "name",
        "namespace_selector",
        "object_selector",
        "param_kind",
        "spec",
    )

    def __init__(self, name: str, spec: Spec) -> None:
        self.name: Final = name
        self.spec: Final = spec
        self.fails_closed: Final = spec.failure_policy != "Ignore"
        self.namespace_selector, self.object_selector = _selectors(spec.match_constraints)
        self.entry: Final = _policy_entry(self, spec.match_constraints)
        self.param_kind: Final = _param_kind(spec)
        self._rules: Any = None

    @property
    def rules(self) -> Any:
        """Return the compiled expressions; None before `compile`."""
        return self._rules

    def compile(self) -> Any:
        """Compile the expressions and return them. Call it in a worker thread: each takes several hundred microseconds."""
        # The imports are slow, and most servers have no policies.
        if isinstance(self.spec, ValidatingAdmissionPolicySpec):
            from steersman.admission_rules.validating import ValidatingRules

            self._rules = ValidatingRules(self.spec)
        else:
            from steersman.admission_rules.mutating import MutatingRules

            self._rules = MutatingRules(self.spec)
        return self._rules


class Binding:
    """A binding: it puts a policy into effect for some requests, with parameters."""

    __slots__ = ("entry", "name", "namespace_selector", "object_selector", "policy", "spec")

    def __init__(self, name: str, spec: BindingSpec) -> None:
        self.name: Final = name
        self.spec: Final = spec
        self.policy: Final = spec.policy_name
        self.namespace_selector, self.object_selector = _selectors(spec.match_resources)
        self.entry: Final = _policy_entry(self, spec.match_resources)

    @property
    def actions(self) -> Sequence[str]:
        """Return the actions for failed validations (Deny, Warn, Audit); none for a mutating policy."""
        return self.spec.validation_actions if isinstance(self.spec, ValidatingAdmissionPolicyBindingSpec) else ()


E = TypeVar("E", Policy, Binding)


def _selectors(match: MatchResources | None) -> tuple[ParsedSelector, ParsedSelector]:
    if match is None:
        return parse_selector(None), parse_selector(None)
    return parse_selector(match.namespace_selector), parse_selector(match.object_selector)


def _policy_entry(value: E, match: MatchResources | None) -> Entry[E]:
    if match is None:
        return Entry(value, (), all_without_rules=True)
    return Entry(
        value,
        tuple(match.resource_rules),
        tuple(match.exclude_resource_rules),
        equivalent=match.match_policy == "Equivalent",
        all_without_rules=True,
    )


def _param_kind(spec: Spec) -> GroupVersionKind | None:
    kind = spec.param_kind
    if kind is None:
        return None
    group, _, version = kind.api_version.rpartition("/")
    return GroupVersionKind(group, version, kind.kind)


_POLICIES: Final[Reading[Policy]] = Reading(
    lambda policy: Policy(policy.metadata.name, policy.spec), "metadata.name", "spec"
)
_BINDINGS: Final[Reading[Binding]] = Reading(
    lambda binding: Binding(binding.metadata.name, binding.spec), "metadata.name", "spec"
)


class BoundPolicy(Generic[R]):
    """A policy with its bindings."""

    __slots__ = ("bindings", "policy")

    def __init__(self, policy: Policy, bindings: RuleIndex[Binding]) -> None:
        self.policy: Final = policy
        self.bindings: Final = bindings


class Policies:
    """Follows the policies and bindings of one of both kinds. Policies without a binding are left out."""

    def __init__(self, policies: Objects, bindings: Objects, mapper: RESTMapper) -> None:
        self._policies: Final = policies
        self._bindings: Final = bindings
        self._change_counts: Final = policies.change_count, bindings.change_count
        self._mapper: Final = mapper
        self._read_at_change = -1, -1
        self._index: RuleIndex[BoundPolicy[Any]] | None = None

    @property
    def is_stale(self) -> bool:
        """Return True if a policy or binding has changed since the last `refresh`."""
        policies, bindings = self._change_counts
        return self._read_at_change != (policies(), bindings())

    @property
    def is_known_to_be_empty(self) -> bool:
        """Return True if it is certain that no bound policy exists now."""
        if self._index is not None:
            return False
        policies, bindings = self._change_counts
        return self._read_at_change == (policies(), bindings())

    @property
    def is_empty(self) -> bool:
        """Return True if the last `refresh` found no bound policy."""
        return self._index is None

    async def refresh(self) -> None:
        """Read the stored policies and bindings."""
        policies_changed, bindings_changed = self._change_counts
        while self.is_stale:
            changed = policies_changed(), bindings_changed()
            policies = await self._policies.read_all("", _POLICIES)
            by_policy: dict[str, list[Entry[Binding]]] = {}
            for binding in await self._bindings.read_all("", _BINDINGS):
                by_policy.setdefault(binding.policy, []).append(binding.entry)
            if changed != (policies_changed(), bindings_changed()):
                continue  # a policy or binding changed while all were read
            self._read_at_change = changed
            bound = [self._bind(each, by_policy[each.name]) for each in policies if each.name in by_policy]
            self._index = RuleIndex(bound, self._mapper) if bound else None

    def _bind(self, policy: Policy, bindings: list[Entry[Binding]]) -> Entry[BoundPolicy[Any]]:
        entry = policy.entry
        return Entry(
            BoundPolicy(policy, RuleIndex(bindings, self._mapper)),
            entry.rules,
            entry.excluded,
            equivalent=entry.equivalent,
            all_without_rules=entry.all_without_rules,
        )

    def matching(self, attributes: Attributes) -> Sequence[tuple[BoundPolicy[Any], MatchedResource]]:
        """Return the policies whose rules match a request, by name, each with the matched resource. Raises StatusError."""
        return () if self._index is None else self._index.matching(attributes)
