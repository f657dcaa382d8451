"""Rules of webhooks and policies, and an index that finds the rules that match a request.

A rule depends on the operation, the resource and its scope, and rarely on a name. So the result is computed once for
each such kind of request and cached. A request without matches costs one lookup, however many webhooks there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Generic, Protocol, TypeVar

from msgspec import Struct

from steersman.admission.interface import Attributes
from steersman.catalogue.rest_mapper import RESTMapper
from steersman.endpoints.discovery import ServedResource
from steersman.machinery.errors.status import StatusError, internal
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.work.bounded_cache import BoundedCache

E = TypeVar("E")

_ANY: Final = "*"
_GROUP: Final = "admissionregistration.k8s.io"
_EXEMPT: Final = frozenset(
    {
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    }
)
_MAX_CACHED: Final = 10_000
"""Most kinds of requests with cached results."""


class Rule(Protocol):
    """Common members of the rules of webhooks and policies (admissionregistration/v1 RuleWithOperations)."""

    @property
    def operations(self) -> Sequence[str]:
        """Return the verbs in capitals, e.g. CREATE, or "*" for all."""
        ...

    @property
    def api_groups(self) -> Sequence[str]:
        """Return the API groups ("" for the core group), or "*" for all."""
        ...

    @property
    def api_versions(self) -> Sequence[str]:
        """Return the API versions, or "*" for all."""
        ...

    @property
    def resources(self) -> Sequence[str]:
        """Return the resources, with subresources after a slash, e.g. `pods/log`; `*` stands for any part."""
        ...

    @property
    def scope(self) -> str | None:
        """Return Cluster, Namespaced, or "*"; None means "*"."""
        ...


class MatchedResource(Struct, frozen=True):
    """Resource and kind that a rule matched: the request's own, or an equivalent in another version.

    An equivalent version is only matched with matchPolicy Equivalent.
    """

    group: str
    version: str
    resource: str
    subresource: str
    kind: GroupVersionKind


class Entry(Struct, Generic[E], frozen=True):
    """A webhook, policy or binding with its rules.

    A request must match one of `rules` and none of `excluded`. A rule of a policy may be limited to named objects. With
    `all_without_rules` an entry without rules matches every request.
    """

    value: E
    rules: Sequence[Rule]
    excluded: Sequence[Rule] = ()
    equivalent: bool = True
    """True if rules may match another version of the request's resource (matchPolicy Equivalent)."""
    all_without_rules: bool = False

    @property
    def names_objects(self) -> bool:
        """Return True if a rule depends on the name of the object."""
        return any(_names(rule) for rule in (*self.rules, *self.excluded))


def is_exempt(attributes: Attributes) -> bool:
    """Return True for a write of a webhook or policy configuration: webhooks and policies never apply to these."""
    kind = attributes.kind
    return kind.group == _GROUP and kind.kind in _EXEMPT


class RuleIndex(Generic[E]):
    """Ordered entries, indexed by the requests that their rules match."""

    def __init__(self, entries: Iterable[Entry[E]], mapper: RESTMapper) -> None:
        self._entries: Final = tuple(entries)
        self._mapper: Final = mapper
        self._revision = mapper.revision
        self._cached: BoundedCache[tuple[str, str, str, str, str, bool], tuple[_CachedEntry[E], ...]] = BoundedCache(
            _MAX_CACHED
        )

    def matching(self, attributes: Attributes) -> Sequence[tuple[E, MatchedResource]]:
        """Return the values of the entries that match a request, in order, each with the matched resource.

        Raises StatusError 500 if the matched resource has no kind.
        """
        if not self._entries:
            return ()
        if self._revision != self._mapper.revision:
            self._revision = self._mapper.revision
            self._cached.forget()
        action = attributes.action
        key = (
            attributes.operation,
            action.group,
            action.version,
            action.resource,
            action.subresource,
            not action.namespace,
        )
        found = self._cached[key]
        if found is None:
            found = tuple(self._find(attributes))
            self._cached.keep(key, found)
        if not found:
            return ()
        return [
            (each.entry.value, matched) for each in found if (matched := each.matched_resource(attributes)) is not None
        ]

    def _find(self, attributes: Attributes) -> Iterable[_CachedEntry[E]]:
        request = _Request(attributes, self._mapper)
        for entry in self._entries:
            if entry.names_objects:
                yield _NamedEntry(entry, request)
            elif (matched := request.match(entry, None)) is not None:
                yield _UnnamedEntry(entry, matched)


