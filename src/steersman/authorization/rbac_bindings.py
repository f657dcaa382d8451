"""Roles and bindings as the RBAC authorizer stores them, indexed by subject.

Anyone with write access to one namespace decides how many bindings a subject has there, how many subjects each binding
has, and how large roles are. `UserBindings` is a snapshot of a user's bindings: it is cheap to take on the event loop, and
expensive snapshots are evaluated in worker threads.

Large roles and bindings are parsed in worker threads after a change. Until then they are `unparsed`: the old version
grants nothing any more, and requests that need the new one wait.
"""

from __future__ import annotations

from asyncio import Event
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from steersman.api.rbac.v1 import PolicyRule, RoleRef, Subject
from steersman.authentication.user import service_account_username
from steersman.authorization.rule_index import RuleIndex
from steersman.machinery.errors.field import quote

GROUP: Final = "rbac.authorization.k8s.io"

WIDE: Final = 1_000
"""Number of subjects from which a binding is not indexed but checked for each user."""
_ORDERED: Final = 2_000
"""Limit of bindings that are sorted by name, so that sorting is quick; upstream does not sort."""

SubjectKey = tuple[str, str]
"""("User" or "Group", name)."""


class RoleNotFound(LookupError):
    """The role that a binding refers to does not exist. `resource` is roles or clusterroles."""

    def __init__(self, resource: str, name: str) -> None:
        super().__init__(f"{resource.removesuffix('s')}.{GROUP} {quote(name)} not found")
        self.resource = resource
        self.name = name


class RoleRules:
    """A role's rules and their index. Depends on the rules alone, so any thread may create it.

    `values` is the number of values in the rules, which is about the number of steps of the first look-ups.
    """

    __slots__ = ("index", "rules", "values")

    def __init__(self, rules: Iterable[PolicyRule]) -> None:
        self.rules = tuple(rules)
        self.index = RuleIndex(self.rules)
        self.values = sum(map(values_of, self.rules))


def values_of(rule: PolicyRule) -> int:
    """Return the number of values in a rule."""
    count = len(rule.verbs or ()) + len(rule.api_groups) + len(rule.resources)
    return 1 + count + len(rule.resource_names) + len(rule.non_resource_urls)


class Role:
    """Entry of a role, existing or not, to which bindings refer; `bindings` is the number of bindings."""

    __slots__ = ("bindings", "rules", "unparsed")

    def __init__(self) -> None:
        self.rules: RoleRules | None = None
        self.unparsed: Event | None = None
        self.bindings = 0


class Binding:
    """A binding of either kind; `namespace` is "" for a ClusterRoleBinding.

    `keys` maps the users and groups to the position of their first subject. `role` is the entry of the role, or None
    for a reference to another kind. `counts` is False once the binding is deleted or replaced. Apart from `role`
    everything depends on the stored object alone, so any thread may create a Binding.
    """

    __slots__ = ("counts", "keys", "name", "namespace", "role", "role_ref", "subjects", "unparsed")

    def __init__(self, namespace: str, name: str, role_ref: RoleRef, subjects: Sequence[Subject]) -> None:
        self.namespace = namespace
        self.name = name
        self.role_ref = role_ref
        self.subjects = subjects
        self.role: Role | None = None
        self.unparsed: Event | None = None
        self.counts = True
        self.keys: dict[SubjectKey, int] = {}
        for subject_index, subject in enumerate(subjects):
            if subject.kind in ("User", "Group"):
                self.keys.setdefault((subject.kind, subject.name), subject_index)
            elif subject.kind == "ServiceAccount" and (of := subject.namespace or namespace):
                self.keys.setdefault(("User", service_account_username(of, subject.name)), subject_index)

    @property
    def is_wide(self) -> bool:
        """True if the binding has so many subjects that indexing them would take long."""
        return len(self.keys) > WIDE

    def describe(self, subject_index: int) -> str:
        """Return the audit log's description of the right that the binding gives to the subject at `subject_index`."""
        kind = "RoleBinding" if self.namespace else "ClusterRoleBinding"
        name = f"{self.name}/{self.namespace}" if self.namespace else self.name
        subject = self.subjects[subject_index]
        whom = subject.name
        if subject.kind == "ServiceAccount":
            whom = f"{subject.name}/{subject.namespace or self.namespace}"
        role = f"{self.role_ref.kind} {quote(self.role_ref.name)}"
        return f"{kind} {quote(name)} of {role} to {subject.kind} {quote(whom)}"


