"""Rights of nodes by verb and resource. Tests of whole servers are in tests/conformance."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.authentication.user import NODES, UserInfo
from steersman.authorization.attributes import Attributes, read_selectors
from steersman.authorization.bootstrap_policy import load_bootstrap_policy
from steersman.authorization.interface import Decision
from steersman.authorization.node.authorizer import NodeAuthorizer
from steersman.authorization.node.graph import Graph
from steersman.authorization.node.references import SECRET, PodReferences
from steersman.machinery.identity.action import Action

RULES = next(each.rules for each in load_bootstrap_policy().cluster_roles if each.metadata.name == "system:node")
KUBELET = UserInfo("system:node:n", groups=(NODES,))


@pytest.fixture
def authorizer() -> NodeAuthorizer:
    graph = Graph()
    graph.put_pod("x", "p", PodReferences("n", ((SECRET, "s"),)))
    graph.put_slice("mine", "n")
    return NodeAuthorizer(graph, RULES or ())


def judged(authorizer: NodeAuthorizer, action: Action, user: UserInfo = KUBELET, fields: str = "") -> str | None:
    """Return None if the action is allowed, else the reason."""
    verdict = authorizer.authorize(Attributes(user, action, limits=read_selectors(fields, "")))
    assert not verdict.denied
    return None if verdict.allowed else verdict.reason


UNRELATED = "no relationship found between node 'n' and this object"


@pytest.mark.parametrize(
    ("action", "fields", "reason"),
    [
        (Action("get", "", "v1", "secrets", "", "x", "s"), "", None),
        (Action("watch", "", "v1", "secrets", "", "x", "s"), "", None),
        (Action("get", "", "v1", "secrets", "", "x", "other"), "", UNRELATED),
        (Action("get", "", "v1", "secrets", "", "y", "s"), "", UNRELATED),
        (Action("get", "", "v1", "configmaps", "", "x", "s"), "", UNRELATED),
        (Action("list", "", "v1", "secrets", "", "x"), "", "No Object name found"),
        (Action("list", "", "v1", "secrets"), "", "can only read namespaced object of this type"),
        (Action("delete", "", "v1", "secrets", "", "x", "s"), "", "can only read resources of this type"),
        (Action("get", "", "v1", "secrets", "status", "x", "s"), "", "cannot read subresource"),
        (Action("get", "", "v1", "pods", "", "x", "p"), "", None),
        (Action("get", "", "v1", "pods", "", "x", "q"), "", UNRELATED),
        (Action("list", "", "v1", "pods"), "spec.nodeName=n", None),
        (
            Action("list", "", "v1", "pods"),
            "spec.nodeName=m",
            "can only list/watch pods with spec.nodeName field selector",
        ),
        (
            Action("list", "", "v1", "pods"),
            "spec.nodeName!=n",
            "can only list/watch pods with spec.nodeName field selector",
        ),
        (Action("update", "", "v1", "pods", "", "x", "p"), "", ""),
        (Action("patch", "", "v1", "pods", "status", "x", "other"), "", None),
        (Action("get", "", "v1", "nodes", "", "", "n"), "", None),
        (Action("get", "", "v1", "nodes", "", "", "m"), "", "node 'n' cannot read 'm', only its own Node object"),
        (Action("get", "", "v1", "nodes", "proxy", "", "n"), "", ""),
        (Action("get", "resource.k8s.io", "v1", "resourceslices", "", "", "mine"), "", None),
        (Action("get", "resource.k8s.io", "v1", "resourceslices", "", "x", "mine"), "", UNRELATED),
        (Action("deletecollection", "resource.k8s.io", "v1", "resourceslices"), "spec.nodeName=n", None),
        (Action("update", "coordination.k8s.io", "v1", "leases", "", "kube-node-lease", "n"), "", None),
        (
            Action("update", "coordination.k8s.io", "v1", "leases", "", "default", "n"),
            "",
            'can only access leases in the "kube-node-lease" system namespace',
        ),
        (Action("create", "certificates.k8s.io", "v1", "certificatesigningrequests"), "", None),
        (Action("get", "", "v1", "services"), "", None),
        (Action("delete", "", "v1", "services"), "", ""),
        (Action("create", "", "v1", "serviceaccounts", "token", "x", "a"), "", UNRELATED),
    ],
)
def test_what_a_node_may_do(authorizer: NodeAuthorizer, action: Action, fields: str, reason: Any) -> None:
    assert judged(authorizer, action, fields=fields) == reason


@pytest.mark.parametrize(
    ("user", "reason"),
    [
        (UserInfo("system:node:n"), ""),
        (UserInfo("n", groups=(NODES,)), ""),
        (UserInfo("system:node:", groups=(NODES,)), 'unknown node for user "system:node:"'),
    ],
)
def test_who_is_no_node_is_not_judged(authorizer: NodeAuthorizer, user: UserInfo, reason: str) -> None:
    assert judged(authorizer, Action("get", "", "v1", "services"), user) == reason


async def test_the_rules_of_nodes_are_not_told(authorizer: NodeAuthorizer) -> None:
    rules = await authorizer.rules_for(KUBELET, "x")
    assert rules.incomplete
    assert rules.error == "node authorizer does not support user rule resolution"
    assert not (await authorizer.rules_for(UserInfo("alice"), "x")).incomplete


def test_paths_are_nothing_of_nodes(authorizer: NodeAuthorizer) -> None:
    verdict = authorizer.authorize(Attributes(KUBELET, Action("get"), path="/metrics"))
    assert verdict.decision is Decision.NO_OPINION
