"""Rights: rules that allow a request, near misses, and the least grant, on a dump and on a server."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from steersman.client.client import Client
from steersman.client.in_process import InProcessTransport
from steersman.client.resources import CLUSTER_ROLES, ROLE_BINDINGS, ROLES
from steersman.explain.can_i import AccessQuery, explain_access
from steersman.explain.world import LiveWorld
from steersman.testing import Environment, User
from tests.explain.dumps import world_of

POLICY = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: shop}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list], resourceNames: [web]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: ann, namespace: shop}
subjects: [{kind: User, name: ann, apiGroup: rbac.authorization.k8s.io}, {kind: ServiceAccount, name: bot, namespace: shop}]
roleRef: {kind: Role, name: reader, apiGroup: rbac.authorization.k8s.io}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: broken}
subjects: [{kind: Group, name: team, apiGroup: rbac.authorization.k8s.io}]
roleRef: {kind: ClusterRole, name: gone, apiGroup: rbac.authorization.k8s.io}
---
"""


@pytest.mark.parametrize(
    ("query", "reason", "words"),
    [
        (AccessQuery("get", "po", "web", "shop", "ann"), "AllowedBy", "RoleBinding ann of Role reader"),
        (AccessQuery("delete", "pods", "web", "shop", "ann"), "NearMiss", "its verbs are get, list, not delete"),
        (AccessQuery("get", "pods", "db", "shop", "ann"), "NearMiss", "limited to the names web, not db"),
        (AccessQuery("get", "pods/log", "web", "shop", "ann"), "NearMiss", "its resource is pods, not pods/log"),
        (AccessQuery("get", "pods", "web", "other", "ann"), "OtherNamespace", "in namespace shop, not in other"),
        (AccessQuery("get", "pods", "web", "shop", "anne"), "SimilarSubject", "to User ann, not to User anne"),
        (AccessQuery("get", "pods", "web", "shop", "bot"), "SimilarSubject", "ServiceAccount shop/bot"),
        (AccessQuery("get", "pods", "", "shop", "zoe", ("team",)), "RoleMissing", "ClusterRole gone"),
        (AccessQuery("get", "pods", "web", "shop", "system:serviceaccount:shop:bot"), "AllowedBy", "reader"),
        (AccessQuery("get", "/metrics", user="system:x", groups=("system:masters",)), "PrivilegedGroup", "everything"),
    ],
)
async def test_rules_and_near_misses(tmp_path: Path, query: AccessQuery, reason: str, words: str) -> None:
    found = await explain_access(world_of(tmp_path, POLICY), query)
    assert [each for each in found.findings if each.reason == reason and words in each.message], found.findings


@pytest.mark.parametrize(
    "query",
    [
        AccessQuery("patch", "deployments/scale", "web", "shop", "zoe"),
        AccessQuery("create", "pods", "", "shop", "system:serviceaccount:shop:zoe"),
        AccessQuery("list", "nodes", user="zoe"),
        AccessQuery("get", "/metrics", user="zoe"),
    ],
)
async def test_the_least_grant_is_verified_and_allows_the_request(tmp_path: Path, query: AccessQuery) -> None:
    found = await explain_access(world_of(tmp_path, POLICY), query)
    (refused,) = (each for each in found.findings if each.reason == "NotAllowed")
    least = refused.suggestions[0]
    assert least.verified
    assert next(each["kind"] for each in yaml.safe_load_all(least.manifest)).endswith("Role")
    again = await explain_access(world_of(tmp_path, POLICY + least.manifest), query)
    assert next(each.reason for each in again.findings) == "AllowedBy"


async def test_the_least_grant_works_on_a_server_and_less_rights_are_told() -> None:
    query = AccessQuery("get", "configmaps", "one", "default", "zoe")
    async with Environment() as environment:
        server = environment.plane.server
        assert server is not None
        client = Client(InProcessTransport(server.handler, environment.token()), "tests")
        found = await explain_access(LiveWorld(client), query)
        refused = next(each for each in found.findings if each.reason == "NotAllowed")
        role, binding = yaml.safe_load_all(refused.suggestions[0].manifest)
        await client.apply(ROLES, role["metadata"]["name"], "default", role)
        await client.apply(ROLE_BINDINGS, binding["metadata"]["name"], "default", binding)
        found = await explain_access(LiveWorld(client), query)
        assert "User zoe may get configmaps one in namespace default" in found.summary
        assert [each.reason for each in found.findings] == ["AllowedBy"]
        assert await client.find(CLUSTER_ROLES, "view") is not None
        poor = Client(InProcessTransport(server.handler, environment.token(User("zoe"))), "tests")
        own = await explain_access(LiveWorld(poor), AccessQuery("delete", "configmaps", "one", "default"))
        assert "User zoe may not delete configmaps" in own.summary
        assert {"Unreadable", "RelatedRule"} <= {each.reason for each in own.findings}
