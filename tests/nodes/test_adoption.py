"""Nodes that are created through the API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from ipaddress import IPv4Network
from pathlib import Path
from typing import cast

import pytest
import pytest_asyncio

from steersman.api.core.v1 import Container, Node, NodeAddress, NodeSpec, NodeStatus, Pod, PodSpec, Toleration
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import MERGE_PATCH, Client
from steersman.client.errors import is_not_found
from steersman.client.informer import Informer
from steersman.client.resources import LEASES, NODES, PODS
from steersman.cluster.cluster import Cluster
from steersman.controlplane.options import Options
from steersman.machinery.errors.status import StatusError
from steersman.net.client.transport import Address
from steersman.nodes.adoption import Adoption, NodeHooks
from steersman.nodes.containers import Containers
from steersman.nodes.heartbeats import Heartbeats
from steersman.nodes.node_set import Networks, NodeSet, template_of
from steersman.nodes.server.servers import NodeServers
from steersman.nodes.simulated_node import CAPACITY, NodeTemplate, SimulatedNode
from steersman.testing.clock import Clock
from tests.controllers.waiting import eventually
from tests.nodes.server import requests

SMALL = {"cpu": "4", "memory": "8Gi", "pods": "20"}
ALL = Toleration(operator="Exists")
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
        node = await cluster.client.get(NODES, name)
        well = any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)
        return node if well else None

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
        pod = await client.get(PODS, "p", "default")
        return pod.status.pod_ip if pod.status.phase == "Running" else None

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


async def test_a_pod_has_addresses_of_a_node_that_is_made_again(cluster: requests.Node) -> None:
    """Another node has its former addresses by then."""
    client = cluster.client
    await client.create(NODES, of_kwok("again"))
    before = await ready(cluster, "again")
    await cluster.pod("elsewhere")
    for name, host_network in (("p", False), ("h", True)):
        spec = PodSpec(
            node_name="again", host_network=host_network, containers=[Container(name="c", image="x")], tolerations=[ALL]
        )
        await client.create(PODS, Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=spec))

    async def runs_on(node: Node) -> bool:
        host = node.status.addresses[0].address
        pod, on_host = [(await client.get(PODS, each, "default")).status for each in ("p", "h")]
        return (
            ([each.ip for each in pod.host_ips], [each.ip for each in on_host.host_ips]) == ([host], [host])
            and pod.pod_ip.startswith(node.spec.pod_cidr.rpartition(".")[0])
            and [each.ip for each in pod.pod_ips] == [pod.pod_ip]
            and [each.ip for each in on_host.pod_ips] == [on_host.pod_ip] == [host]
        )

    await eventually(lambda: runs_on(before))
    await client.delete(NODES, "again")
    await client.create(NODES, of_kwok("other"))
    other = await ready(cluster, "other")
    assert other.spec.pod_cidr == before.spec.pod_cidr
    await client.create(NODES, of_kwok("again"))
    after = await ready(cluster, "again")
    assert after.spec.pod_cidr != before.spec.pod_cidr
    await eventually(lambda: runs_on(after))


async def test_a_node_may_ask_for_it_later(cluster: requests.Node) -> None:
    await cluster.client.create(NODES, made("later"))
    asked = {"metadata": {"annotations": {"simulation.steersman.dev/simulated": "true"}}}
    await cluster.client.patch(NODES, "later", "", asked, media=MERGE_PATCH)
    await ready(cluster, "later")
    more = {"status": {"capacity": {"cpu": "64"}, "allocatable": {"cpu": "64"}}}
    await cluster.client.patch_without_result(NODES, "later", "", more, subresource="status")

    async def follows() -> bool:
        return cluster.cluster.components.kubelets.nodes["later"].template.allocatable["cpu"] == "64"

    await eventually(follows)


async def test_the_lease_of_a_deleted_node_is_not_renewed(cluster: requests.Node) -> None:
    await cluster.client.create(NODES, of_kwok("gone"))
    await ready(cluster, "gone")
    kubelets = cluster.cluster.components.kubelets
    node = kubelets.nodes["gone"]
    await cluster.client.delete(NODES, "gone")

    async def left() -> bool:
        return "gone" not in kubelets.nodes

    await eventually(left)
    await cluster.client.delete(LEASES, "gone", "kube-node-lease")
    await kubelets.heartbeats.beat(node)
    with pytest.raises(StatusError) as missing:
        await cluster.client.get(LEASES, "gone", "kube-node-lease")
    assert is_not_found(missing.value)


async def test_a_configured_node_that_is_deleted_is_not_simulated_until_it_is_made_again(
    cluster: requests.Node,
) -> None:
    client = cluster.client
    first = await ready(cluster, "node-0")
    await cluster.pod("there")
    await client.delete(NODES, "node-0")
    way = cluster.cluster.plane.embedding.nearby
    assert way is not None
    address = Address(first.status.addresses[0].address, 10250)

    async def gone() -> bool:
        return way(address) is None and await client.find(LEASES, "node-0", "kube-node-lease") is None

    await eventually(gone)
    await client.create(NODES, Node(metadata=ObjectMeta(name="node-0")))
    second = await ready(cluster, "node-0")
    assert second.metadata.uid != first.metadata.uid
    assert second.status.capacity == CAPACITY
    assert way(address) is not None


async def test_a_node_boots_for_as_long_as_its_annotation_says(keys_folder: Path) -> None:
    clock = Clock()
    found = Cluster(Options(data_dir=keys_folder, storage="memory", listen=False))
    await found.start()
    try:
        cluster = requests.Node(found)
        slow = of_kwok("slow")
        slow.metadata.annotations["simulation.steersman.dev/ready-after"] = "10m"
        await cluster.client.create(NODES, slow)
        spec = PodSpec(
            node_name="slow", containers=[Container(name="c", image="x")], tolerations=[Toleration(operator="Exists")]
        )
        await cluster.client.create(PODS, Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=spec))
        await clock.advance(minutes=9)
        node = await cluster.client.get(NODES, "slow")
        assert [each.status for each in node.status.conditions if each.type == "Ready"] == ["False"]
        assert "node.kubernetes.io/not-ready" in {each.key for each in node.spec.taints}
        assert (await cluster.client.get(PODS, "p", "default")).status.phase == "Pending"
        await clock.advance(minutes=2)
        node = await cluster.client.get(NODES, "slow")
        assert [each.status for each in node.status.conditions if each.type == "Ready"] == ["True"]
        assert (await cluster.client.get(PODS, "p", "default")).status.phase == "Running"
    finally:
        await found.stop()


async def test_names_and_values_that_labels_cannot_hold_do_not_keep_a_node_from_being_simulated(
    cluster: requests.Node,
) -> None:
    long = of_kwok("a" * 253)
    long.status.node_info.architecture = "x" * 1000
    await cluster.client.create(NODES, long)
    node = await ready(cluster, long.metadata.name)
    assert "kubernetes.io/hostname" not in node.metadata.labels
    assert node.metadata.labels["kubernetes.io/arch"] == "amd64"


async def test_hostile_nodes_do_not_keep_others_from_being_simulated(cluster: requests.Node) -> None:
    """Values at the limits of what the server accepts."""
    quantities = ("0", "1n", "9223372036854775807", "1e100", "12E", "0.000000001", "18446744073709551615Ki")
    hostile = [of_kwok("labels")]
    hostile[0].metadata.labels.update({f"l{number}": "v" for number in range(5_000)})
    for number, quantity in enumerate(quantities):
        each = of_kwok(f"quantity-{number}")
        whole = ("pods", "a.b/c") if "n" not in quantity and "." not in quantity else ()
        each.status.capacity = dict.fromkeys(("cpu", "memory", "ephemeral-storage", *whole), quantity)
        each.status.allocatable = dict(each.status.capacity) if number % 2 else {}
        hostile.append(each)
    for name, duration in (("long", "99999999999999h"), ("text", "x" * 50_000), ("negative", "-1h")):
        each = of_kwok(f"duration-{name}")
        for what in ("ready-after", "start-delay", "unreachable", "memory-pressure"):
            each.metadata.annotations[f"simulation.steersman.dev/{what}"] = duration
        hostile.append(each)
    addressed = of_kwok("addressed")
    addressed.status.addresses = [NodeAddress("InternalIP", f"not an address {each}") for each in range(100)]
    addressed.status.node_info.kubelet_version = "v" * 10_000
    addressed.spec.provider_id = "x" * 10_000
    hostile.append(addressed)
    for each in hostile:
        await cluster.client.create(NODES, each)
    await cluster.client.create(NODES, of_kwok("usual"))
    await ready(cluster, "usual")
    for each in hostile:
        await ready(cluster, each.metadata.name)
        await cluster.client.delete(NODES, each.metadata.name)
    await cluster.pod("there")


async def test_a_node_without_an_address_gets_an_event_and_joins_when_another_leaves(keys_folder: Path) -> None:
    objects, refused = _Objects(), list[str]()
    nodes = NodeSet([], Networks(IPv4Network("172.16.0.0/12"), IPv4Network("10.128.0.0/24")))
    servers = NodeServers((), Containers())

    class Hooks(NodeHooks):
        def refused(self, obj: Node, why: str) -> None:
            refused.append(f"{obj.metadata.name}: {why}")

    heartbeats = Heartbeats(cast("Client", _Accepting()), cast("Informer[Node]", objects), nodes, reports=lambda: True)
    adoption = Adoption(nodes, servers, heartbeats, cast("Informer[Node]", objects), Hooks())
    await adoption.start()
    try:
        objects.put(of_kwok("a"))
        objects.put(of_kwok("b"))
        await _rest(adoption)
        assert list(nodes) == ["a"]
        assert refused == ["b: 1 nodes are simulated, and there are no addresses for more"]
        objects.remove("a")
        await _rest(adoption)
        assert list(nodes) == ["b"]
    finally:
        await adoption.stop()


async def _rest(adoption: Adoption) -> None:
    async def is_idle() -> bool:
        return adoption.idle

    await eventually(is_idle)


class _Accepting:
    """A client whose writes succeed."""

    async def create(self, *_: object) -> None:
        """Do nothing."""

    async def patch_without_result(self, *_: object, **__: object) -> None:
        """Do nothing."""


class _Objects:
    """Node objects in the shape of an informer."""

    def __init__(self) -> None:
        self._objects: dict[str, Node] = {}
        self._handler: Callable[[Node | None, Node | None], None] = lambda *_: None

    def __iter__(self) -> Iterator[Node]:
        return iter(self._objects.values())

    def on_change(self, handler: Callable[[Node | None, Node | None], None]) -> None:
        self._handler = handler

    def get(self, _: str, name: str) -> Node | None:
        return self._objects.get(name)

    def put(self, node: Node) -> None:
        old = self._objects.get(node.metadata.name)
        self._objects[node.metadata.name] = node
        self._handler(old, node)

    def remove(self, name: str) -> None:
        self._handler(self._objects.pop(name), None)


def test_nodes_of_an_earlier_process_are_simulated_again() -> None:
    earlier = made("earlier")
    earlier.status.node_info.os_image = "Simulated"
    nodes = NodeSet([], NETWORKS)
    assert not nodes.is_to_join(earlier)
    for node in (earlier, made("other")):
        nodes.resume(node)
    assert nodes.is_to_join(earlier)
    assert not nodes.is_to_join(made("other"))


def test_all_nodes_can_be_simulated() -> None:
    assert not NodeSet([], NETWORKS).is_to_join(made("n"))
    assert NodeSet([], NETWORKS, adopts_all=True).is_to_join(made("n"))
    assert not NodeSet([], adopts_all=True).is_to_join(of_kwok("n"))
    configured = SimulatedNode("node-0", 0, NodeTemplate(), *NETWORKS)
    assert NodeSet([configured], NETWORKS).is_to_join(made("node-0"))
    assert not NodeSet([configured], NETWORKS).is_to_join(made("node-1"))


def test_nodes_have_addresses_of_their_own_and_keep_them() -> None:
    nodes = NodeSet([SimulatedNode("node-0", 0, NodeTemplate(), *NETWORKS)], NETWORKS)
    assert [nodes.join(of_kwok(name)).number for name in ("a", "b", "c")] == [1, 2, 3]
    nodes.leave("b")
    assert nodes.leave("none") is None
    assert nodes.join(of_kwok("d", cidr="10.128.9.0/24")).number == 9
    assert nodes.join(of_kwok("e", cidr="10.128.9.0/24")).number == 2
    assert nodes.join(of_kwok("f", cidr="192.168.0.0/16")).number == 4
    assert nodes.join(of_kwok("g", cidr="none")).number == 5
    addressed = of_kwok("h")
    addressed.status.addresses = [NodeAddress("InternalIP", "172.16.0.22")]
    assert nodes.join(addressed).address == "172.16.0.22"
    addressed.status.addresses = [NodeAddress("InternalIP", "192.168.0.1"), NodeAddress("InternalIP", "none")]
    assert nodes.join(addressed).number == 6


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