class _CachedEntry(Protocol[E]):
    @property
    def entry(self) -> Entry[E]: ...

    def matched_resource(self, attributes: Attributes) -> MatchedResource | None:
        """Return the matched resource of a request, None if the entry does not match."""


class _UnnamedEntry(Struct, Generic[E], frozen=True):
    entry: Entry[E]
    matched: MatchedResource

    def matched_resource(self, attributes: Attributes) -> MatchedResource | None:
        return self.matched


class _NamedEntry(Struct, Generic[E], frozen=True):
    entry: Entry[E]
    request: _Request

    def matched_resource(self, attributes: Attributes) -> MatchedResource | None:
        return self.request.match(self.entry, attributes.name)


class _Request:
    """The parts of a request that rules depend on, the same for all requests that differ only in names."""

    def __init__(self, attributes: Attributes, mapper: RESTMapper) -> None:
        action = attributes.action
        self._operation: Final = attributes.operation
        self._own: Final = MatchedResource(
            action.group, action.version, action.resource, action.subresource, attributes.kind
        )
        self._equivalents: Final = tuple(
            MatchedResource(
                each.group, each.version, each.resource.plural, action.subresource, _kind_of(each, self._own)
            )
            for each in mapper.equivalents(action.group, action.version, action.resource)
        )
        self._is_namespace: Final = (action.group, action.resource) == ("", "namespaces")
        self._in_namespace: Final = bool(action.namespace)

    def match(self, entry: Entry[E], name: str | None) -> MatchedResource | None:
        """Return the resource that an entry matches, None if it does not match. Raises StatusError.

        `name` is the name of the object.
        """
        if self._match_rules(entry.excluded, entry, name) is not None:
            return None
        if not entry.rules and entry.all_without_rules:
            return self._own
        return self._match_rules(entry.rules, entry, name)

    def _match_rules(self, rules: Sequence[Rule], entry: Entry[E], name: str | None) -> MatchedResource | None:
        for rule in rules:
            if self._rule_matches(rule, self._own, name):
                return self._own
        if entry.equivalent:
            for rule in rules:
                for each in self._equivalents:
                    if self._rule_matches(rule, each, name):
                        if not each.kind.kind:
                            shown = f"{each.group}/{each.version}, Resource={each.resource}"
                            raise _unknown_kind(shown)
                        return each
        return None

    def _rule_matches(self, rule: Rule, matched: MatchedResource, name: str | None) -> bool:
        if not (
            self._in_scope(rule.scope)
            and _contains(self._operation, rule.operations)
            and _contains(matched.group, rule.api_groups)
            and _contains(matched.version, rule.api_versions)
            and _is_resource(rule.resources, matched.resource, matched.subresource)
        ):
            return False
        names = _names(rule)
        return not names or name in names

    def _in_scope(self, scope: str | None) -> bool:
        if scope == "Namespaced":
            return not self._is_namespace and self._in_namespace
        if scope == "Cluster":
            return self._is_namespace or not self._in_namespace
        return scope is None or scope == _ANY


def _unknown_kind(shown: str) -> StatusError:
    return internal(f"unable to convert to {shown}: unknown kind")


def _kind_of(served: ServedResource, own: MatchedResource) -> GroupVersionKind:
    """Return the kind of a resource in another version, or of its subresource; an empty kind if it is not served there."""
    if not own.subresource:
        return served.form.gvk
    for each in served.subresources:
        if each.name == own.subresource:
            return served.form.gvk if each.kind is None else each.kind.gvk
    return GroupVersionKind("", "", "")


def _names(rule: Rule) -> Sequence[str]:
    names: Sequence[str] = getattr(rule, "resource_names", ())
    return names


def _contains(desired: str, listed: Sequence[str]) -> bool:
    return desired in listed or _ANY in listed


def _is_resource(listed: Sequence[str], resource: str, subresource: str) -> bool:
    for each in listed:
        named, _, below = each.partition("/")
        if named in (_ANY, resource) and below in (_ANY, subresource):
            return True
    return False
