"""Roles and bindings as the RBAC authorizer keeps them: found by whom they are for, and looked through in any thread.

Whoever may write in one namespace chooses how many bindings there are of anybody there, how many subjects each has,
and how large the roles are. `Held` is what there is for a user at one moment; it costs little to take, on the loop, and
what it leads to is found out in the worker threads where that is much.

A large role or binding that has been written is read in the worker threads. Until then it is `unread`: what it said
before counts no more, and who needs it waits.
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

_WIDE: Final = 1_000
"""Subjects from which on a binding is not entered under each of them but asked itself."""
_ORDERED: Final = 2_000
"""Bindings up to which they are put in order, which is to be one short step; upstream has them in none."""

SubjectKey = tuple[str, str]
"""("User" or "Group", name)."""


class RoleNotFound(LookupError):
    """A binding refers to a role that is not there. `resource` is roles or clusterroles."""

    def __init__(self, resource: str, name: str) -> None:
        super().__init__(f"{resource.removesuffix('s')}.{GROUP} {quote(name)} not found")
        self.resource = resource
        self.name = name


class RoleRules:
    """A role's rules, and the same to be found. Made of the rules alone, so in any thread.

    `values` is how many values say the rules, which is about how many steps the first questions to them take.
    """

    __slots__ = ("index", "rules", "values")

    def __init__(self, rules: Iterable[PolicyRule]) -> None:
        self.rules = tuple(rules)
        self.index = RuleIndex(self.rules)
        self.values = sum(map(values_of, self.rules))


def values_of(rule: PolicyRule) -> int:
    """How many values say a rule."""
    count = len(rule.verbs or ()) + len(rule.api_groups) + len(rule.resources)
    return 1 + count + len(rule.resource_names) + len(rule.non_resource_urls)


class Role:
    """The place of a role, there or not, that bindings refer to. `bindings` is how many do."""

    __slots__ = ("bindings", "rules", "unread")

    def __init__(self) -> None:
        self.rules: RoleRules | None = None
        self.unread: Event | None = None
        self.bindings = 0


class Binding:
    """A binding of either kind; `namespace` is empty for a ClusterRoleBinding.

    `keys` are those whom it is for, each with the place of the first subject that says so. `role` is where its rules
    are, None for a reference to another kind; `counts` is False once it is deleted or replaced. Made, but for `role`,
    of what is stored alone, so in any thread.
    """

    __slots__ = ("counts", "keys", "name", "namespace", "role", "role_ref", "subjects", "unread")

    def __init__(self, namespace: str, name: str, role_ref: RoleRef, subjects: Sequence[Subject]) -> None:
        self.namespace = namespace
        self.name = name
        self.role_ref = role_ref
        self.subjects = subjects
        self.role: Role | None = None
        self.unread: Event | None = None
        self.counts = True
        self.keys: dict[SubjectKey, int] = {}
        for place, subject in enumerate(subjects):
            if subject.kind in ("User", "Group"):
                self.keys.setdefault((subject.kind, subject.name), place)
            elif subject.kind == "ServiceAccount" and (of := subject.namespace or namespace):
                self.keys.setdefault(("User", service_account_username(of, subject.name)), place)

    @property
    def is_wide(self) -> bool:
        """Whether it is for so many that entering it under each would take long."""
        return len(self.keys) > _WIDE

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


def role_error(role_ref: RoleRef) -> LookupError | ValueError:
    """What is wrong with a reference to a role that is not there, or to another kind."""
    if role_ref.kind == "ClusterRole":
        return RoleNotFound("clusterroles", role_ref.name)
    if role_ref.kind == "Role":
        return RoleNotFound("roles", role_ref.name)
    return ValueError(f"unsupported role reference kind: {quote(role_ref.kind)}")


class Bindings:
    """The bindings of one namespace, or of the cluster, by whom they are for."""

    __slots__ = ("_by_subject", "_wide", "unread")

    def __init__(self) -> None:
        self._by_subject: dict[SubjectKey, dict[str, tuple[Binding, int]]] = {}
        self._wide: dict[str, Binding] = {}
        self.unread: dict[str, Event] = {}

    def __bool__(self) -> bool:
        return bool(self._by_subject or self._wide or self.unread)

    def add(self, binding: Binding) -> None:
        """Enters a binding whose name is not there."""
        if binding.is_wide:
            self._wide[binding.name] = binding
            return
        for key, place in binding.keys.items():
            self._by_subject.setdefault(key, {})[binding.name] = (binding, place)

    def remove(self, binding: Binding) -> None:
        """Forgets a binding that is there."""
        if binding.is_wide:
            del self._wide[binding.name]
            return
        for key in binding.keys:
            found = self._by_subject[key]
            del found[binding.name]
            if not found:
                del self._by_subject[key]

    def of(self, keys: Iterable[SubjectKey]) -> list[tuple[Binding, int]]:
        """The bindings that are entered under any of `keys`, each with a place; some perhaps twice."""
        found: list[tuple[Binding, int]] = []
        for key in keys:
            if (of_key := self._by_subject.get(key)) is not None:
                found += of_key.values()
        return found

    @property
    def wide(self) -> tuple[Binding, ...]:
        """The bindings that are to be asked."""
        return tuple(self._wide.values())


class Grant(Struct, frozen=True):
    """One binding that is for a user, by its subject at `place`, and the rules it gives; None: they are not there."""

    binding: Binding
    place: int
    rules: RoleRules | None

    def holds(self) -> bool:
        """Whether it is as it was."""
        binding, role = self.binding, self.binding.role
        return binding.counts and role is not None and role.rules is self.rules

    @property
    def unread(self) -> Event | None:
        """Set if it is no more known what the binding or its role says."""
        role = self.binding.role
        return self.binding.unread or (None if role is None else role.unread)


class Held:
    """The bindings that are for a user at one moment: those of the cluster, then those of a namespace.

    `unread` are bindings of these that may be for the user or not. `effort` is about how many steps it takes to know
    the grants.
    """

    __slots__ = ("_bindings", "_keys", "_parts", "effort", "unread")

    def __init__(self, bindings: Iterable[Bindings | None]) -> None:
        self._bindings = [each for each in bindings if each is not None]
        self._keys: list[SubjectKey] = []
        self._parts: list[tuple[list[tuple[Binding, int]], tuple[Binding, ...]]] = []
        self.unread: list[Event] = []
        self.effort = 0
        for each in self._bindings:
            self._parts.append(([], each.wide))
            self.unread += each.unread.values()

    def find(self, keys: Sequence[SubjectKey]) -> None:
        """Adds what there is for the user under `keys`."""
        self._keys += keys
        for each, (found, wide) in zip(self._bindings, self._parts, strict=True):
            more = each.of(keys)
            found += more
            self.effort += len(more) + len(wide) * len(keys)

    def grants(self) -> Iterator[Grant]:
        """What they give, by the names of the bindings."""
        for found, wide in self._parts:
            places: dict[Binding, int] = {}
            for binding, place in found:
                places[binding] = min(place, places.get(binding, place))
            for binding in wide:
                asked = [binding.keys[key] for key in self._keys if key in binding.keys]
                if asked:
                    places[binding] = min(asked)
            few = len(places) <= _ORDERED
            for binding in sorted(places, key=lambda each: each.name) if few else places:
                role = binding.role
                yield Grant(binding, places[binding], None if role is None else role.rules)
