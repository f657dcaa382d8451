"""Tests of the pod garbage collector."""

from __future__ import annotations

import pytest

from steersman.api.core.v1 import Container, Node, Pod, PodSpec, Taint
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.resources import NODES, PODS
from steersman.controllers import pod_garbage_collector
from steersman.controllers.pod_garbage_collector import OUT_OF_SERVICE, PodGarbageCollector
from steersman.testing.clock import Clock
from tests.controllers.waiting import Run


async def make(client: Client, name: str, node: str = "", phase: str = "", **metadata: object) -> None:
    spec = PodSpec(node_name=node, containers=[Container(name="c", image="c")])
    pod = await client.create(PODS, Pod(metadata=ObjectMeta(name=name, namespace="default", **metadata), spec=spec))  # type: ignore[arg-type]
    if phase:
        pod.status.phase = phase
        await client.update_status(PODS, pod)


async def names(client: Client) -> set[str]:
    return {each.metadata.name for each in (await client.list(PODS)).items}


async def test_pods_of_a_node_that_is_gone_go_after_a_while(run: Run) -> None:
    clock = Clock()
    client = await run(PodGarbageCollector)
    await client.create(NODES, Node(metadata=ObjectMeta(name="stays")))
    await client.create(NODES, Node(metadata=ObjectMeta(name="goes")))
    await make(client, "a", "stays", "Running")
    await make(client, "b", "goes", "Running", finalizers=["example.com/look"])
    await make(client, "c", "never-was", "Running")
    await clock.settle()
    await client.delete(NODES, "goes")
    await clock.advance(seconds=30)
    assert await names(client) == {"a", "b", "c"}
    await clock.advance(seconds=15)
    assert await names(client) == {"a", "b"}
    pod = await client.get(PODS, "b", "default")
    assert pod.status.phase == "Failed"
    assert [(each.type, each.reason) for each in pod.status.conditions][-1] == ("DisruptionTarget", "DeletionByPodGC")


async def test_pods_that_were_never_bound_need_nobody_to_end_them(run: Run) -> None:
    clock = Clock()
    client = await run(PodGarbageCollector)
    await make(client, "a", finalizers=["example.com/look"])
    await client.delete(PODS, "a", "default")
    await clock.settle()
    assert (await client.get(PODS, "a", "default")).status.phase == "Failed"


async def test_pods_that_are_deleted_on_a_node_out_of_service_go_at_once(run: Run) -> None:
    clock = Clock()
    client = await run(PodGarbageCollector)
    node = Node(metadata=ObjectMeta(name="n"))
    node.spec.taints = [Taint(key=OUT_OF_SERVICE, effect="NoExecute")]
    await client.create(NODES, node)
    await make(client, "a", "n", "Running")
    await make(client, "b", "n", "Running")
    await client.delete(PODS, "a", "default")
    await clock.settle()
    assert await names(client) == {"b"}


async def test_of_too_many_that_have_ended_the_oldest_go(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_garbage_collector, "MOST_ENDED", 2)
    clock = Clock()
    client = await run(PodGarbageCollector)
    await client.create(NODES, Node(metadata=ObjectMeta(name="n")))
    for name in ("a", "b", "c", "d"):
        await make(client, name, "n", "Succeeded")
        await clock.advance(seconds=1)
    assert await names(client) == {"c", "d"}
