"""Explanations for the page of users with few rights."""

from __future__ import annotations

from steersman.api.core.v1 import Container, Namespace, Pod, PodCondition, PodSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.api.rbac.v1 import PolicyRule, Role, RoleBinding, RoleRef, Subject
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.in_process import InProcessTransport
from steersman.client.resources import NAMESPACES, PODS
from steersman.testing import Environment, User
from tests.inspector.front_client import Visit

RBAC = "rbac.authorization.k8s.io"
ROLES = APIResource(RBAC, "v1", "roles", "Role", Role)
ROLE_BINDINGS = APIResource(RBAC, "v1", "rolebindings", "RoleBinding", RoleBinding)
UNSCHEDULED = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message="0/3 nodes")


async def test_unhealthy_pods_of_a_namespace_are_shown_to_a_user_who_may_read_these_alone(visit: Visit) -> None:
    async with Environment(users=[User("admin", ("system:masters",)), User("joe", ("few",))]) as environment:
        server = environment.plane.server
        assert server is not None
        admin = Client(InProcessTransport(server.handler, environment.token("admin")), "tests")
        await admin.create(NAMESPACES, Namespace(metadata=ObjectMeta(name="theirs")))
        here = ObjectMeta(name="readers", namespace="theirs")
        rule = PolicyRule(verbs=["get", "list"], api_groups=[""], resources=["pods"])
        await admin.create(ROLES, Role(metadata=here, rules=[rule]))
        binding = RoleBinding(
            metadata=here,
            role_ref=RoleRef(api_group=RBAC, kind="Role", name="readers"),
            subjects=[Subject(api_group=RBAC, kind="User", name="joe")],
        )
        await admin.create(ROLE_BINDINGS, binding)
        for namespace in ("theirs", "default"):
            pod = Pod(
                metadata=ObjectMeta(name="unplaced", namespace=namespace),
                spec=PodSpec(containers=[Container(name="main", image="app")]),
            )
            made = await admin.create(PODS, pod)
            made.status.conditions = [UNSCHEDULED]
            await admin.update_status(PODS, made)
        visitor = await visit(InProcessTransport(server.handler, environment.token("joe")))
        found = (await visitor.send("GET", "/why?namespace=theirs")).json()
        assert [each["subject"]["namespace"] for each in found["items"]] == ["theirs"]
        assert found["items"][0]["message"] == "not scheduled: 0/3 nodes"
        assert len(found["unread"]) == len(set(found["unread"]))
        everywhere = (await visitor.send("GET", "/why")).json()
        assert everywhere.get("items", []) == []
        assert any("pods" in each for each in everywhere["unread"])
