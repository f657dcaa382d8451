"""Roles and bindings: their rules, and the escalation check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.authentication.user import UserInfo
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Decision, Verdict
from steersman.machinery.errors.status import StatusError
from steersman.registry.rbac.clusterrolebindings import CLUSTER_ROLE_BINDINGS
from steersman.registry.rbac.clusterroles import CLUSTER_ROLES
from steersman.registry.rbac.rolebindings import ROLE_BINDINGS
from steersman.registry.rbac.roles import ROLES

GROUP = "rbac.authorization.k8s.io"
ALL = (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, ROLES, ROLE_BINDINGS)
ALICE = UserInfo("alice", groups=("system:authenticated",))
READ = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
WRITE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "create"]}


class Only:
    """An authorizer that allows one verb."""

    def __init__(self, verb: str = "") -> None:
        self.verb = verb

    def authorize(self, attributes: Attributes) -> Verdict:
        return Verdict(Decision.ALLOW if attributes.action.verb == self.verb else Decision.NO_OPINION)


def role(name: str, *rules: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "rules": list(rules)}


def binding(name: str, to: str, *, kind: str = "Role", user: str = "alice") -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "roleRef": {"kind": kind, "name": to},
        "subjects": [{"kind": "User", "name": user}],
    }


async def started(cluster: Callable[..., Any], verb: str = "") -> Any:
    """A cluster in which alice may read pods in the namespace `ns`."""
    c = await cluster(*ALL, authorizer=Only(verb))
    await c.create("roles", role("reader", READ), group=GROUP)
    await c.create("roles", role("writer", WRITE), group=GROUP)
    await c.create("rolebindings", binding("alice-reads", "reader"), group=GROUP)
    return c


async def refusal(request: Any) -> str:
    with pytest.raises(StatusError) as caught:
        await request
    assert caught.value.code == 403
    return caught.value.message


async def test_defaults_name_the_group(cluster: Callable[..., Any]) -> None:
    c = await started(cluster)
    made = await c.get("rolebindings", "alice-reads", group=GROUP)
    assert made["roleRef"] == {"apiGroup": GROUP, "kind": "Role", "name": "reader"}
    assert made["subjects"] == [{"apiGroup": GROUP, "kind": "User", "name": "alice"}]


async def test_role_gives_no_more_than_its_maker_holds(cluster: Callable[..., Any]) -> None:
    c = await started(cluster)
    await c.create("roles", role("same", READ), group=GROUP, user=ALICE)
    assert await refusal(c.create("roles", role("more", WRITE), group=GROUP, user=ALICE)) == (
        'roles.rbac.authorization.k8s.io "more" is forbidden: user "alice" (groups=["system:authenticated"]) '
        "is attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["pods"], Verbs:["create"]}'
    )
    assert "permissions not currently held" in await refusal(
        c.update("roles", role("same", WRITE), group=GROUP, user=ALICE)
    )


async def test_cluster_role_needs_rights_everywhere(cluster: Callable[..., Any]) -> None:
    c = await started(cluster)
    assert "permissions not currently held" in await refusal(
        c.create("clusterroles", role("reader", READ), group=GROUP, user=ALICE)
    )


async def test_binding_gives_no_more_than_its_maker_holds(cluster: Callable[..., Any]) -> None:
    c = await started(cluster)
    await c.create("rolebindings", binding("bob", "reader", user="bob"), group=GROUP, user=ALICE)
    refused = await refusal(c.create("rolebindings", binding("w", "writer"), group=GROUP, user=ALICE))
    assert refused.startswith('rolebindings.rbac.authorization.k8s.io "w" is forbidden: user "alice"')


async def test_verbs_escalate_and_bind_lift_the_check(cluster: Callable[..., Any]) -> None:
    c = await started(cluster, "escalate")
    await c.create("roles", role("more", WRITE), group=GROUP, user=ALICE)
    await refusal(c.create("rolebindings", binding("w", "writer"), group=GROUP, user=ALICE))
    other = await started(cluster, "bind")
    await other.create("rolebindings", binding("w", "writer", user="bob"), group=GROUP, user=ALICE)
    await refusal(other.create("roles", role("more", WRITE), group=GROUP, user=ALICE))


async def test_binding_to_a_missing_role(cluster: Callable[..., Any]) -> None:
    c = await started(cluster)
    with pytest.raises(StatusError) as caught:
        await c.create("rolebindings", binding("n", "none"), group=GROUP, user=ALICE)
    assert caught.value.code == 404
    await c.create("rolebindings", binding("n", "none"), group=GROUP)


async def test_owners_may_change_without_rights(cluster: Callable[..., Any]) -> None:
    c = await started(cluster)
    made = await c.get("roles", "writer", group=GROUP)
    made["metadata"]["finalizers"] = ["example.com/f"]
    await c.update("roles", made, group=GROUP, user=ALICE)


async def test_role_ref_does_not_change(cluster: Callable[..., Any]) -> None:
    c = await started(cluster)
    assert await c.faults(c.update("rolebindings", binding("alice-reads", "writer"), group=GROUP)) == [
        'roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"writer"}: '
        "cannot change roleRef"
    ]


@pytest.mark.parametrize(
    ("plural", "body", "faults"),
    [
        (
            "roles",
            role("r", {"resources": ["pods"], "verbs": []}),
            [
                "rules[0].verbs: Required value: verbs must contain at least one value",
                "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
            ],
        ),
        (
            "roles",
            role("r", {"nonResourceURLs": ["/a"], "verbs": ["get"]}),
            ['rules[0].nonResourceURLs: Invalid value: ["/a"]: namespaced rules cannot apply to non-resource URLs'],
        ),
        (
            "clusterroles",
            role("r", {**READ, "nonResourceURLs": ["/a"]}),
            [
                'rules[0].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to both regular resources and '
                "non-resource URLs"
            ],
        ),
        (
            "clusterrolebindings",
            binding("b", "r", kind="Role"),
            ['roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"'],
        ),
    ],
)
async def test_invalid_object_is_refused(
    cluster: Callable[..., Any], plural: str, body: dict[str, Any], faults: list[str]
) -> None:
    c = await cluster(*ALL)
    assert await c.faults(c.create(plural, body, group=GROUP)) == faults