def role_error(role_ref: RoleRef) -> LookupError | ValueError:
    """Return the error for a reference to a missing role or to another kind."""
    if role_ref.kind == "ClusterRole":
        return RoleNotFound("clusterroles", role_ref.name)
    if role_ref.kind == "Role":
        return RoleNotFound("roles", role_ref.name)
    return ValueError(f"unsupported role reference kind: {quote(role_ref.kind)}")


class Bindings:
    """The bindings of one namespace, or the cluster's, indexed by subject."""

    __slots__ = ("_by_subject", "_wide", "unparsed")

    def __init__(self) -> None:
        self._by_subject: dict[SubjectKey, dict[str, tuple[Binding, int]]] = {}
        self._wide: dict[str, Binding] = {}
        self.unparsed: dict[str, Event] = {}

    def __bool__(self) -> bool:
        return bool(self._by_subject or self._wide or self.unparsed)

    def add(self, binding: Binding) -> None:
        """Add a binding; its name must not exist yet."""
        if binding.is_wide:
            self._wide[binding.name] = binding
            return
        for key, subject_index in binding.keys.items():
            self._by_subject.setdefault(key, {})[binding.name] = (binding, subject_index)

    def remove(self, binding: Binding) -> None:
        """Remove an existing binding."""
        if binding.is_wide:
            del self._wide[binding.name]
            return
        for key in binding.keys:
            found = self._by_subject[key]
            del found[binding.name]
            if not found:
                del self._by_subject[key]

    def for_subjects(self, keys: Iterable[SubjectKey]) -> list[tuple[Binding, int]]:
        """Return (binding, position of the subject) for all indexed bindings of `keys`, perhaps with duplicates."""
        found: list[tuple[Binding, int]] = []
        for key in keys:
            if (of_key := self._by_subject.get(key)) is not None:
                found += of_key.values()
        return found

    @property
    def wide(self) -> tuple[Binding, ...]:
        """The bindings that are not indexed."""
        return tuple(self._wide.values())


class Grant(Struct, frozen=True):
    """A binding that covers a user by its subject at `subject_index`, and the role's rules; None if the role does not exist."""

    binding: Binding
    subject_index: int
    rules: RoleRules | None

    def holds(self) -> bool:
        """Return True if neither the binding nor its role has changed."""
        binding, role = self.binding, self.binding.role
        return binding.counts and role is not None and role.rules is self.rules

    @property
    def unparsed(self) -> Event | None:
        """Event to wait for if a newer version of the binding or its role is not parsed yet; otherwise None."""
        role = self.binding.role
        return self.binding.unparsed or (None if role is None else role.unparsed)


class UserBindings:
    """Snapshot of a user's bindings: the cluster's, then a namespace's.

    `unparsed` are events of bindings in both that are not parsed yet and may cover the user. `effort` is about the number
    of steps that computing the grants takes.
    """

    __slots__ = ("_bindings", "_keys", "_parts", "effort", "unparsed")

    def __init__(self, bindings: Iterable[Bindings | None]) -> None:
        self._bindings = [each for each in bindings if each is not None]
        self._keys: list[SubjectKey] = []
        self._parts: list[tuple[list[tuple[Binding, int]], tuple[Binding, ...]]] = []
        self.unparsed: list[Event] = []
        self.effort = 0
        for each in self._bindings:
            self._parts.append(([], each.wide))
            self.unparsed += each.unparsed.values()

    def find(self, keys: Sequence[SubjectKey]) -> None:
        """Add the bindings of `keys`."""
        self._keys += keys
        for each, (found, wide) in zip(self._bindings, self._parts, strict=True):
            more = each.for_subjects(keys)
            found += more
            self.effort += len(more) + len(wide) * len(keys)

    def grants(self) -> Iterator[Grant]:
        """Yield the grants, sorted by the names of the bindings unless there are too many."""
        for found, wide in self._parts:
            places: dict[Binding, int] = {}
            for binding, subject_index in found:
                places[binding] = min(subject_index, places.get(binding, subject_index))
            for binding in wide:
                asked = [binding.keys[key] for key in self._keys if key in binding.keys]
                if asked:
                    places[binding] = min(asked)
            few = len(places) <= _ORDERED
            for binding in sorted(places, key=lambda each: each.name) if few else places:
                role = binding.role
                yield Grant(binding, places[binding], None if role is None else role.rules)
