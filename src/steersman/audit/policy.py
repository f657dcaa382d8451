"""Compiled audit policy: rules that select the level for each request (k8s.io/apiserver `audit/policy`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Final

from msgspec import Struct

from steersman.api.audit.v1 import GroupResources, Policy, PolicyRule
from steersman.authentication.user import UserInfo
from steersman.machinery.identity.action import Action

REQUEST_RECEIVED: Final = "RequestReceived"
RESPONSE_STARTED: Final = "ResponseStarted"
RESPONSE_COMPLETE: Final = "ResponseComplete"
PANIC: Final = "Panic"
STAGES: Final = (REQUEST_RECEIVED, RESPONSE_STARTED, RESPONSE_COMPLETE, PANIC)


class Level(IntEnum):
    """Audit level. Each level includes everything that lower levels record."""

    NONE = 0
    METADATA = 1
    REQUEST = 2
    REQUEST_RESPONSE = 3


LEVELS: Final = {
    "None": Level.NONE,
    "Metadata": Level.METADATA,
    "Request": Level.REQUEST,
    "RequestResponse": Level.REQUEST_RESPONSE,
}
_LABELS: Final = tuple((name,) for name in LEVELS)


class RequestAuditConfig(Struct, frozen=True):
    """Policy's settings for one request (`RequestAuditConfig`)."""

    level: Level
    omitted_stages: frozenset[str] = frozenset()
    omits_managed_fields: bool = False

    @property
    def labels(self) -> tuple[str]:
        """The name of the level in events and metrics, as a tuple."""
        return _LABELS[self.level]


class Rules:
    """The rules of a policy, in order; the first matching rule applies."""

    def __init__(self, policy: Policy) -> None:
        self._rules: Final = tuple(_Rule(rule, policy) for rule in policy.rules or ())
        self._otherwise: Final = RequestAuditConfig(
            Level.NONE, frozenset(policy.omit_stages), policy.omit_managed_fields
        )

    def config_for(self, user: UserInfo | None, action: Action, path: str | None) -> RequestAuditConfig:
        """Return the settings for an action.

        `user` is None if the request is not authenticated. `path` is None for requests about a resource.
        """
        for rule in self._rules:
            if rule.matches(user, action, path):
                return rule.recorded
        return self._otherwise


def _some(values: Iterable[str]) -> frozenset[str] | None:
    return frozenset(values) or None


class _Rule:
    """A compiled rule; None in place of a set matches everything."""

    __slots__ = ("_groups", "_namespaces", "_paths", "_resources", "_users", "_verbs", "recorded")

    def __init__(self, rule: PolicyRule, policy: Policy) -> None:
        omits = policy.omit_managed_fields if rule.omit_managed_fields is None else rule.omit_managed_fields
        self.recorded = RequestAuditConfig(
            LEVELS[rule.level], frozenset((*policy.omit_stages, *rule.omit_stages)), omits
        )
        self._users = _some(rule.users)
        self._groups = _some(rule.user_groups)
        self._verbs = _some(rule.verbs)
        self._namespaces = _some(rule.namespaces)
        self._resources = tuple(map(_Resources, rule.resources))
        self._paths = tuple(rule.non_resource_urls)

    def matches(self, user: UserInfo | None, action: Action, path: str | None) -> bool:
        if self._users is not None and (user is None or user.name not in self._users):
            return False
        if self._groups is not None and (user is None or self._groups.isdisjoint(user.groups)):
            return False
        if self._verbs is not None and action.verb not in self._verbs:
            return False
        if self._namespaces is not None or self._resources:
            return path is None and self._matches_resource(action)
        if self._paths:
            return path is not None and any(path_matches(path, each) for each in self._paths)
        return True

    def _matches_resource(self, action: Action) -> bool:
        if self._namespaces is not None and action.namespace not in self._namespaces:
            return False
        return not self._resources or any(each.match(action) for each in self._resources)


class _Resources:
    """Resources of an API group, or of any group ("*")."""

    __slots__ = ("_any", "_group", "_named", "_names", "_whole")

    def __init__(self, given: GroupResources) -> None:
        self._group = given.group
        self._whole = not given.resources
        self._any = "*" in given.resources
        self._named = frozenset(given.resources)
        self._names = _some(given.resource_names)

    def match(self, action: Action) -> bool:
        """Return True if the action's resource is included.

        A resource is included by its name or "*". A subresource is included by "resource/subresource", "*/subresource"
        or "resource/*"; the last includes the resource itself too.
        """
        if self._group not in (action.group, "*"):
            return False
        if self._whole:
            return True
        if self._names is not None and action.name not in self._names:
            return False
        resource, subresource, named = action.resource, action.subresource, self._named
        if self._any or f"{resource}/*" in named:
            return True
        if not subresource:
            return resource in named
        return f"{resource}/{subresource}" in named or f"*/{subresource}" in named


def path_matches(path: str, given: str) -> bool:
    """Return True if `path` matches the path of a rule, which may end with "*"."""
    return given in ("*", path) or (given.endswith("*") and path.startswith(given.rstrip("*")))


def unknown_stages(stages: Sequence[str]) -> list[int]:
    """Return the indices of unknown stages."""
    return [index for index, stage in enumerate(stages) if stage not in STAGES]
