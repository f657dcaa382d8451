"""RBAC: what the roles bound to a user, or to one of their groups, allow (rbac.authorization.k8s.io/v1).

The index is fed with every role and binding and answers from memory. It finds the bindings of a user by the user's
name and groups, so a decision does not grow dearer with the number of bindings; what it found it remembers until the
next change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from steersman.api.rbac.v1 import (
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
    Subject,
)
from steersman.authentication.aggregate import aggregate
from steersman.authentication.user import UserInfo, service_account_username
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Decision, ResolvedRules, Verdict
from steersman.authorization.rule_index import Names, RuleIndex
from steersman.machinery.field import quote

GROUP: Final = "rbac.authorization.k8s.io"

_MAX_KEY: Final = 512
"""Characters of a request's attributes up to which its judgement is remembered."""

_MAX_JUDGEMENTS: Final = 32_768
_MAX_GRANTS: Final = 4_096
"""Remembered answers; when there are more, all are forgotten (they take microseconds to find again)."""

_NO_OPINION: Final = Verdict(Decision.NO_OPINION)

_SubjectKey = tuple[str, str]
"""("User" or "Group", name)."""


class RoleNotFound(LookupError):
    """A binding refers to a role that is not there. `resource` is roles or clusterroles."""

    def __init__(self, resource: str, name: str) -> None:
        super().__init__(f"{resource.removesuffix('s')}.{GROUP} {quote(name)} not found")
        self.resource = resource
        self.name = name


@dataclass(frozen=True, slots=True)
class _Rules:
    """A role's rules, and the same to be found."""

    rules: tuple[PolicyRule, ...]
    index: RuleIndex


@dataclass(frozen=True, slots=True)
class _Binding:
    """A binding of either kind; `namespace` is empty for a ClusterRoleBinding."""

    namespace: str
    name: str
    role_ref: RoleRef
    subjects: Sequence[Subject]

    def subject_keys(self) -> dict[_SubjectKey, int]:
        """For whom it is, each with the place of the first subject that says so."""
        keys: dict[_SubjectKey, int] = {}
        for place, subject in enumerate(self.subjects):
            if subject.kind in ("User", "Group"):
                keys.setdefault((subject.kind, subject.name), place)
            elif subject.kind == "ServiceAccount" and (namespace := subject.namespace or self.namespace):
                keys.setdefault(("User", service_account_username(namespace, subject.name)), place)
        return keys

    def describe(self, place: int) -> str:
        """What an audit log reads of a right this binding gives to the subject at `place`."""
        kind = "RoleBinding" if self.namespace else "ClusterRoleBinding"
        name = f"{self.name}/{self.namespace}" if self.namespace else self.name
        subject = self.subjects[place]
        whom = subject.name
        if subject.kind == "ServiceAccount":
            whom = f"{subject.name}/{subject.namespace or self.namespace}"
        role = f"{self.role_ref.kind} {quote(self.role_ref.name)}"
        return f"{kind} {quote(name)} of {role} to {subject.kind} {quote(whom)}"


@dataclass(frozen=True, slots=True)
class _Grant:
    """One binding that is for a user: the rules it gives and the verdict they lead to, or why it gives none."""

    rules: _Rules | None
    allowed: Verdict
    error: str = ""


@dataclass(frozen=True, slots=True)
class _Judgement:
    """What holds for one kind of request: who allows it for which object names, and the verdict if nobody does."""

    allowances: tuple[tuple[frozenset[str] | None, Verdict], ...]
    refusal: Verdict


