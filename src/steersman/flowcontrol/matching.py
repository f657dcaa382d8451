"""Matching of requests against flow schemas (k8s.io/apiserver `util/flowcontrol/rule.go`).

Rules are compiled into sets when a configuration is applied, as every new flow is matched against them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from steersman.api.flowcontrol.v1 import (
    FlowSchemaSpec,
    NonResourcePolicyRule,
    PolicyRulesWithSubjects,
    ResourcePolicyRule,
    Subject,
)
from steersman.machinery.identity.action import Action

_SERVICE_ACCOUNT: Final = "system:serviceaccount:"
_ALL: Final = "*"

_FEW: Final = 64
"""Limit of names under which one schema is indexed."""

_Names = frozenset[str] | None
"""A set of names; None matches every name."""


class Digest(NamedTuple):
    """The attributes of a request that determine its flow. `path` is None for a request about a resource."""

    user: str
    groups: tuple[str, ...]
    action: Action
    path: str | None


def _names(listed: Sequence[str] | None) -> _Names:
    """Return the listed names; `*` means all if it is alone, as validation demands."""
    if listed is not None and len(listed) == 1 and listed[0] == _ALL:
        return None
    return frozenset(listed or ())


class _Subjects:
    """The compiled subjects of a rule."""

    __slots__ = ("_groups", "_is_everybody", "_namespaces", "_users")

    def __init__(self, subjects: Sequence[Subject]) -> None:
        users: set[str] = set()
        groups: set[str] = set()
        namespaces: list[str] = []
        for each in subjects:
            if each.kind == "User" and each.user is not None:
                users.add(each.user.name)
            elif each.kind == "Group" and each.group is not None:
                groups.add(each.group.name)
            elif each.kind == "ServiceAccount" and (account := each.service_account) is not None:
                if account.name == _ALL:
                    namespaces.append(f"{_SERVICE_ACCOUNT}{account.namespace}:")
                else:
                    users.add(f"{_SERVICE_ACCOUNT}{account.namespace}:{account.name}")
        self._is_everybody = _ALL in groups or any(
            each.kind == "User" and each.user is not None and each.user.name == _ALL for each in subjects
        )
        self._users = frozenset(users)
        self._groups = frozenset(groups)
        self._namespaces = tuple(namespaces)

    def names(self) -> frozenset[str] | None:
        """Return the names under which the subjects are indexed (`_names_of`); None for subjects that may match any
        user.
        """
        if self._is_everybody or any(each.count(":") > 3 for each in self._namespaces):
            return None
        groups = (f"{_GROUP}{each}" for each in self._groups)
        return frozenset((*(f"{_USER}{each}" for each in self._users), *groups, *self._namespaces))

    def matches(self, digest: Digest) -> bool:
        return (
            self._is_everybody
            or digest.user in self._users
            or not self._groups.isdisjoint(digest.groups)
            or (bool(self._namespaces) and digest.user.startswith(self._namespaces))
        )


_USER: Final = "user "
_GROUP: Final = "group "


def _names_of(digest: Digest) -> list[str]:
    """Return the index names of a user: its name, its groups, and the namespace of a service account."""
    user = digest.user
    names = [f"{_USER}{user}", *(f"{_GROUP}{each}" for each in digest.groups)]
    if user.startswith(_SERVICE_ACCOUNT):
        namespace = user[len(_SERVICE_ACCOUNT) :].partition(":")[0]
        names.append(f"{_SERVICE_ACCOUNT}{namespace}:")
    return names


class _ResourceRule:
    __slots__ = ("_cluster", "_groups", "_namespaces", "_resources", "_verbs")

    def __init__(self, rule: ResourcePolicyRule) -> None:
        self._verbs = _names(rule.verbs)
        self._groups = _names(rule.api_groups)
        self._resources = _names(rule.resources)
        self._namespaces = _names(rule.namespaces)
        self._cluster = rule.cluster_scope

    def matches(self, action: Action) -> bool:
        if self._verbs is not None and action.verb not in self._verbs:
            return False
        if self._resources is not None:
            subresource = action.subresource
            sought = f"{action.resource}/{subresource}" if subresource else action.resource
            if sought not in self._resources:
                return False
        if self._groups is not None and action.group not in self._groups:
            return False
        if not action.namespace:
            return self._cluster
        return self._namespaces is None or action.namespace in self._namespaces


class _PathRule:
    __slots__ = ("_is_any", "_paths", "_prefixes", "_verbs")

    def __init__(self, rule: NonResourcePolicyRule) -> None:
        urls = rule.non_resource_urls or ()
        self._verbs = _names(rule.verbs)
        self._is_any = _ALL in urls
        self._paths = frozenset(urls)
        self._prefixes = tuple(_prefix(url) for url in urls)

    def matches(self, verb: str, path: str) -> bool:
        if self._verbs is not None and verb not in self._verbs:
            return False
        return self._is_any or path in self._paths or path.startswith(self._prefixes)


def _prefix(url: str) -> str:
    """Return the prefix of the paths below a path of a rule."""
    bare = url.removesuffix("*")
    return bare if bare.endswith("/") else f"{bare}/"


class _Rule:
    __slots__ = ("_paths", "_resources", "_subjects")

    def __init__(self, rule: PolicyRulesWithSubjects) -> None:
        self._subjects = _Subjects(rule.subjects or ())
        self._resources = tuple(_ResourceRule(each) for each in rule.resource_rules)
        self._paths = tuple(_PathRule(each) for each in rule.non_resource_rules)

    @property
    def names(self) -> frozenset[str] | None:
        return self._subjects.names()

    def matches(self, digest: Digest) -> bool:
        if not self._subjects.matches(digest):
            return False
        if digest.path is None:
            return any(each.matches(digest.action) for each in self._resources)
        return any(each.matches(digest.action.verb, digest.path) for each in self._paths)


class Matcher:
    """The compiled rules of one flow schema."""

    __slots__ = ("_rules", "names")

    def __init__(self, spec: FlowSchemaSpec) -> None:
        self._rules = tuple(_Rule(each) for each in spec.rules)
        self.names: Final = _together(each.names for each in self._rules)
        """Names under which the schema is indexed; None if it may match any user, or has too many names."""

    def matches(self, digest: Digest) -> bool:
        """Return True if the schema matches the request."""
        return any(each.matches(digest) for each in self._rules)


def _together(names: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    values: set[str] = set()
    for each in names:
        if each is None or len(values) + len(each) > _FEW:
            return None
        values |= each
    return frozenset(values)


class Matchers:
    """An ordered index of matchers. A request is compared only with those that may match its user: a few of
    thousands.
    """

    __slots__ = ("_by_name", "_matchers", "_of_anybody")

    def __init__(self, matchers: Sequence[Matcher]) -> None:
        self._matchers = tuple(matchers)
        self._of_anybody: list[int] = []
        self._by_name: dict[str, list[int]] = {}
        for number, matcher in enumerate(matchers):
            if matcher.names is None:
                self._of_anybody.append(number)
                continue
            for name in matcher.names:
                self._by_name.setdefault(name, []).append(number)

    def first(self, digest: Digest) -> int | None:
        """Return the number of the first matcher that matches the request, or None."""
        candidates = set(self._of_anybody)
        for name in _names_of(digest):
            candidates.update(self._by_name.get(name, ()))
        return next((number for number in sorted(candidates) if self._matchers[number].matches(digest)), None)
