"""Matching of requests to policy rules, and the resulting settings."""

from __future__ import annotations

import pytest

from steersman.api.audit.v1 import GroupResources, Policy, PolicyRule
from steersman.audit.policy import Level, Rules
from steersman.authentication.user import UserInfo
from steersman.machinery.identity.action import Action

ALICE = UserInfo("alice", groups=("dev", "qa"))
PODS = Action("get", "", "v1", "pods", "", "default", "p")
LOG = Action("get", "", "v1", "pods", "log", "default", "p")
SCALE = Action("update", "apps", "v1", "deployments", "scale", "default", "d")
NODES = Action("list", "", "v1", "nodes")


def level(rule: PolicyRule, action: Action = PODS, path: str | None = None, user: UserInfo | None = ALICE) -> Level:
    rule.level = "Metadata"
    return Rules(Policy(rules=[rule])).config_for(user, action, path).level


def resources(group: str, *names: str, only: tuple[str, ...] = ()) -> PolicyRule:
    return PolicyRule(resources=[GroupResources(group=group, resources=list(names), resource_names=list(only))])


@pytest.mark.parametrize(
    ("rule", "matches"),
    [
        (PolicyRule(), True),
        (PolicyRule(users=["alice"]), True),
        (PolicyRule(users=["bob"]), False),
        (PolicyRule(user_groups=["ops", "qa"]), True),
        (PolicyRule(user_groups=["ops"]), False),
        (PolicyRule(verbs=["get"]), True),
        (PolicyRule(verbs=["list"]), False),
        (PolicyRule(namespaces=["default"]), True),
        (PolicyRule(namespaces=["", "kube-system"]), False),
        (PolicyRule(non_resource_urls=["*"]), False),
        (resources(""), True),
        (resources("*"), True),
        (resources("apps"), False),
        (resources("", "pods"), True),
        (resources("", "*"), True),
        (resources("", "pods/*"), True),
        (resources("", "pods/log"), False),
        (resources("", "*/log"), False),
        (resources("", "pods", only=("p", "q")), True),
        (resources("", "pods", only=("q",)), False),
        (resources("", only=("q",)), True),
    ],
)
def test_a_rule_is_about_what_all_of_it_names(rule: PolicyRule, matches: bool) -> None:
    assert (level(rule) is Level.METADATA) is matches


@pytest.mark.parametrize(
    ("rule", "matches"),
    [
        (resources("", "pods"), False),
        (resources("", "pods/log"), True),
        (resources("", "pods/*"), True),
        (resources("", "*/log"), True),
        (resources("", "*/status"), False),
        (resources("", "*"), True),
    ],
)
def test_subresources_are_named_for_themselves(rule: PolicyRule, matches: bool) -> None:
    assert (level(rule, LOG) is Level.METADATA) is matches


def test_the_empty_namespace_is_that_of_what_is_in_none() -> None:
    assert level(PolicyRule(namespaces=[""]), NODES) is Level.METADATA
    assert level(PolicyRule(namespaces=[""]), SCALE) is Level.NONE


@pytest.mark.parametrize(
    ("url", "matches"),
    [("/version", True), ("/ver*", True), ("*", True), ("/version*", True), ("/version/", False), ("/api*", False)],
)
def test_paths_are_matched_whole_or_by_how_they_begin(url: str, matches: bool) -> None:
    rule = PolicyRule(non_resource_urls=[url])
    assert (level(rule, Action("get"), "/version") is Level.METADATA) is matches


def test_resources_and_namespaces_are_not_about_paths() -> None:
    assert level(resources("", "*"), Action("get"), "/version") is Level.NONE
    assert level(PolicyRule(namespaces=[""]), Action("get"), "/version") is Level.NONE


def test_who_is_not_known_has_no_name_and_no_group() -> None:
    assert level(PolicyRule(users=["alice"]), user=None) is Level.NONE
    assert level(PolicyRule(user_groups=["dev"]), user=None) is Level.NONE
    assert level(PolicyRule(), user=None) is Level.METADATA


def test_the_first_rule_counts_and_without_one_nothing_is_recorded() -> None:
    rules = Rules(
        Policy(rules=[PolicyRule(level="None", verbs=["get"]), PolicyRule(level="RequestResponse", users=["alice"])])
    )
    assert rules.config_for(ALICE, PODS, None).level is Level.NONE
    assert rules.config_for(ALICE, NODES, None).level is Level.REQUEST_RESPONSE
    assert rules.config_for(UserInfo("bob"), NODES, None).level is Level.NONE


def test_stages_add_up_and_a_rule_says_more_of_managed_fields_than_the_policy() -> None:
    policy = Policy(
        omit_stages=["RequestReceived"],
        omit_managed_fields=True,
        rules=[
            PolicyRule(level="Metadata", verbs=["get"], omit_stages=["Panic"], omit_managed_fields=False),
            PolicyRule(level="Request"),
        ],
    )
    rules = Rules(policy)
    first, second = rules.config_for(ALICE, PODS, None), rules.config_for(ALICE, NODES, None)
    assert first.omitted_stages == {"RequestReceived", "Panic"}
    assert not first.omits_managed_fields
    assert second.omitted_stages == {"RequestReceived"}
    assert second.omits_managed_fields
