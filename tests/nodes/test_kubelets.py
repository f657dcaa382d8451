"""Simulated kubelets on a server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from ipaddress import IPv4Network

import pytest_asyncio

from steersman.api.core.v1 import Container, ExecAction, Pod, PodSpec, Probe
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.events import Broadcaster
from steersman.client.in_process import InProcessTransport
from steersman.client.informer import Informers
from steersman.client.resources import EVENTS, LEASES, NODES, PODS
from steersman.nodes.containers import Containers
from steersman.nodes.kubelets import Kubelets
from steersman.nodes.server.servers import NodeServers
from steersman.nodes.simulated_node import NodeTemplate, SimulatedNode
from steersman.testing import Environment
from steersman.testing.clock import Clock


class Running:
    """A server with simulated nodes, and its time."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self.client = client
        self.clock = clock

    async def pod(self, name: str, *command: str, node: str = "node-0", restart: str = "Always") -> None:
        container = Container(name="c", image="nginx", command=list(command))
        spec = PodSpec(node_name=node, containers=[container], restart_policy=restart)
        await self.client.create(PODS, Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=spec))
        await self.clock.settle()

    async def phases(self) -> dict[str, str]:
        return {each.metadata.name: each.status.phase for each in (await self.client.list(PODS)).items}


@pytest_asyncio.fixture
async def running() -> AsyncIterator[Running]:
    clock = Clock()
    async with Environment() as environment:
        server = environment.plane.server
        assert server is not None
        client = Client(InProcessTransport(server.handler, environment.token()), "kubelet")
        informers, events = Informers(client), Broadcaster(client)
        hosts, ranges = IPv4Network("172.16.0.0/12"), IPv4Network("10.128.0.0/9")
        nodes = [SimulatedNode(f"node-{number}", number, NodeTemplate(), hosts, ranges) for number in range(2)]
        kubelets = Kubelets(client, informers, events, nodes, NodeServers(nodes, Containers()))
        informers.start()
        events.start()
        await kubelets.start()
        yield Running(client, clock)
        await kubelets.stop()
        await events.stop()
        await informers.stop()


async def test_nodes_register_and_renew_their_leases(running: Running) -> None:
    nodes = (await running.client.list(NODES)).items
    assert [each.metadata.name for each in nodes] == ["node-0", "node-1"]
    assert {each.type: each.status for each in nodes[0].status.conditions}["Ready"] == "True"
    before = (await running.client.list(LEASES, "kube-node-lease")).items
    await running.clock.advance(seconds=11)
    after = (await running.client.list(LEASES, "kube-node-lease")).items
    assert all(
        (one.spec.renew_time or "") < (two.spec.renew_time or "") for one, two in zip(before, after, strict=True)
    )
    heartbeat = nodes[0].status.conditions[0].last_heartbeat_time or ""
    await running.clock.advance(minutes=6)
    again = (await running.client.get(NODES, "node-0")).status.conditions[0].last_heartbeat_time or ""
    assert again > heartbeat


async def test_pods_run_end_and_go(running: Running) -> None:
    await running.pod("stays")
    await running.pod("ends", "sleep", "60", node="node-1", restart="Never")
    assert await running.phases() == {"stays": "Running", "ends": "Running"}
    await running.clock.advance(seconds=61)
    assert await running.phases() == {"stays": "Running", "ends": "Succeeded"}
    addresses = {each.metadata.name: each.status.pod_ip for each in (await running.client.list(PODS)).items}
    assert addresses == {"stays": "10.128.0.2", "ends": "10.128.1.2"}
    await running.client.delete(PODS, "stays", "default")
    await running.clock.settle()
    assert await running.phases() == {"ends": "Succeeded"}
    reasons = [
        each.reason for each in (await running.client.list(EVENTS)).items if each.involved_object.name == "stays"
    ]
    assert reasons == ["Pulled", "Created", "Started", "Killing"]


async def test_pods_of_other_nodes_are_left_alone(running: Running) -> None:
    await running.pod("elsewhere", node="another")
    assert await running.phases() == {"elsewhere": "Pending"}


async def test_a_node_out_of_reach_is_silent_and_does_nothing(running: Running) -> None:
    await running.pod("a")
    mark = {"metadata": {"annotations": {"simulation.steersman.dev/unreachable": "true"}}}
    await running.client.patch(NODES, "node-0", "", mark)
    await running.clock.settle()
    before = {each.metadata.name: each.spec.renew_time for each in (await running.client.list(LEASES)).items}
    await running.pod("b")
    await running.clock.advance(seconds=15)
    after = {each.metadata.name: each.spec.renew_time for each in (await running.client.list(LEASES)).items}
    assert before["node-0"] == after["node-0"]
    assert before["node-1"] != after["node-1"]
    assert await running.phases() == {"a": "Running", "b": "Pending"}
    await running.client.patch(NODES, "node-0", "", {"metadata": {"annotations": None}})
    await running.clock.settle()
    again = await running.client.get(LEASES, "node-0", "kube-node-lease")
    assert (again.spec.renew_time or "") > (before["node-0"] or "")
    assert await running.phases() == {"a": "Running", "b": "Running"}


async def test_a_condition_says_no_more_than_what_is_so(running: Running) -> None:
    container = Container(
        name="c", image="nginx", readiness_probe=Probe(initial_delay_seconds=5, exec=ExecAction(command=["true"]))
    )
    spec = PodSpec(node_name="node-0", containers=[container])
    await running.client.create(PODS, Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=spec))
    await running.clock.advance(seconds=1)

    async def ready() -> tuple[str, str, str]:
        status = (await running.client.get(PODS, "p", "default")).status
        return next((each.status, each.reason, each.message) for each in status.conditions if each.type == "Ready")

    assert await ready() == ("False", "ContainersNotReady", "containers with unready status: [c]")
    await running.clock.advance(seconds=5)
    assert await ready() == ("True", "", "")
