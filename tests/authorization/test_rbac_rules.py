"""Comparison of rules: rights that a user may grant, and the text of refusals."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api.rbac.v1 import PolicyRule
from steersman.authentication.user import UserInfo
from steersman.authorization.attributes import Attributes
from steersman.authorization.rbac_rules import (
    FULL_AUTHORITY,
    compact,
    compact_text,
    covers,
    escalation,
    uncovered,
)
from steersman.authorization.rule_index import RuleIndex
from steersman.machinery.identity.action import Action
from tests.counted_work import grows_too_fast, with_texts
from tests.example_counts import examples


def some(*values: Any) -> Any:
    return st.lists(st.sampled_from(values), max_size=3)


RESOURCE_RULES = st.builds(
    PolicyRule,
    verbs=some("get", "list", "*"),
    api_groups=some("", "apps", "*"),
    resources=some("pods", "pods/log", "*/log", "*"),
    resource_names=some("a", "b"),
)
URL_RULES = st.builds(PolicyRule, verbs=some("get", "post", "*"), non_resource_urls=some("/a", "/a/*", "/a/b", "*"))
RULES = st.lists(st.one_of(RESOURCE_RULES, URL_RULES), max_size=4)

ALICE = UserInfo("alice", groups=("dev", "system:authenticated"))
HELD = [PolicyRule(verbs=["get", "list"], api_groups=[""], resources=["configmaps"])]

REQUESTS = [
    (verb, group, resource, subresource, name)
    for verb, group, (resource, subresource), name in product(
        ["get", "list", "delete"],
        ["", "apps", "batch"],
        [("pods", ""), ("pods", "log"), ("nodes", ""), ("nodes", "log"), ("nodes", "status")],
        ["", "a", "b", "c"],
    )
]
PATHS = [(verb, path) for verb in ("get", "post", "put") for path in ("/a", "/a/", "/a/b", "/a/c", "/b")]


def allowed(rules: Any) -> Any:
    """Return every request of a small world that the rules allow."""
    index = RuleIndex(rules)
    resources = set()
    for request in REQUESTS:
        verb, group, resource, subresource, name = request
        text, pattern = (f"{resource}/{subresource}", f"*/{subresource}") if subresource else (resource, "")
        if any(names is None or name in names for names in index.on_resource(verb, group, text, pattern)):
            resources.add(request)
    return resources | {path for path in PATHS if list(index.on_url(*path))}


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@given(RULES, RULES)
def test_what_is_covered_allows_nothing_more(owner: Any, servant: Any) -> None:
    if covers(owner, servant):
        assert allowed(servant) <= allowed(owner)
    assert allowed([*owner, *uncovered(owner, servant)]) >= allowed(servant)


def break_down(rule: Any) -> Iterator[Any]:
    """Return a rule as rules of one combination each."""
    for group, resource, verb in product(rule.api_groups, rule.resources, rule.verbs):
        for name in rule.resource_names or [None]:
            names = [] if name is None else [name]
            yield PolicyRule(verbs=[verb], api_groups=[group], resources=[resource], resource_names=names)
    for url, verb in product(rule.non_resource_urls, rule.verbs):
        yield PolicyRule(verbs=[verb], non_resource_urls=[url])


def plain_covers(owner: Any, part: Any) -> Any:
    """Return True if one rule covers one combination, compared field by field."""
    if "*" not in owner.verbs and not set(part.verbs) <= set(owner.verbs):
        return False
    if part.non_resource_urls:
        return not owner.resource_names and any(
            each == part.non_resource_urls[0]
            or (each.endswith("*") and part.non_resource_urls[0].startswith(each.rstrip("*")))
            for each in owner.non_resource_urls
        )
    [resource] = part.resources
    accepted = {"*", resource} | ({"*/" + resource.split("/", 1)[1]} if "/" in resource else set())
    return bool(
        set(part.api_groups) & set(owner.api_groups) | {"*"} & set(owner.api_groups)
        and accepted & set(owner.resources)
        and (not owner.resource_names or (part.resource_names and part.resource_names[0] in owner.resource_names))
    )


MIXED_RULES = st.builds(
    PolicyRule,
    verbs=some("get", "list", "*"),
    api_groups=some("", "apps"),
    resources=some("pods", "*"),
    resource_names=some("a"),
    non_resource_urls=some("/a", "/a*"),
)
ODD_RULES = st.lists(st.one_of(RESOURCE_RULES, URL_RULES, MIXED_RULES), max_size=4)


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(ODD_RULES, ODD_RULES)
def test_what_is_missing_is_found_as_by_comparing_every_combination(owner: Any, servant: Any) -> None:
    parts = [part for rule in servant for part in break_down(rule)]
    assert uncovered(owner, servant) == [part for part in parts if not any(plain_covers(rule, part) for rule in owner)]


@given(RULES)
def test_everyone_covers_themselves_and_full_authority_covers_all(rules: Any) -> None:
    assert covers(rules, rules)
    assert covers(FULL_AUTHORITY, rules)


@given(RULES)
def test_compacting_changes_no_right(rules: Any) -> None:
    parts = [part for rule in rules for part in break_down(rule)]
    assert allowed(compact(parts)) == allowed(parts) == allowed(rules)


def test_a_rule_too_big_to_take_apart_is_missing_as_a_whole() -> None:
    many = [str(number) for number in range(200)]
    monster = PolicyRule(verbs=many, api_groups=many, resources=many)
    assert uncovered([PolicyRule(verbs=["*"], api_groups=["*"], resources=many[:-1])], [monster]) == [monster]
    assert covers(FULL_AUTHORITY, [monster])


def test_after_many_missing_combinations_no_more_are_looked_for() -> None:
    many = [str(number) for number in range(150)]
    wanted = [PolicyRule(verbs=many, api_groups=many, resources=["r"]), *HELD]
    assert len(uncovered([], wanted)) == 10_000 + 1


MANY_RULES = {
    "names": lambda n: PolicyRule(verbs=["get"], api_groups=[""], resources=["pods"], resource_names=[f"a{n}"]),
    "verbs": lambda n: PolicyRule(verbs=[f"v{n}"], api_groups=[""], resources=["pods"]),
    "groups": lambda n: PolicyRule(verbs=["get"], api_groups=[f"g{n}"], resources=["*"]),
    "resources": lambda n: PolicyRule(verbs=["*"], api_groups=["*"], resources=[f"r{n}"]),
    "urls": lambda n: PolicyRule(verbs=["get"], non_resource_urls=[f"/a{n}"]),
    "patterns": lambda n: PolicyRule(verbs=["get"], non_resource_urls=[f"/a{n:06}/*"]),
    "of 81 combinations": lambda n: PolicyRule(
        verbs=["get", "list", f"v{n}"],
        api_groups=["", "a", "b"],
        resources=["x", "y", "z"],
        resource_names=["m", "n", "o"],
    ),
}


@pytest.mark.parametrize("rule", MANY_RULES.values(), ids=MANY_RULES)
def test_not_every_rule_is_compared_with_every_other(rule: Any) -> None:
    def comparing(owned: Any, wanted: Any) -> Any:
        owner, servant = ([with_texts(rule(n)) for n in each] for each in (owned, wanted))
        return lambda: uncovered(owner, servant)

    sizes = 50, 100, 200
    assert not grows_too_fast(lambda count: comparing(range(count), reversed(range(count))), sizes)
    assert not grows_too_fast(lambda count: comparing(range(count), range(count, 2 * count)), sizes)


def test_rules_of_many_combinations_are_covered_however_many_there_are() -> None:
    many = [str(number) for number in range(20)]
    rules = [PolicyRule(verbs=many, api_groups=many, resources=[*many, f"r{n}"]) for n in range(100)]
    assert covers(rules, rules)


def test_what_is_held_may_be_granted() -> None:
    assert escalation(ALICE, HELD, [PolicyRule(verbs=["get"], api_groups=[""], resources=["configmaps"])]) == ""


def test_a_refusal_lists_what_is_not_held() -> None:
    wanted = [
        PolicyRule(verbs=["get", "list"], api_groups=[""], resources=["secrets", "pods/log"], resource_names=["a"]),
        PolicyRule(verbs=["create"], api_groups=["apps"], resources=["deployments"]),
        *HELD,
    ]
    assert escalation(ALICE, HELD, wanted) == (
        'user "alice" (groups=["dev" "system:authenticated"]) is attempting to grant RBAC permissions not currently '
        "held:\n"
        '{APIGroups:[""], Resources:["pods/log"], ResourceNames:["a"], Verbs:["get" "list"]}\n'
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["get" "list"]}\n'
        '{APIGroups:["apps"], Resources:["deployments"], Verbs:["create"]}'
    )


def test_a_refusal_to_grant_everything() -> None:
    assert escalation(ALICE, HELD, FULL_AUTHORITY).split("held:\n")[1] == (
        '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}\n{NonResourceURLs:["*"], Verbs:["*"]}'
    )


def test_a_refusal_tells_which_roles_could_not_be_found() -> None:
    text = escalation(ALICE, [], HELD, 'role.rbac.authorization.k8s.io "x" not found')
    assert text.endswith('; resolution errors: [role.rbac.authorization.k8s.io "x" not found]')


def test_a_rule_in_one_line() -> None:
    rule = PolicyRule(verbs=["get"], api_groups=["a"], resources=["r"], resource_names=["n"], non_resource_urls=["/u"])
    assert compact_text(rule) == (
        '{APIGroups:["a"], Resources:["r"], NonResourceURLs:["/u"], ResourceNames:["n"], Verbs:["get"]}'
    )


def test_attributes_that_only_read() -> None:
    verbs = ("get", "list", "watch", "update")
    assert [Attributes(ALICE, Action(verb)).read_only for verb in verbs] == [True] * 3 + [False]
