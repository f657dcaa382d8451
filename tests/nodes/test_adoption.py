"""Nodes that are created through the API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from ipaddress import IPv4Network
from pathlib import Path

import pytest
import pytest_asyncio

from steersman.api.core.v1 import Container, Node, NodeSpec, NodeStatus, Pod, PodSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import MERGE_PATCH
from steersman.client.errors import is_not_found
from steersman.client.resources import LEASES, NODES, PODS
from steersman.cluster.cluster import Cluster
from steersman.controlplane.options import Options
from steersman.machinery.errors.status import StatusError
from steersman.net.client.transport import Address
from steersman.nodes.node_set import Networks, NodeSet, template_of
from steersman.nodes.simulated_node import CAPACITY, NodeTemplate, SimulatedNode
from tests.controllers.waiting import eventually
from tests.nodes.server import requests

SMALL = {"cpu": "4", "memory": "8Gi", "pods": "20"}
NETWORKS = Networks(IPv4Network("172.16.0.0/12"), IPv4Network("10.128.0.0/9"))


def made(name: str, *, cidr: str = "", **annotations: str) -> Node:
    metadata = ObjectMeta(name=name, annotations={key.replace("__", "/"): value for key, value in annotations.items()})
    return Node(metadata=metadata, spec=NodeSpec(pod_cidr=cidr), status=NodeStatus(capacity=SMALL, allocatable=SMALL))


def of_kwok(name: str, *, cidr: str = "") -> Node:
    node = made(name, cidr=cidr)
    node.metadata.annotations = {"kwok.x-k8s.io/node": "fake"}
    return node


@pytest_asyncio.fixture
async def cluster(keys_folder: Path) -> AsyncIterator[requests.Node]:
    found = Cluster(Options(data_dir=keys_folder, storage="memory", listen=False))
    await found.start()
    try:
        yield requests.Node(found)
    finally:
        await found.stop()


async def ready(cluster: requests.Node, name: str) -> Node:
    async def is_ready() -> Node | None:
        found = await cluster.client.get(NODES, name)
        well = any(each.type == "Ready" and each.status == "True" for each in found.status.conditions)
        return found if well else None

    found = await eventually(is_ready)
    assert found is not None
    return found


async def test_a_node_that_asks_for_it_is_simulated_until_it_is_deleted(cluster: requests.Node) -> None:
    client = cluster.client
    await client.create(NODES, made("plain"))
    await client.create(NODES, of_kwok("added-1"))
    node = await ready(cluster, "added-1")
    assert (node.status.capacity, node.status.allocatable) == (SMALL, SMALL)
    assert node.metadata.labels["kubernetes.io/hostname"] == "added-1"
    assert (await client.get(LEASES, "added-1", "kube-node-lease")).spec.holder_identity == "added-1"
    await cluster.pod("elsewhere")
    spec = PodSpec(node_name="added-1", containers=[Container(name="c", image="x", command=["sh", "-c", "echo hi"])])
    await client.create(PODS, Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=spec))

    async def runs() -> str | None:
        found = await client.get(PODS, "p", "default")
        return found.status.pod_ip if found.status.phase == "Running" else None

    address = await eventually(runs)
    assert address is not None
    assert address.startswith(str(node.spec.pod_cidr).rpartition(".")[0])
    assert await cluster.logs("p") == "hi\n"
    assert (await client.get(NODES, "plain")).status.conditions == []
    way = cluster.cluster.plane.embedding.nearby
    assert way is not None
    assert way(Address(address, 80)) is not None
    await client.delete(NODES, "added-1")

    async def gone() -> bool:
        return way(Address(address, 80)) is None

    await eventually(gone)


async def test_a_node_may_ask_for_it_later(cluster: requests.Node) -> None:
    await cluster.client.create(NODES, made("later"))
    asked = {"metadata": {"annotations": {"simulation.steersman.dev/simulated": "true"}}}
    await cluster.client.patch(NODES, "later", "", asked, media=MERGE_PATCH)
    await ready(cluster, "later")
    more = {"status": {"capacity": {"cpu": "64"}, "allocatable": {"cpu": "64"}}}
    await cluster.client.patch_without_result(NODES, "later", "", more, subresource="status")

    async def follows() -> bool:
        assert cluster.cluster._components is not None
        return cluster.cluster._components._kubelets._nodes["later"].template.allocatable["cpu"] == "64"

    await eventually(follows)


async def test_the_lease_of_a_deleted_node_is_not_renewed(cluster: requests.Node) -> None:
    await cluster.client.create(NODES, of_kwok("gone"))
    await ready(cluster, "gone")
    assert cluster.cluster._components is not None
    kubelets = cluster.cluster._components._kubelets
    node = kubelets._nodes["gone"]
    await cluster.client.delete(NODES, "gone")

    async def left() -> bool:
        return "gone" not in kubelets._nodes

    await eventually(left)
    await cluster.client.delete(LEASES, "gone", "kube-node-lease")
    await kubelets._heartbeats._beat(node)
    with pytest.raises(StatusError) as missing:
        await cluster.client.get(LEASES, "gone", "kube-node-lease")
    assert is_not_found(missing.value)


def test_all_nodes_can_be_simulated() -> None:
    assert not NodeSet([], NETWORKS).is_to_join(made("n"))
    assert NodeSet([], NETWORKS, adopts_all=True).is_to_join(made("n"))
    assert not NodeSet([], adopts_all=True).is_to_join(of_kwok("n"))
    configured = SimulatedNode("node-0", 0, NodeTemplate(), *NETWORKS)
    assert not NodeSet([configured], NETWORKS).is_to_join(of_kwok("node-0"))


def test_nodes_have_addresses_of_their_own_and_keep_them() -> None:
    nodes = NodeSet([SimulatedNode("node-0", 0, NodeTemplate(), *NETWORKS)], NETWORKS)
    assert [nodes.join(of_kwok(name)).number for name in ("a", "b", "c")] == [1, 2, 3]
    nodes.leave("b")
    assert nodes.leave("node-0") is None
    assert nodes.join(of_kwok("d", cidr="10.128.9.0/24")).number == 9
    assert nodes.join(of_kwok("e", cidr="10.128.9.0/24")).number == 2
    assert nodes.join(of_kwok("f", cidr="192.168.0.0/16")).number == 4
    assert nodes.join(of_kwok("g", cidr="none")).number == 5


def test_no_more_nodes_join_than_there_are_addresses() -> None:
    nodes = NodeSet([], Networks(IPv4Network("172.16.0.0/12"), IPv4Network("10.128.0.0/23")))
    for name in ("a", "b"):
        nodes.join(of_kwok(name))
    with pytest.raises(ValueError, match="no range for node 2"):
        nodes.join(of_kwok("c"))
    nodes.leave("a")
    assert nodes.join(of_kwok("c")).number == 0


def test_a_node_has_what_its_object_says() -> None:
    usual = NodeTemplate(missing_images=("x",))
    node = Node(metadata=ObjectMeta(name="n", labels={"kubernetes.io/arch": "arm64"}), status=NodeStatus())
    found = template_of(node, usual)
    assert (found.architecture, found.capacity, found.allocatable) == ("arm64", CAPACITY, CAPACITY)
    assert found.missing_images == ("x",)
    node.status = NodeStatus(capacity={"cpu": "4"}, allocatable={"cpu": "3"})
    found = template_of(node, usual)
    assert found.capacity == {"cpu": "4", "memory": CAPACITY["memory"], "pods": CAPACITY["pods"]}
    assert found.allocatable["cpu"] == "3"
