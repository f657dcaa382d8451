"""RBAC's policy rules as a calculus: what a rule matches, and whether some rules cover others.

Covering is what keeps users from granting rights that they do not hold themselves (k8s.io/component-helpers
`auth/rbac/validation`). A rule stands for all combinations of its verbs with its groups, resources and names, and of
its verbs with its non-resource URLs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product
from typing import Final

from steersman.api.rbac.v1 import PolicyRule
from steersman.authentication.user import UserInfo
from steersman.machinery.field import quote

_MAX_COMBINATIONS: Final = 500_000
"""Combinations of one comparison that are looked at; a rule of more must be covered by one rule as a whole."""

_MAX_MISSING: Final = 10_000
"""Missing combinations after which no more are looked for; what they are wanted for is refused anyway."""

FULL_AUTHORITY: Final = (
    PolicyRule(verbs=["*"], api_groups=["*"], resources=["*"]),
    PolicyRule(verbs=["*"], non_resource_urls=["*"]),
)
"""What a user must hold to write an aggregation rule, since that can gather anything."""


class CompiledRule:
    """A policy rule prepared for matching; None stands for anything."""

    __slots__ = ("_any_url", "_groups", "_prefixes", "_resources", "_subresources", "_urls", "_verbs", "names")

    names: frozenset[str] | None
    """The object names it is limited to."""

    def __init__(self, rule: PolicyRule) -> None:
        self._verbs = _alternatives(rule.verbs or ())
        self._groups = _alternatives(rule.api_groups)
        self._resources = _alternatives(rule.resources)
        self._subresources = frozenset(each[2:] for each in rule.resources if each.startswith("*/") and len(each) > 2)
        self.names = frozenset(rule.resource_names) or None
        self._urls = frozenset(rule.non_resource_urls)
        self._prefixes = tuple(each.rstrip("*") for each in rule.non_resource_urls if each.endswith("*"))

    def matches_resource(self, verb: str, group: str, resource: str, subresource: str) -> bool:
        """Whether it is about such requests; its `names` are to be looked at besides."""
        if self._verbs is not None and verb not in self._verbs:
            return False
        if self._groups is not None and group not in self._groups:
            return False
        if self._resources is None:
            return True
        if not subresource:
            return resource in self._resources
        return f"{resource}/{subresource}" in self._resources or subresource in self._subresources

    def matches_path(self, verb: str, path: str) -> bool:
        """Whether it is about requests for a path that is no resource's."""
        if self._verbs is not None and verb not in self._verbs:
            return False
        return path in self._urls or (bool(self._prefixes) and path.startswith(self._prefixes))


def _alternatives(values: Iterable[str]) -> frozenset[str] | None:
    found = frozenset(values)
    return None if "*" in found else found


def uncovered(owner: Iterable[PolicyRule], servant: Iterable[PolicyRule]) -> list[PolicyRule]:
    """What `servant` allows and `owner` does not: rules of one combination each, nothing if all is covered.

    Rules with more combinations than may be looked at, or after many were found missing, are returned whole unless
    one owner rule covers them whole.
    """
    holdings = _Holdings(owner)
    left = _MAX_COMBINATIONS
    missing: list[PolicyRule] = []
    for rule in servant:
        if holdings.covers_whole(rule):
            continue
        left -= _combinations(rule)
        if left < 0 or len(missing) >= _MAX_MISSING:
            missing.append(rule)
        else:
            missing.extend(islice(holdings.lacking(rule), _MAX_MISSING))
    return missing


def covers(owner: Iterable[PolicyRule], servant: Iterable[PolicyRule]) -> bool:
    """Whether all that `servant` allows is allowed by `owner`."""
    return not uncovered(owner, servant)


def _combinations(rule: PolicyRule) -> int:
    resources = len(rule.api_groups) * len(rule.resources) * max(1, len(rule.resource_names))
    return len(rule.verbs or ()) * (resources + len(rule.non_resource_urls))


