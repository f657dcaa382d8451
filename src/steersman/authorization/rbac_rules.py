"""Comparison of RBAC policy rules: rights that one list of rules has and another lacks.

Used to keep users from granting rights that they do not have themselves (k8s.io/component-helpers
`auth/rbac/validation`). A rule means all combinations of its verbs with its groups, resources and names, and of its
verbs with its non-resource URLs.
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
"""Limit of combinations in one comparison. Beyond it, a rule must be covered as a whole by a single rule."""

_FEW_COMBINATIONS: Final = 64
"""Number of combinations up to which a rule is always expanded, as about ten values are enough to express them."""

_MAX_COMPARED: Final = 5_000_000
"""Limit of value comparisons in the search for a rule that covers another as a whole."""

_MAX_MISSING: Final = 10_000
"""Limit of missing combinations; the search ends there, as the request is refused anyway."""

FULL_AUTHORITY: Final = (
    PolicyRule(verbs=["*"], api_groups=["*"], resources=["*"]),
    PolicyRule(verbs=["*"], non_resource_urls=["*"]),
)
"""Rights that a user needs to write an aggregation rule, since such a rule can collect any rule."""


def uncovered(owner: Iterable[PolicyRule], servant: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Return the rights of `servant` that `owner` lacks, as rules of one combination each; [] if none is missing.

    A rule with more combinations than the limit, or after many missing ones, is returned as a whole unless a single
    rule of `owner` covers it.
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
    """Return True if `owner` allows everything that `servant` allows."""
    return not uncovered(owner, servant)


def _combinations(rule: PolicyRule) -> int:
    resources = len(rule.api_groups) * len(rule.resources) * max(1, len(rule.resource_names))
    return len(rule.verbs or ()) * (resources + len(rule.non_resource_urls))


def _lacking(holdings: RuleIndex, rule: PolicyRule) -> Iterator[PolicyRule]:
    """Yield a rule for each combination of `rule` that no single rule in `holdings` covers."""
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
    """Search for single rules that cover all combinations of another rule, to avoid expanding them."""

    def __init__(self, rules: Sequence[IndexedRule]) -> None:
        self._rules = rules
        self._by_value: list[dict[str | None, list[IndexedRule]]] | None = None
        """Four indexes of the rules: by verb, group, object name and resource."""
        self._left = _MAX_COMPARED

    def covers(self, rule: PolicyRule) -> bool:
        """Return True if a single rule covers `rule`. Compares only rules that have the rarest of the rule's values."""
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
        """Return the rules that match any value, and the rules that have this value."""
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
    """Return the error text if `user`, who has the rules `held`, must not grant `wanted`; "" if the user may.

    `resolution_error` is the text of errors while the user's rules were resolved.
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
    """Merge rules for the same single resource (and object name) into one rule with all their verbs."""
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
    """Return a rule as one line: `{APIGroups:["apps"], Resources:["deployments"], Verbs:["get" "list"]}`."""
    parts = (
        ("APIGroups", rule.api_groups),
        ("Resources", rule.resources),
        ("NonResourceURLs", rule.non_resource_urls),
        ("ResourceNames", rule.resource_names),
        ("Verbs", rule.verbs or ()),
    )
    return "{" + ", ".join(f"{name}:[{' '.join(map(quote, values))}]" for name, values in parts if values) + "}"
