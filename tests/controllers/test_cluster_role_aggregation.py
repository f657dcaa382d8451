"""Tests of aggregated ClusterRoles."""

from __future__ import annotations

from steersman.api.meta.v1 import ObjectMeta
from steersman.api.rbac.v1 import ClusterRole, PolicyRule
from steersman.client.client import Client
from steersman.client.resources import CLUSTER_ROLES
from steersman.controllers.cluster_role_aggregation import ClusterRoleAggregationController
from tests.controllers.waiting import Run, eventually


async def resources(client: Client, name: str) -> set[str]:
    rules = (await client.get(CLUSTER_ROLES, name)).rules or []
    return {resource for rule in rules for resource in rule.resources}


async def test_the_default_roles_have_rules_and_take_more(run: Run) -> None:
    client = await run(ClusterRoleAggregationController)

    async def are_aggregated() -> bool:
        return "pods" in await resources(client, "view") and "roles" in await resources(client, "admin")

    await eventually(are_aggregated)
    made = ClusterRole(
        metadata=ObjectMeta(name="widgets", labels={"rbac.authorization.k8s.io/aggregate-to-view": "true"}),
        rules=[PolicyRule(api_groups=["example.com"], resources=["widgets"], verbs=["get"])],
    )
    await client.create(CLUSTER_ROLES, made)

    async def has_widgets() -> bool:
        return "widgets" in await resources(client, "view")

    await eventually(has_widgets)
    view = await client.get(CLUSTER_ROLES, "view")
    assert "clusterrole-aggregation-controller" in {each.manager for each in view.metadata.managed_fields}
    await client.delete(CLUSTER_ROLES, "widgets")

    async def has_none() -> bool:
        return not await has_widgets()

    await eventually(has_none)