class _Holdings:
    """What someone holds, by resource, so that a combination is compared with few rules only."""

    def __init__(self, rules: Iterable[PolicyRule]) -> None:
        self._by_resource: dict[str, list[_Holding]] = {}
        self._by_url: list[tuple[_Holding, Sequence[str]]] = []
        for rule in rules:
            holding = _Holding(rule)
            for resource in dict.fromkeys(rule.resources):
                self._by_resource.setdefault(resource, []).append(holding)
            if rule.non_resource_urls and holding.names is None:
                self._by_url.append((holding, rule.non_resource_urls))

    def lacking(self, rule: PolicyRule) -> Iterator[PolicyRule]:
        """The combinations of `rule` that no single rule held covers, each as a rule of its own."""
        verbs, names = rule.verbs or (), rule.resource_names
        for group, resource in product(rule.api_groups, rule.resources):
            holders = [each for each in self._about(resource) if each.has_group(group)]
            if any(each.verbs is None and each.names is None for each in holders):
                continue
            for verb in verbs:
                able = [each for each in holders if each.has_verb(verb)]
                if any(each.names is None for each in able):
                    continue
                if not names:
                    yield PolicyRule(verbs=[verb], api_groups=[group], resources=[resource])
                for name in names:
                    if not any(each.has_name(name) for each in able):
                        yield PolicyRule(verbs=[verb], api_groups=[group], resources=[resource], resource_names=[name])
        for url, verb in product(rule.non_resource_urls, verbs):
            if not self._covers_url(url, verb):
                yield PolicyRule(verbs=[verb], non_resource_urls=[url])

    def _about(self, resource: str) -> Iterator[_Holding]:
        """The rules whose resources hold `resource`, by name or by pattern."""
        yield from self._by_resource.get("*", ())
        if resource != "*":
            yield from self._by_resource.get(resource, ())
        _, slash, subresource = resource.partition("/")
        if slash:
            yield from self._by_resource.get(f"*/{subresource}", ())

    def _covers_url(self, url: str, verb: str) -> bool:
        return any(
            holding.has_verb(verb) and any(_url_covers(each, url) for each in urls) for holding, urls in self._by_url
        )

    def covers_whole(self, rule: PolicyRule) -> bool:
        """Whether a single rule covers all combinations of `rule` on resources, which spares looking at each."""
        if rule.non_resource_urls or not rule.resources:
            return False
        verbs, groups, names = rule.verbs or (), rule.api_groups, rule.resource_names or (None,)
        wanted = set(rule.resources)
        return any(
            holding.resources >= wanted or "*" in holding.resources
            for key in ("*", rule.resources[0])
            for holding in self._by_resource.get(key, ())
            if all(map(holding.has_verb, verbs))
            and all(map(holding.has_group, groups))
            and all(map(holding.has_name, names))
        )


class _Holding:
    __slots__ = ("groups", "names", "resources", "verbs")

    def __init__(self, rule: PolicyRule) -> None:
        self.verbs = _alternatives(rule.verbs or ())
        self.groups = _alternatives(rule.api_groups)
        self.resources = frozenset(rule.resources)
        self.names = frozenset(rule.resource_names) or None

    def has_verb(self, verb: str) -> bool:
        return self.verbs is None or verb in self.verbs

    def has_group(self, group: str) -> bool:
        return self.groups is None or group in self.groups

    def has_name(self, name: str | None) -> bool:
        return self.names is None or (name is not None and name in self.names)


def _url_covers(owner: str, url: str) -> bool:
    return owner == url or (owner.endswith("*") and url.startswith(owner.rstrip("*")))


def escalation(
    user: UserInfo, held: Iterable[PolicyRule], wanted: Iterable[PolicyRule], resolution_error: str = ""
) -> str:
    """Why `user`, who holds `held`, may not grant `wanted`; nothing if they may.

    `resolution_error` tells what could not be found of what the user holds.
    """
    missing = uncovered(held, wanted)
    if not missing:
        return ""
    lines = sorted({compact_text(rule) for rule in compact(missing)})
    groups = " ".join(map(quote, user.groups))
    text = (
        f"user {quote(user.name)} (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n"
        + "\n".join(lines)
    )
    return f"{text}; resolution errors: [{resolution_error}]" if resolution_error else text


def compact(rules: Iterable[PolicyRule]) -> list[PolicyRule]:
    """The same rights in fewer rules: those on one resource (and one name) have their verbs put together."""
    merged: dict[tuple[str, str, str | None], tuple[PolicyRule, list[str]]] = {}
    out: list[PolicyRule] = []
    for rule in rules:
        if not _is_simple(rule):
            out.append(rule)
            continue
        key = (rule.api_groups[0], rule.resources[0], rule.resource_names[0] if rule.resource_names else None)
        merged.setdefault(key, (rule, []))[1].extend(rule.verbs or ())
    out.extend(
        PolicyRule(
            verbs=verbs, api_groups=first.api_groups, resources=first.resources, resource_names=first.resource_names
        )
        for first, verbs in merged.values()
    )
    return out


def _is_simple(rule: PolicyRule) -> bool:
    return (
        len(rule.resource_names) <= 1
        and not rule.non_resource_urls
        and len(rule.api_groups) == 1
        and len(rule.resources) == 1
    )


def compact_text(rule: PolicyRule) -> str:
    """A rule in one line: `{APIGroups:["apps"], Resources:["deployments"], Verbs:["get" "list"]}`."""
    parts = (
        ("APIGroups", rule.api_groups),
        ("Resources", rule.resources),
        ("NonResourceURLs", rule.non_resource_urls),
        ("ResourceNames", rule.resource_names),
        ("Verbs", rule.verbs or ()),
    )
    return "{" + ", ".join(f"{name}:[{' '.join(map(quote, values))}]" for name, values in parts if values) + "}"
