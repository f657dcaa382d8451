"""`steersman scale nodes`: the size of a group of a running cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from steersman.api.core.v1 import Container, Node, Pod, PodSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.authentication.user import UserInfo
from steersman.cli.up.scale import UnknownGroup, scale_group
from steersman.client.client import Client
from steersman.client.resources import LEASES, NODES, PODS
from steersman.cluster.cluster import Cluster
from steersman.cluster.configuration import Configuration, NodeGroup
from steersman.controlplane.options import Options
from tests.controllers.waiting import eventually

ADMIN = UserInfo("admin", groups=("system:masters",))


@pytest_asyncio.fixture
async def client(keys_folder: Path) -> AsyncIterator[Client]:
    groups = (NodeGroup("worker", 2), NodeGroup("gpu", capacity={"example.com/gpu": 4}, labels={"kind": "gpu"}))
    cluster = Cluster(Options(data_dir=keys_folder, storage="memory", listen=False), Configuration(groups))
    await cluster.start()
    try:
        yield cluster.client(ADMIN, "test")
    finally:
        await cluster.stop()


async def names(client: Client) -> list[str]:
    return sorted(each.metadata.name for each in (await client.list(NODES)).items)


def is_ready(node: Node) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)


async def test_added_nodes_are_like_the_first_one_of_the_group_and_run_pods(client: Client) -> None:
    assert await scale_group(client, "gpu", 3) == "group gpu: 3 nodes, 2 added"
    spec = PodSpec(node_name="gpu-2", containers=[Container(name="c", image="x")])
    await client.create(PODS, Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=spec))

    async def runs() -> bool:
        return (await client.get(PODS, "p", "default")).status.phase == "Running"

    await eventually(runs)
    first, last = await client.get(NODES, "gpu-0"), await client.get(NODES, "gpu-2")
    assert is_ready(last)
    assert last.status.allocatable["example.com/gpu"] == "4"
    assert last.status.allocatable == first.status.allocatable
    assert last.metadata.labels == {**first.metadata.labels, "kubernetes.io/hostname": "gpu-2"}


async def test_removed_nodes_are_empty_ones_and_lose_their_leases(client: Client) -> None:
    spec = PodSpec(node_name="worker-1", containers=[Container(name="c", image="x")])
    await client.create(PODS, Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=spec))
    assert await scale_group(client, "worker", 1) == "group worker: 1 nodes, 1 removed"
    assert await names(client) == ["gpu-0", "worker-1"]

    async def left() -> bool:
        leases = (await client.list(LEASES, "kube-node-lease")).items
        return sorted(each.metadata.name for each in leases) == ["gpu-0", "worker-1"]

    await eventually(left)
    assert await scale_group(client, "worker", 1) == "group worker: 1 nodes, 0 added"
    assert await scale_group(client, "worker", 2) == "group worker: 2 nodes, 1 added"
    assert await names(client) == ["gpu-0", "worker-0", "worker-1"]


async def test_a_group_is_named_where_there_are_several(client: Client) -> None:
    with pytest.raises(UnknownGroup, match=r"^--group is needed, as there are several: gpu, worker$"):
        await scale_group(client, "", 1)
    with pytest.raises(
        UnknownGroup, match=r"^no node is in group workers, did you mean worker\?; groups: gpu, worker$"
    ):
        await scale_group(client, "workers", 1)


async def test_a_cluster_without_nodes_gets_usual_ones(client: Client) -> None:
    for group in ("gpu", "worker"):
        await scale_group(client, group, 0)
    assert await scale_group(client, "", 2) == "group node: 2 nodes, 2 added"
    assert await names(client) == ["node-0", "node-1"]
