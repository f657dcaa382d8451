"""Impersonation: the required rights, and the impersonated users."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from steersman.authentication.user import UserInfo
from steersman.authorization.attributes import Attributes
from steersman.authorization.impersonation import Impersonated, Impersonation, node_name, service_account
from steersman.authorization.interface import Decision, Verdict
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.action import Action

PODS = {"version": "v1", "namespace": "ns", "resource": "pods"}
ROBOT = "system:serviceaccount:ns:robot"


class Rights:
    """Allows listed rights in the form `VERB RESOURCE NAME`, and records checks."""

    def __init__(self, allowed: Iterable[str]) -> None:
        self.allowed = set(allowed)
        self.asked: list[Attributes] = []

    def authorize(self, attributes: Attributes) -> Verdict:
        self.asked.append(attributes)
        resource = "/".join(part for part in (attributes.action.resource, attributes.action.subresource) if part)
        right = f"{attributes.action.verb} {resource} {attributes.action.name}".strip()
        return Verdict(Decision.ALLOW if right in self.allowed else Decision.NO_OPINION)


async def become(wanted: UserInfo, *rights: str, requestor: UserInfo | None = None, verb: str = "list") -> Impersonated:
    return await Impersonation(Rights(rights)).impersonate(wanted, action(requestor, verb))


def action(requestor: UserInfo | None = None, verb: str = "list") -> Attributes:
    return Attributes(requestor or UserInfo("jane"), Action(verb, **PODS))


async def refusal(wanted: UserInfo, *rights: str, requestor: UserInfo | None = None) -> str:
    with pytest.raises(StatusError) as raised:
        await become(wanted, *rights, requestor=requestor)
    assert raised.value.code == 403
    return raised.value.message


# The older right


async def test_a_right_to_impersonate_a_user_is_good_for_all_actions() -> None:
    answer = await become(UserInfo("bob"), "impersonate users bob", verb="deletecollection")
    assert answer == Impersonated(UserInfo("bob", groups=("system:authenticated",)))


async def test_each_part_of_a_user_needs_a_right() -> None:
    bob = UserInfo("bob", "7", ("dev", "ops"), {"acme.io/scope": ("a", "b")})
    rights = [
        "impersonate users bob",
        "impersonate uids 7",
        "impersonate groups dev",
        "impersonate groups ops",
        "impersonate userextras/acme.io/scope a",
        "impersonate userextras/acme.io/scope b",
    ]
    answer = await become(bob, *rights)
    assert answer.user == UserInfo("bob", "7", ("dev", "ops", "system:authenticated"), bob.extra)
    for missing in rights:
        await refusal(bob, *(right for right in rights if right != missing))


async def test_a_service_account_has_the_groups_of_its_namespace_unless_others_are_asked_for() -> None:
    answer = await become(UserInfo(ROBOT), "impersonate serviceaccounts robot")
    assert answer.user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")
    answer = await become(
        UserInfo(ROBOT, groups=("dev",)), "impersonate serviceaccounts robot", "impersonate groups dev"
    )
    assert answer.user.groups == ("dev", "system:authenticated")


@pytest.mark.parametrize(
    ("name", "groups", "become_groups"),
    [
        ("system:anonymous", (), ("system:unauthenticated",)),
        ("bob", ("system:unauthenticated",), ("system:unauthenticated",)),
        ("bob", ("system:authenticated",), ("system:authenticated",)),
        ("bob", ("system:masters",), ("system:masters", "system:authenticated")),
    ],
)
async def test_all_are_authenticated_but_the_anonymous(
    name: str, groups: tuple[Any, ...], become_groups: tuple[Any, ...]
) -> None:
    rights = [f"impersonate users {name}", *(f"impersonate groups {group}" for group in groups)]
    assert (await become(UserInfo(name, groups=groups), *rights)).user.groups == become_groups


# Rights to do one thing as somebody


async def test_a_constrained_right_is_good_for_its_verb_only() -> None:
    rights = "impersonate:user-info users bob", "impersonate-on:user-info:list pods"
    answer = await become(UserInfo("bob"), *rights)
    assert answer == Impersonated(UserInfo("bob", groups=("system:authenticated",)), "impersonate:user-info")
    with pytest.raises(StatusError, match='cannot impersonate-on:user-info:delete resource "pods"'):
        await become(UserInfo("bob"), *rights, verb="delete")


async def test_what_was_refused_first_is_told() -> None:
    assert await refusal(UserInfo("bob")) == (
        'pods is forbidden: User "jane" cannot impersonate-on:user-info:list resource "pods" in API group "" '
        'in the namespace "ns"'
    )
    assert await refusal(UserInfo("bob"), "impersonate-on:user-info:list pods") == (
        'users.authentication.k8s.io "bob" is forbidden: User "jane" cannot impersonate:user-info resource "users" '
        'in API group "authentication.k8s.io" at the cluster scope'
    )


async def test_the_mode_that_worked_last_is_tried_first_and_its_refusal_told() -> None:
    impersonation = Impersonation(Rights(["impersonate users bob"]))
    await impersonation.impersonate(UserInfo("bob"), action())
    with pytest.raises(StatusError) as raised:
        await impersonation.impersonate(UserInfo("eve"), action())
    assert raised.value.message == (
        'users "eve" is forbidden: User "jane" cannot impersonate resource "users" in API group "" at the cluster scope'
    )


async def test_a_right_that_is_taken_away_is_gone_at_once() -> None:
    rights = Rights(["impersonate users bob"])
    impersonation = Impersonation(rights)
    await impersonation.impersonate(UserInfo("bob"), action())
    rights.allowed.clear()
    with pytest.raises(StatusError):
        await impersonation.impersonate(UserInfo("bob"), action())


async def test_nodes_and_service_accounts_are_no_users_of_the_user_info_mode() -> None:
    everything = "impersonate-on:user-info:list pods", "impersonate:user-info users system:node:n"
    await refusal(UserInfo("system:node:n"), *everything)
    rights = "impersonate-on:arbitrary-node:list pods", "impersonate:arbitrary-node nodes n"
    answer = await become(UserInfo("system:node:n"), *rights)
    assert answer.user.groups == ("system:nodes", "system:authenticated")
    rights = "impersonate-on:serviceaccount:list pods", "impersonate:serviceaccount serviceaccounts robot"
    answer = await become(UserInfo(ROBOT), *rights)
    assert answer.constraint == "impersonate:serviceaccount"


async def test_a_constrained_right_never_makes_an_administrator() -> None:
    user_info = UserInfo("bob", groups=("system:masters",))
    rights = "impersonate-on:user-info:list pods", "impersonate:user-info users bob"
    refused = await refusal(user_info, *rights, "impersonate:user-info groups system:masters")
    assert refused.endswith(": impersonating the system:masters group is not allowed")


@pytest.mark.parametrize(
    ("extra", "told"),
    [
        ({"": ("a",)}, "impersonating the empty string key in extra is not allowed"),
        ({"acme.io/Scope": ("a",)}, 'impersonating a non-lowercase key in extra is not allowed: "acme.io/Scope"'),
        ({"acme.io/scope": ("",)}, "impersonating the empty string value in extra is not allowed"),
        (
            {"scope": ("a",)},
            'impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "scope": '
            'must be a domain-prefixed path (such as "acme.io/foo")',
        ),
    ],
)
async def test_a_constrained_right_is_strict_about_extra_values(extra: dict[str, Any], told: str) -> None:
    rights = "impersonate-on:user-info:list pods", "impersonate:user-info users bob"
    assert (await refusal(UserInfo("bob", extra=extra), *rights)).endswith(f": {told}")


async def test_of_many_groups_a_right_to_all_is_enough() -> None:
    user_info = UserInfo("bob", groups=("a", "b", "c", "d"))
    rights = "impersonate-on:user-info:list pods", "impersonate:user-info users bob"
    assert (await become(user_info, *rights, "impersonate:user-info groups *")).user.groups[:4] == user_info.groups
    await refusal(UserInfo("bob", groups=("a",)), *rights, "impersonate:user-info groups *")


# The node a pod runs on


async def test_a_pod_may_be_the_node_it_runs_on() -> None:
    pod = UserInfo(ROBOT, extra={"authentication.kubernetes.io/node-name": ("n",), "acme.io/x": ("y",)})
    rights = Rights(["impersonate-on:associated-node:list pods", "impersonate:associated-node nodes *"])
    impersonation = Impersonation(rights)
    answer = await impersonation.impersonate(UserInfo("system:node:n"), action(pod))
    assert answer.user == UserInfo("system:node:n", groups=("system:nodes", "system:authenticated"))
    assert dict(rights.asked[0].user.extra) == {
        "authentication.kubernetes.io/associated-node-keys": ("acme.io/x", "authentication.kubernetes.io/node-name")
    }
    with pytest.raises(StatusError):
        await impersonation.impersonate(UserInfo("system:node:other"), action(pod))


async def test_a_user_who_is_no_pod_is_on_no_node() -> None:
    extra = {"authentication.kubernetes.io/node-name": ("n",)}
    rights = "impersonate-on:associated-node:list pods", "impersonate:associated-node nodes *"
    await refusal(UserInfo("system:node:n"), *rights, requestor=UserInfo("jane", extra=extra))


# Names


@pytest.mark.parametrize(
    ("username", "node"),
    [("system:node:a.b", "a.b"), ("system:node:", ""), ("system:node:A", ""), ("a", ""), ("node:a", "")],
)
def test_names_of_nodes(username: str, node: str) -> None:
    assert node_name(username) == node


@pytest.mark.parametrize(
    "username",
    [
        "robot",
        "system:serviceaccount:a",
        "system:serviceaccount:a:b:c",
        "system:serviceaccount:A:b",
        "system:serviceaccount::b",
    ],
)
def test_names_that_are_no_service_accounts(username: str) -> None:
    assert service_account(username) is None
