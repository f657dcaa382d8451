"""RBAC's policy rules as a calculus: what a rule matches, and whether some rules cover others.

Covering is what keeps users from granting rights that they do not hold themselves (k8s.io/component-helpers
`auth/rbac/validation`). A rule stands for all combinations of its verbs with its groups, resources and names, and of
its verbs with its non-resource URLs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, product
from typing import Final

from steersman.api.rbac.v1 import PolicyRule
from steersman.authentication.user import UserInfo
from steersman.authorization.rule_index import IndexedRule, RuleIndex
from steersman.machinery.errors.field import quote

_MAX_COMBINATIONS: Final = 500_000
"""Combinations of one comparison that are looked at; a rule of more must be covered by one rule as a whole."""

_FEW_COMBINATIONS: Final = 64
"""Combinations of a rule that are looked at whatever the others have, since it needs about ten values to say them."""

_MAX_COMPARED: Final = 5_000_000
"""Values that are compared to find rules that cover others as a whole."""

_MAX_MISSING: Final = 10_000
"""Missing combinations after which no more are looked for; what they are wanted for is refused anyway."""

FULL_AUTHORITY: Final = (
    PolicyRule(verbs=["*"], api_groups=["*"], resources=["*"]),
    PolicyRule(verbs=["*"], non_resource_urls=["*"]),
)
"""What a user must hold to write an aggregation rule, since that can gather anything."""


def uncovered(owner: Iterable[PolicyRule], servant: Iterable[PolicyRule]) -> list[PolicyRule]:
    """What `servant` allows and `owner` does not: rules of one combination each, nothing if all is covered.

    Rules with more combinations than may be looked at, or after many were found missing, are returned whole unless
    one owner rule covers them whole.
    """
    holdings = RuleIndex(owner)
    whole = _WholeCover(holdings.rules)
    left = _MAX_COMBINATIONS
    missing: list[PolicyRule] = []
    for rule in servant:
        combinations = _combinations(rule)
        if combinations > _FEW_COMBINATIONS:
            if whole.covers(rule):
                continue
            left -= combinations
        if (left < 0 and combinations > _FEW_COMBINATIONS) or len(missing) >= _MAX_MISSING:
            missing.append(rule)
        else:
            missing.extend(islice(_lacking(holdings, rule), _MAX_MISSING))
    return missing


def covers(owner: Iterable[PolicyRule], servant: Iterable[PolicyRule]) -> bool:
    """Whether all that `servant` allows is allowed by `owner`."""
    return not uncovered(owner, servant)


def _combinations(rule: PolicyRule) -> int:
    resources = len(rule.api_groups) * len(rule.resources) * max(1, len(rule.resource_names))
    return len(rule.verbs or ()) * (resources + len(rule.non_resource_urls))


def _lacking(holdings: RuleIndex, rule: PolicyRule) -> Iterator[PolicyRule]:
    """The combinations of `rule` that no single rule held covers, each as a rule of its own."""
    verbs, names = rule.verbs or (), rule.resource_names
    for group, resource, verb in product(rule.api_groups, rule.resources, verbs):
        _, slash, subresource = resource.partition("/")
        held = holdings.on_resource(verb, group, resource, f"*/{subresource}" if slash else "")
        if None in held:
            continue
        if not names:
            yield PolicyRule(verbs=[verb], api_groups=[group], resources=[resource])
        for name in names:
            if not any(name in each for each in held if each is not None):
                yield PolicyRule(verbs=[verb], api_groups=[group], resources=[resource], resource_names=[name])
    for url, verb in product(rule.non_resource_urls, verbs):
        if None not in holdings.on_url(verb, url):
            yield PolicyRule(verbs=[verb], non_resource_urls=[url])


class _WholeCover:
    """Finds rules that cover all combinations of another, which spares looking at each."""

    def __init__(self, rules: Sequence[IndexedRule]) -> None:
        self._rules = rules
        self._by_value: list[dict[str | None, list[IndexedRule]]] | None = None
        """The rules by each of their verbs, of their groups, of their object names, and of their resources."""
        self._left = _MAX_COMPARED

    def covers(self, rule: PolicyRule) -> bool:
        """Whether a single rule does; only those are looked at that have the rarest of the values wanted."""
        if rule.non_resource_urls or not rule.resources:
            return False
        wanted = [set(rule.verbs or ()), set(rule.api_groups), set(rule.resource_names), set(rule.resources)]
        values = [(place, value) for place, several in enumerate(wanted) for value in several or (None,)]
        place, value = min(values, key=lambda each: sum(map(len, self._having(*each))))
        for holding in chain.from_iterable(self._having(place, value)):
            self._left -= len(values)
            if self._left < 0:
                return False
            held = (*holding.sets, holding.resources)
            if all(has is None or (needs and needs <= has) for has, needs in zip(held, wanted, strict=True)):
                return True
        return False

    def _having(self, place: int, value: str | None) -> tuple[Sequence[IndexedRule], ...]:
        """The rules that have a value: those that have all, and those that have it."""
        if self._by_value is None:
            self._by_value = [{}, {}, {}, {}]
            for rule in self._rules:
                for index, values in zip(self._by_value, (*rule.sets, rule.resources), strict=True):
                    for each in (None,) if values is None else values:
                        index.setdefault(each, []).append(rule)
        index = self._by_value[place]
        every = index.get(None, ())
        return (every,) if value is None else (every, index.get(value, ()))


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