class RbacAuthorizer:
    """Judges by roles and bindings, with which it is kept up to date by the `set_` methods (None: deleted)."""

    def __init__(self) -> None:
        self._roles: dict[tuple[str, str], _Rules] = {}
        self._bindings: dict[tuple[str, str], _Binding] = {}
        self._subjects: dict[str, dict[_SubjectKey, dict[str, int]]] = {}
        self._grants: dict[tuple[str, str, tuple[str, ...]], tuple[_Grant, ...]] = {}
        self._judgements: dict[tuple[str | tuple[str, ...], ...], _Judgement] = {}
        self.generation = 0
        """Grows with every change; what others derive from the rules is good for one generation."""

    def set_cluster_role(self, name: str, role: ClusterRole | None) -> None:
        self._set_role("", name, None if role is None else role.rules or ())

    def set_role(self, namespace: str, name: str, role: Role | None) -> None:
        self._set_role(namespace, name, None if role is None else role.rules or ())

    def set_cluster_role_binding(self, name: str, binding: ClusterRoleBinding | None) -> None:
        found = None if binding is None else _Binding("", name, binding.role_ref, binding.subjects)
        self._set_binding("", name, found)

    def set_role_binding(self, namespace: str, name: str, binding: RoleBinding | None) -> None:
        found = None if binding is None else _Binding(namespace, name, binding.role_ref, binding.subjects)
        self._set_binding(namespace, name, found)

    def authorize(self, attributes: Attributes) -> Verdict:
        user = attributes.user
        if attributes.resource_request:
            key: tuple[str | tuple[str, ...], ...] = (
                attributes.namespace,
                user.name,
                user.groups,
                attributes.verb,
                attributes.api_group,
                attributes.resource,
                attributes.subresource,
            )
        else:
            key = (attributes.namespace, user.name, user.groups, attributes.verb, attributes.path)
        judgement = self._judgements.get(key)
        if judgement is None:
            judgement = self._judge(attributes)
            self._remember(key, judgement)
        for names, verdict in judgement.allowances:
            if names is None or attributes.name in names:
                return verdict
        return judgement.refusal

    def rules_for(self, user: UserInfo, namespace: str) -> ResolvedRules:
        """Follows the RuleResolver contract; an empty namespace asks for what holds in the whole cluster."""
        rules, error = self.policy_rules_for(user, namespace)
        return ResolvedRules(
            tuple(rule for rule in rules if rule.resources),
            tuple(rule for rule in rules if rule.non_resource_urls),
            error=error,
        )

    def policy_rules_for(self, user: UserInfo, namespace: str) -> tuple[list[PolicyRule], str]:
        """All rules that hold for `user` in `namespace`, and what could not be found of them."""
        grants = self._all_grants(user, namespace)
        rules = [rule for grant in grants if grant.rules is not None for rule in grant.rules.rules]
        return rules, aggregate(grant.error for grant in grants if grant.error)

    def rules_of(self, role_ref: RoleRef, namespace: str) -> tuple[PolicyRule, ...]:
        """The rules a binding in `namespace` (empty: a ClusterRoleBinding) gets from the role it refers to.

        Raises RoleNotFound, and ValueError for a reference to another kind.
        """
        return self._role(role_ref, namespace).rules

    def _set_role(self, namespace: str, name: str, rules: Sequence[PolicyRule] | None) -> None:
        if rules is None:
            self._roles.pop((namespace, name), None)
        else:
            self._roles[namespace, name] = _Rules(tuple(rules), RuleIndex(rules))
        self._forget()

    def _set_binding(self, namespace: str, name: str, binding: _Binding | None) -> None:
        previous = self._bindings.pop((namespace, name), None)
        subjects = self._subjects.setdefault(namespace, {})
        if previous is not None:
            for key in previous.subject_keys():
                found = subjects[key]
                del found[name]
                if not found:
                    del subjects[key]
        if binding is not None:
            self._bindings[namespace, name] = binding
            for key, place in binding.subject_keys().items():
                subjects.setdefault(key, {})[name] = place
        if not subjects:
            del self._subjects[namespace]
        self._forget()

    def _forget(self) -> None:
        self.generation += 1
        self._grants.clear()
        self._judgements.clear()

    def _judge(self, attributes: Attributes) -> _Judgement:
        """Follows the user's bindings for one kind of request: the cluster's first, then the namespace's."""
        grants = self._all_grants(attributes.user, attributes.namespace)
        allowances: list[tuple[frozenset[str] | None, Verdict]] = []
        for grant in grants:
            for names in _allowed_names(grant.rules, attributes):
                allowances.append((names, grant.allowed))
                if names is None:  # nothing after it can be needed
                    return _Judgement(tuple(allowances), _NO_OPINION)
        error = aggregate(grant.error for grant in grants if grant.error)
        refusal = Verdict(Decision.NO_OPINION, f"RBAC: {error}") if error else _NO_OPINION
        return _Judgement(tuple(allowances), refusal)

    def _remember(self, key: tuple[str | tuple[str, ...], ...], judgement: _Judgement) -> None:
        if sum(map(len, key)) > _MAX_KEY:  # what a client writes into a URL is not to fill the memory
            return
        if len(self._judgements) >= _MAX_JUDGEMENTS:
            self._judgements.clear()
        self._judgements[key] = judgement

    def _all_grants(self, user: UserInfo, namespace: str) -> tuple[_Grant, ...]:
        grants = self._grants_in("", user)
        return (*grants, *self._grants_in(namespace, user)) if namespace else grants

    def _grants_in(self, namespace: str, user: UserInfo) -> tuple[_Grant, ...]:
        """The bindings of one namespace (empty: the ClusterRoleBindings) that are for `user`, by name."""
        subjects = self._subjects.get(namespace)
        if subjects is None:
            return ()
        key = (namespace, user.name, user.groups)
        grants = self._grants.get(key)
        if grants is None:
            grants = tuple(self._find_grants(namespace, subjects, user))
            if len(self._grants) >= _MAX_GRANTS:
                self._grants.clear()
            self._grants[key] = grants
        return grants

    def _find_grants(
        self, namespace: str, subjects: dict[_SubjectKey, dict[str, int]], user: UserInfo
    ) -> Iterator[_Grant]:
        places = dict(subjects.get(("User", user.name), ()))
        for group in user.groups:
            for name, place in subjects.get(("Group", group), {}).items():
                places[name] = min(place, places.get(name, place))
        for name in sorted(places):
            binding = self._bindings[namespace, name]
            try:
                rules = self._role(binding.role_ref, namespace)
            except (RoleNotFound, ValueError) as error:
                yield _Grant(None, _NO_OPINION, str(error))
                continue
            reason = f"RBAC: allowed by {binding.describe(places[name])}"
            yield _Grant(rules, Verdict(Decision.ALLOW, reason))

    def _role(self, role_ref: RoleRef, namespace: str) -> _Rules:
        if role_ref.kind == "ClusterRole":
            rules, resource = self._roles.get(("", role_ref.name)), "clusterroles"
        elif role_ref.kind == "Role":
            rules, resource = (self._roles.get((namespace, role_ref.name)) if namespace else None), "roles"
        else:
            raise ValueError(f"unsupported role reference kind: {quote(role_ref.kind)}")
        if rules is None:
            raise RoleNotFound(resource, role_ref.name)
        return rules


def _allowed_names(rules: _Rules | None, attributes: Attributes) -> Sequence[Names]:
    """The objects for which a role allows such requests, in few sets; None alone for all."""
    if rules is None:
        return ()
    a = attributes
    if not a.resource_request:
        return (None,) if any(True for _ in rules.index.on_url(a.verb, a.path)) else ()
    if a.subresource:
        return rules.index.on_resource(a.verb, a.api_group, f"{a.resource}/{a.subresource}", f"*/{a.subresource}")
    return rules.index.on_resource(a.verb, a.api_group, a.resource)
