"""NodePools of a running cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from steersman.api.core.v1 import Container, Node, Pod, PodSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.resources import EVENTS, NODES, PODS
from steersman.cluster.cluster import Cluster
from steersman.cluster.configuration import Configuration
from steersman.controlplane.options import Options
from steersman.machinery.errors.status import StatusError
from steersman.testing.clock import Clock
from tests.cluster.node_pools.pools import ADMIN, POOLS, has_nodes, names, status_with
from tests.controllers.waiting import eventually

BEYOND_BOUNDS: Final[list[dict[str, Any]]] = [
    {"replicas": -1},
    {"replicas": 32769},
    {"bootTime": "soon"},
    {"bootTime": "9999999999999h"},
    {"pricePerHour": "-1"},
    {"pricePerHour": "1" * 17},
    {"zones": ["a", "a"]},
    {"zones": ["z" * 64]},
    {"limits": {"cpu": "1e999"}},
    {"template": {"metadata": {"labels": {f"l{each}": "v" for each in range(65)}}}},
    {"template": {"metadata": {"annotations": {"a": "x" * 4097}}}},
    {"template": {"status": {"capacity": {"cpu": "-1"}}}},
    {"template": {"status": {"capacity": {"cpu": "1" * 33}}}},
    {"template": {"spec": {"taints": [{"key": "k", "effect": "Never"}]}}},
]


@pytest_asyncio.fixture
async def clock() -> AsyncIterator[Clock]:
    found = Clock()
    yield found
    found.close()


@pytest_asyncio.fixture
async def client(clock: Clock, keys_folder: Path) -> AsyncIterator[Client]:
    cluster = Cluster(Options(data_dir=keys_folder, storage="memory", listen=False), Configuration((), pools=True))
    await cluster.start()
    try:
        yield cluster.client(ADMIN, "test")
    finally:
        await cluster.stop()


async def create(client: Client, name: str, **spec: Any) -> None:
    await client.create(POOLS, {"metadata": {"name": name}, "spec": spec})


def is_ready(node: Node) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)


async def test_a_pool_has_as_many_nodes_as_it_says(client: Client) -> None:
    await create(client, "spot", replicas=2, template={"status": {"capacity": {"cpu": 4}}})
    status = await status_with(client, "spot", replicas=2, readyReplicas=2)
    assert await names(client) == ["spot-0", "spot-1"]
    assert status["capacity"]["cpu"] == "8"
    assert status["selector"] == "simulation.steersman.dev/group=spot"
    assert [(each["type"], each["status"]) for each in status["conditions"]] == [("Ready", "True")]
    scale = {"spec": {"replicas": 3}}
    await client.patch_without_result(POOLS, "spot", "", scale, subresource="scale")
    await has_nodes(client, "spot-0", "spot-1", "spot-2")
    await client.patch_without_result(POOLS, "spot", "", {"spec": {"replicas": 0}})
    await has_nodes(client)
    await status_with(client, "spot", replicas=0, readyReplicas=0)


async def test_a_pool_is_scaled_again_and_again(client: Client) -> None:
    await create(client, "spot", replicas=3)
    for replicas in (3, 1, 2, 0, 4, 1):
        await client.patch_without_result(POOLS, "spot", "", {"spec": {"replicas": replicas}})
        await has_nodes(client, *(f"spot-{each}" for each in range(replicas)))
        await status_with(client, "spot", desiredReplicas=replicas, readyReplicas=replicas)


async def test_a_node_that_a_finalizer_holds_is_replaced_and_holds_nothing_up(client: Client) -> None:
    await create(client, "spot", replicas=2)
    await has_nodes(client, "spot-0", "spot-1")
    held = {"metadata": {"finalizers": ["example.com/held"]}}
    await client.patch_without_result(NODES, "spot-1", "", held)
    await client.patch_without_result(POOLS, "spot", "", {"spec": {"replicas": 1}})
    await status_with(client, "spot", replicas=1)
    await client.patch_without_result(POOLS, "spot", "", {"spec": {"replicas": 3}})
    await has_nodes(client, "spot-0", "spot-1", "spot-2", "spot-3")
    await client.patch_without_result(NODES, "spot-1", "", {"metadata": {"finalizers": None}})
    await has_nodes(client, "spot-0", "spot-2", "spot-3")


async def test_nodes_have_the_properties_of_the_template_and_boot(client: Client, clock: Clock) -> None:
    template = {
        "metadata": {"labels": {"kind": "gpu"}, "annotations": {"example.com/rack": "7"}},
        "spec": {"taints": [{"key": "example.com/gpu", "effect": "NoSchedule"}]},
        "status": {
            "capacity": {"cpu": "8", "example.com/gpu": 4},
            "allocatable": {"cpu": "7500m"},
            "nodeInfo": {"architecture": "arm64"},
        },
    }
    await create(client, "gpu", template=template, bootTime="5m")
    await clock.advance(minutes=4)
    node = await client.get(NODES, "gpu-0")
    assert not is_ready(node)
    assert (await status_with(client, "gpu", replicas=1, readyReplicas=0))["conditions"][0]["reason"] == "NodesNotReady"
    assert (node.metadata.labels["kind"], node.metadata.annotations["example.com/rack"]) == ("gpu", "7")
    assert node.metadata.labels["kubernetes.io/arch"] == "arm64"
    assert "example.com/gpu" in {each.key for each in node.spec.taints}
    assert (node.status.capacity["cpu"], node.status.allocatable["cpu"]) == ("8", "7500m")
    assert node.status.allocatable["example.com/gpu"] == "4"
    assert node.status.allocatable["pods"] == "110"
    await clock.advance(minutes=2)
    assert is_ready(await client.get(NODES, "gpu-0"))
    await status_with(client, "gpu", readyReplicas=1)


async def test_nodes_are_spread_over_zones(client: Client) -> None:
    await create(client, "worker", replicas=5, zones=["a", "b", "c"])
    status = await status_with(client, "worker", replicas=5)
    assert status["zones"] == {"a": 2, "b": 2, "c": 1}
    await client.delete(NODES, "worker-0")
    assert (await status_with(client, "worker", replicas=5, nodesMade=6))["zones"] == {"a": 2, "b": 2, "c": 1}


async def test_cost_counts_the_time_of_each_node_at_its_price(client: Client, clock: Clock) -> None:
    await create(client, "spot", replicas=2, pricePerHour="0.5")
    await status_with(client, "spot", replicas=2)
    await clock.advance(minutes=30)
    cost = float((await client.get(POOLS, "spot"))["status"]["cost"])
    assert cost == pytest.approx(0.5, abs=0.03)
    await client.patch_without_result(POOLS, "spot", "", {"spec": {"replicas": 1, "pricePerHour": "10"}})
    await status_with(client, "spot", replicas=1)
    await clock.advance(minutes=12)
    assert float((await client.get(POOLS, "spot"))["status"]["cost"]) == pytest.approx(2.5, abs=0.3)


async def test_a_node_is_interrupted_with_a_notice_and_replaced(client: Client, clock: Clock) -> None:
    await create(client, "spot", replicas=1, interruptions={"notice": "5m"})
    await has_nodes(client, "spot-0")
    spec = PodSpec(node_name="spot-0", containers=[Container(name="c", image="x")])
    await client.create(PODS, Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=spec))
    soon = {"metadata": {"annotations": {"simulation.steersman.dev/interrupted-after": "1s"}}}
    await client.patch_without_result(NODES, "spot-0", "", soon)
    await clock.advance(minutes=4)
    node = await client.get(NODES, "spot-0")
    assert [each.effect for each in node.spec.taints if each.key == "simulation.steersman.dev/interrupted"] == [
        "NoSchedule"
    ]
    reasons = {(each.involved_object.kind, each.reason) for each in (await client.list(EVENTS)).items}
    assert {("Node", "SpotInterruption"), ("NodePool", "SpotInterruption")} <= reasons
    await clock.advance(minutes=2)
    assert await names(client) == ["spot-1"]
    await clock.advance(minutes=2)
    assert (await client.list(PODS, "default")).items == []


async def test_a_node_that_fails_is_replaced_after_its_time(client: Client, clock: Clock) -> None:
    await create(client, "worker", replicas=1, failures={"repairAfter": "10m"})
    await has_nodes(client, "worker-0")
    fails = {"metadata": {"annotations": {"simulation.steersman.dev/fails-after": "1s"}}}
    await client.patch_without_result(NODES, "worker-0", "", fails)
    await clock.advance(minutes=5)
    node = await client.get(NODES, "worker-0")
    assert not is_ready(node)
    assert node.metadata.annotations["simulation.steersman.dev/unreachable"] == "true"
    await status_with(client, "worker", readyReplicas=0)
    await clock.advance(minutes=8)
    found = (await client.list(NODES)).items
    assert [each.metadata.uid for each in found] != [node.metadata.uid]
    await status_with(client, "worker", readyReplicas=1, nodesMade=2)


async def test_the_same_seed_has_the_same_fates(client: Client) -> None:
    fates = []
    for seed in (7, 7, 8):
        await create(
            client, "spot", replicas=3, seed=seed, interruptions={"meanTime": "2h"}, failures={"meanTime": "9h"}
        )
        await status_with(client, "spot", replicas=3)
        fates.append(
            [
                [
                    each.metadata.annotations[f"simulation.steersman.dev/{what}-after"]
                    for what in ("interrupted", "fails")
                ]
                for each in (await client.list(NODES)).items
            ]
        )
        await client.delete(POOLS, "spot")
        await has_nodes(client)
    assert fates[0] == fates[1] != fates[2]


async def test_limits_bound_the_number_of_nodes(client: Client) -> None:
    await create(client, "small", replicas=9, limits={"cpu": 100, "memory": "10Ti"})
    status = await status_with(client, "small", replicas=3)
    assert status["conditions"][0]["reason"] == "LimitReached"
    await client.patch_without_result(POOLS, "small", "", {"spec": {"limits": {"nodes": 1}}})
    await has_nodes(client, "small-0")


async def test_nodes_of_others_are_left_alone(client: Client) -> None:
    await create(client, "worker", replicas=1)
    await has_nodes(client, "worker-0")
    for number, labels in enumerate(({}, {"simulation.steersman.dev/group": "worker"})):
        await client.create(NODES, Node(metadata=ObjectMeta(name=f"other-{number}", labels=dict(labels))))
    await client.patch_without_result(POOLS, "worker", "", {"spec": {"replicas": 0}})
    await has_nodes(client, "other-0", "other-1")


async def test_a_simulated_node_with_the_label_joins_the_pool_and_leaves_it_without(client: Client) -> None:
    await create(client, "worker", replicas=2)
    await has_nodes(client, "worker-0", "worker-1")
    away = {"metadata": {"labels": {"simulation.steersman.dev/group": None}}}
    await client.patch_without_result(NODES, "worker-0", "", away)
    await has_nodes(client, "worker-0", "worker-1", "worker-2")

    async def released() -> bool:
        return (await client.get(NODES, "worker-0")).metadata.owner_references == []

    await eventually(released)
    await client.delete(NODES, "worker-2")
    back = {"metadata": {"labels": {"simulation.steersman.dev/group": "worker"}}}
    await client.patch_without_result(NODES, "worker-0", "", back)
    await status_with(client, "worker", replicas=2)


async def test_a_copy_of_a_node_by_an_autoscaler_is_not_of_the_pool(client: Client) -> None:
    await create(client, "spot", replicas=1)
    await status_with(client, "spot", replicas=1, readyReplicas=1)
    copy = await client.get(NODES, "spot-0")
    copy.metadata.name, copy.metadata.uid, copy.metadata.resource_version = "copy", "", ""
    copy.spec.provider_id = "kwok:copy"
    await client.create(NODES, copy)

    async def is_released() -> bool:
        return not (await client.get(NODES, "copy")).metadata.owner_references

    await eventually(is_released)
    await status_with(client, "spot", replicas=1)
    assert await names(client) == ["copy", "spot-0"]


async def test_a_deleted_pool_takes_its_nodes_with_it(client: Client) -> None:
    await create(client, "worker", replicas=2)
    await has_nodes(client, "worker-0", "worker-1")
    await client.delete(POOLS, "worker")
    await has_nodes(client)


async def test_a_pool_beyond_the_bounds_is_refused(client: Client) -> None:
    for spec in BEYOND_BOUNDS:
        with pytest.raises(StatusError) as refused:
            await create(client, "p", **spec)
        assert refused.value.code == 422, spec


async def test_a_pool_whose_name_is_too_long_for_a_label_says_so(client: Client) -> None:
    await create(client, "p" * 64)

    async def reason() -> bool:
        status = (await client.get(POOLS, "p" * 64)).get("status", {})
        return [each["reason"] for each in status.get("conditions", ())] == ["InvalidSpec"]

    await eventually(reason)
    assert await names(client) == []


async def test_a_pool_that_nodes_cannot_follow_says_so_and_keeps_no_other_from_working(client: Client) -> None:
    annotations = {f"a{each}": "x" * 4096 for each in range(8)}
    await create(client, "large", template={"metadata": {"annotations": annotations}})
    await create(client, "wrong", template={"metadata": {"labels": {"not a label": "!"}}})
    await create(client, "huge", template={"status": {"capacity": {"cpu": "9e99", "pods": "9E"}}}, limits={"cpu": "0"})
    await create(client, "good")
    await status_with(client, "good", readyReplicas=1)
    large = await client.get(POOLS, "large")
    assert [each["reason"] for each in large["status"]["conditions"]] == ["InvalidSpec"]

    async def failed() -> bool:
        events = (await client.list(EVENTS)).items
        return any(each.reason == "FailedCreate" and each.involved_object.name == "wrong" for each in events)

    await eventually(failed)
    wrong = await client.get(POOLS, "wrong")
    assert [each["reason"] for each in wrong["status"]["conditions"]] == ["NodesNotChanged"]
    assert await names(client) == ["good-0"]


async def test_a_horizontal_pod_autoscaler_scales_a_pool(client: Client, clock: Clock) -> None:
    await create(client, "worker", replicas=1)
    queue = {"metadata": {"name": "external-metrics"}, "data": {"queue": "30"}}
    await client.create(APIResource("", "v1", "configmaps", "ConfigMap", dict), queue, "default")
    autoscaler = {
        "metadata": {"name": "worker"},
        "spec": {
            "minReplicas": 1,
            "maxReplicas": 4,
            "scaleTargetRef": {"apiVersion": POOLS.api_version, "kind": POOLS.kind, "name": "worker"},
            "metrics": [
                {
                    "type": "External",
                    "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}},
                }
            ],
        },
    }
    autoscalers: APIResource[dict[str, Any]] = APIResource(
        "autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", dict
    )
    await client.create(autoscalers, autoscaler, "default")
    await clock.advance(minutes=1)
    await has_nodes(client, "worker-0", "worker-1", "worker-2")
