"""ABAC policies: matching, and parsing of policy files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steersman.authentication.user import ALL_AUTHENTICATED, UserInfo
from steersman.authorization.abac import AbacAuthorizer, Policy
from steersman.authorization.attributes import Attributes
from steersman.machinery.identity.action import Action

ALICE = UserInfo("alice", groups=("dev", ALL_AUTHENTICATED))
READ, WRITE = (Action(verb, "", "v1", "pods", "", "x", "p") for verb in ("get", "delete"))


def allows(policy: Policy, action: Action, path: str | None = None, user: UserInfo = ALICE) -> bool:
    return AbacAuthorizer([policy]).authorize(Attributes(user, action, path)).allowed


def everything(*, user: str = "", group: str = "", readonly: bool = False) -> Policy:
    """Return a policy that allows a user or a group everything about objects."""
    return Policy(user=user, group=group, readonly=readonly, api_group="*", resource="*", namespace="*")


@pytest.mark.parametrize(
    ("subject", "is_for"),
    [
        ({"user": "alice"}, True),
        ({"user": "bob"}, False),
        ({"group": "dev"}, True),
        ({"group": "ops"}, False),
        ({"user": "alice", "group": "dev"}, True),
        ({"user": "alice", "group": "ops"}, False),
        ({"user": "bob", "group": "dev"}, False),
        ({}, False),
    ],
)
def test_whom_a_policy_is_for(subject: dict[str, str], is_for: bool) -> None:
    assert allows(everything(**subject, readonly=False), READ) is is_for


def test_nobody_is_meant_by_a_policy_for_nobody() -> None:
    assert not allows(everything(), READ, user=UserInfo("", groups=("",)))


def test_who_may_read_may_not_write() -> None:
    policy = everything(user="alice", readonly=True)
    assert allows(policy, READ)
    assert not allows(policy, WRITE)


@pytest.mark.parametrize("wrong", [{"namespace": "y"}, {"resource": "secrets"}, {"api_group": "apps"}])
def test_all_of_the_resource_must_fit(wrong: dict[str, Any]) -> None:
    assert allows(Policy(user="alice", namespace="x", resource="pods"), WRITE)
    assert not allows(Policy(**{"user": "alice", "namespace": "x", "resource": "pods", **wrong}), WRITE)


@pytest.mark.parametrize(
    ("policy", "path", "fits"),
    [("*", "/a", True), ("/a", "/a", True), ("/a", "/a/b", False), ("/a/*", "/a/b", True), ("/a/*", "/a", False)],
)
def test_paths(policy: str, path: str, fits: bool) -> None:
    assert allows(Policy(user="alice", non_resource_path=policy), Action("post"), path) is fits
    assert not allows(Policy(user="alice", non_resource_path="*"), READ)


async def test_rules_are_told_in_the_order_of_the_file() -> None:
    policies = [
        Policy(group="dev", namespace="*", resource="b", readonly=True),
        Policy(user="alice", namespace="x", resource="a", api_group="g"),
        Policy(user="alice", namespace="y", resource="elsewhere"),
        Policy(user="alice", namespace="*", non_resource_path="/p"),
    ]
    rules = await AbacAuthorizer(policies).rules_for(ALICE, "x")
    assert [(each.verbs, each.api_groups, each.resources) for each in rules.resource_rules] == [
        (["get", "list", "watch"], [""], ["b"]),
        (["*"], ["g"], ["a"]),
    ]
    assert [each.non_resource_urls for each in rules.non_resource_rules] == [["/p"]]


def test_many_policies_of_others_cost_nothing(tmp_path: Path) -> None:
    authorizer = AbacAuthorizer(everything(user=f"u{number}") for number in range(10_000))
    assert len(list(authorizer.policies_naming(ALICE))) == 0
