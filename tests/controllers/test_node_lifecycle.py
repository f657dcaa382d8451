"""Tests of the node lifecycle controller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from steersman.api.coordination.v1 import Lease, LeaseSpec
from steersman.api.core.v1 import Container, Node, NodeCondition, Pod, PodCondition, PodSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.api_resource import APIResource
from steersman.client.client import STRATEGIC_MERGE_PATCH, Client
from steersman.client.resources import EVENTS, LEASES, NODES, PODS
from steersman.controllers.node_lifecycle import NodeLifecycleController
from steersman.controllers.taint_eviction import TaintEvictionController
from steersman.machinery.codec.serializer import to_plain
from steersman.machinery.values import times
from steersman.testing.clock import Clock
from tests.controllers.waiting import Run, eventually


async def add_node(client: Client, name: str, **labels: str) -> None:
    await client.create(NODES, Node(metadata=ObjectMeta(name=name, labels=labels)))
    now = times.now()
    ready = NodeCondition(type="Ready", status="True", last_heartbeat_time=now, last_transition_time=now)
    await put_condition(client, name, ready)


async def put_condition(client: Client, name: str, condition: NodeCondition) -> None:
    patch = {"status": {"conditions": [to_plain(condition)]}}
    await client.patch(NODES, name, "", patch, media=STRATEGIC_MERGE_PATCH, subresource="status")


async def taints(client: Client, name: str) -> set[str]:
    return {f"{each.key}:{each.effect}" for each in (await client.get(NODES, name)).spec.taints}


async def renew(client: Client, name: str) -> None:
    spec = LeaseSpec(holder_identity=name, renew_time=times.now_micro())
    try:
        await client.patch(LEASES, name, "kube-node-lease", {"spec": {"renewTime": spec.renew_time}})
    except Exception:
        await client.create(LEASES, Lease(metadata=ObjectMeta(name=name, namespace="kube-node-lease"), spec=spec))


async def reasons(client: Client, kind: str) -> list[str]:
    return [each.reason for each in (await client.list(EVENTS)).items if each.involved_object.kind == kind]


async def test_a_node_that_is_well_has_no_taints_and_its_old_labels(run: Run) -> None:
    clock = Clock()
    client = await run(NodeLifecycleController)
    await add_node(client, "a", **{"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64"})
    await clock.settle()
    node = await client.get(NODES, "a")
    assert node.spec.taints == []
    assert node.metadata.labels["beta.kubernetes.io/arch"] == "arm64"
    assert await reasons(client, "Node") == ["RegisteredNode"]


class _Deleting:
    """Client by which a node is deleted as soon as it is patched."""

    def __init__(self, client: Client, is_gone: Callable[[str], bool]) -> None:
        self._client = client
        self._is_gone = is_gone

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def patch(self, resource: APIResource[Any], name: str, *arguments: Any, **options: Any) -> Any:
        patched = await self._client.patch(resource, name, *arguments, **options)
        await self._client.delete(resource, name)

        async def gone() -> bool:
            return self._is_gone(name)

        await eventually(gone)
        return patched


class _WithDeletions(NodeLifecycleController):
    async def sync(self, key: str) -> None:
        nodes = self.informers.for_resource(NODES)
        whole, self.client = self.client, cast("Client", _Deleting(self.client, lambda name: not nodes.get("", name)))
        try:
            await super().sync(key)
        finally:
            self.client = whole


async def test_a_node_may_be_deleted_while_its_labels_are_patched(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    client = await run(_WithDeletions)
    await client.create(NODES, Node(metadata=ObjectMeta(name="a", labels={"kubernetes.io/os": "linux"})))

    async def gone() -> bool:
        return await client.find(NODES, "a") is None and "RemovingNode" in await reasons(client, "Node")

    await eventually(gone)
    assert [each for each in caplog.records if each.levelname == "ERROR"] == []


async def test_conditions_and_cordons_keep_pods_away(run: Run) -> None:
    clock = Clock()
    client = await run(NodeLifecycleController)
    await add_node(client, "a")
    await client.patch(NODES, "a", "", {"spec": {"unschedulable": True}})
    await put_condition(client, "a", NodeCondition(type="MemoryPressure", status="True"))
    await clock.settle()
    assert await taints(client, "a") == {
        "node.kubernetes.io/unschedulable:NoSchedule",
        "node.kubernetes.io/memory-pressure:NoSchedule",
    }
    await client.patch(NODES, "a", "", {"spec": {"unschedulable": None}})
    await clock.settle()
    assert await taints(client, "a") == {"node.kubernetes.io/memory-pressure:NoSchedule"}


async def test_a_silent_node_counts_as_gone_and_its_pods_are_driven_away(run: Run) -> None:
    clock = Clock()
    client = await run(NodeLifecycleController, TaintEvictionController)
    for name in ("silent", "well"):
        await add_node(client, name)
        await renew(client, name)
    spec = PodSpec(node_name="silent", containers=[Container(name="c", image="c")])
    made = await client.create(PODS, Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=spec))
    made.status.phase = "Running"
    made.status.conditions = [PodCondition(type="Ready", status="True")]
    await client.update_status(PODS, made)
    for _ in range(6):
        await clock.advance(seconds=10)
        await renew(client, "well")
    await clock.settle()
    conditions = {each.type: each for each in (await client.get(NODES, "silent")).status.conditions}
    assert (conditions["Ready"].status, conditions["Ready"].reason) == ("Unknown", "NodeStatusUnknown")
    assert conditions["Ready"].message == "Kubelet stopped posting node status."
    assert conditions["DiskPressure"].reason == "NodeStatusNeverUpdated"
    assert await taints(client, "silent") == {
        "node.kubernetes.io/unreachable:NoSchedule",
        "node.kubernetes.io/unreachable:NoExecute",
    }
    assert await taints(client, "well") == set()
    pod = await client.get(PODS, "p", "default")
    assert [each.status for each in pod.status.conditions] == ["False"]
    assert "NodeNotReady" in await reasons(client, "Node")
    for _ in range(31):
        await clock.advance(seconds=10)
        await renew(client, "well")
    pod = await client.get(PODS, "p", "default")
    assert pod.metadata.deletion_timestamp
    assert {each.type: each.reason for each in pod.status.conditions}["DisruptionTarget"] == "DeletionByTaintManager"
    assert "TaintManagerEviction" in await reasons(client, "Pod")


async def test_a_node_that_is_heard_again_is_free_again(run: Run) -> None:
    clock = Clock()
    client = await run(NodeLifecycleController)
    for name in ("back", "well"):
        await add_node(client, name)
    for _ in range(7):
        await clock.advance(seconds=10)
        await renew(client, "well")
    assert len(await taints(client, "back")) == 2
    await put_condition(client, "back", NodeCondition(type="Ready", status="True", last_heartbeat_time=times.now()))
    await clock.settle()
    assert await taints(client, "back") == set()


async def test_where_all_nodes_are_silent_nothing_is_driven_away(run: Run) -> None:
    clock = Clock()
    client = await run(NodeLifecycleController)
    for name in ("a", "b"):
        await add_node(client, name)
    await clock.advance(seconds=120)
    for name in ("a", "b"):
        assert await taints(client, name) == {"node.kubernetes.io/unreachable:NoSchedule"}
