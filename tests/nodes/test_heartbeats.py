"""Renewal of node leases in time, even for thousands of nodes with a bounded number of concurrent requests."""

from __future__ import annotations

import asyncio
from collections import Counter
from ipaddress import IPv4Network
from typing import Any, cast

import pytest

from steersman.api.core.v1 import Node
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.informer import Informer
from steersman.client.resources import LEASES, NODES
from steersman.client.transport import Unreachable
from steersman.controllers.node_lifecycle import GRACE
from steersman.nodes.heartbeats import Heartbeats, lease_seconds
from steersman.nodes.node_set import NodeSet
from steersman.nodes.simulated_node import NodeTemplate, SimulatedNode
from steersman.testing.clock import Clock


@pytest.mark.parametrize(("nodes", "seconds"), [(0, 40), (1, 40), (1000, 40), (1500, 60), (2000, 80), (50_000, 80)])
def test_leases_of_many_nodes_hold_longer(nodes: int, seconds: int) -> None:
    assert lease_seconds(nodes) == seconds


def test_nodes_are_heard_of_in_time() -> None:
    """A lease is renewed four times within its duration. One renewal may fail before the node counts as lost."""
    assert 2 * lease_seconds(1_000_000) / 4 < GRACE


class SlowClient:
    """A client whose requests take a second each, however many are in progress."""

    def __init__(self) -> None:
        self.renewed: Counter[str] = Counter()

    async def patch_without_result(
        self, resource: APIResource[Any], name: str, namespace: object, patch: Any, **_: object
    ) -> None:
        await asyncio.sleep(1)
        self.renewed[name] += resource is LEASES


async def test_leases_are_renewed_in_time_where_each_request_takes_long() -> None:
    clock, client = Clock(), SlowClient()
    hosts, ranges = IPv4Network("172.16.0.0/12"), IPv4Network("10.128.0.0/9")
    nodes = [SimulatedNode(f"node-{number}", number, NodeTemplate(), hosts, ranges) for number in range(200)]
    objects: Informer[Node] = Informer(cast("Client", client), NODES)  # without events of these nodes
    heartbeats = Heartbeats(cast("Client", client), objects, NodeSet(nodes), reports=lambda: False)
    running = asyncio.create_task(heartbeats.run())
    await clock.advance(seconds=61)
    running.cancel()
    assert len(client.renewed) == 200
    assert min(client.renewed.values()) >= 4


class CountingClient(SlowClient):
    """A slow client that counts the requests in progress."""

    def __init__(self) -> None:
        super().__init__()
        self.most = self.now = 0

    async def patch_without_result(self, *arguments: Any, **options: Any) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        await super().patch_without_result(*arguments, **options)
        self.now -= 1


async def test_overdue_renewals_are_sent_in_groups() -> None:
    """Thousands at once would keep other requests waiting."""
    clock, client = Clock(), CountingClient()
    hosts, ranges = IPv4Network("172.16.0.0/12"), IPv4Network("10.128.0.0/9")
    nodes = [SimulatedNode(f"node-{number}", number, NodeTemplate(), hosts, ranges) for number in range(3000)]
    objects: Informer[Node] = Informer(cast("Client", client), NODES)  # without events of these nodes
    heartbeats = Heartbeats(cast("Client", client), objects, NodeSet(nodes), reports=lambda: False)
    running = asyncio.create_task(heartbeats.run())
    await clock.advance(seconds=61)
    running.cancel()
    assert client.most == 100  # of 150 that are due a second, which is what each request takes
    assert len(client.renewed) == 3000


class RecordingClient(SlowClient):
    """A client of one node that keeps the patches of its status."""

    def __init__(self, node: Node) -> None:
        super().__init__()
        self.node = node
        self.patches: list[Any] = []

    async def get(self, *_: object) -> Node:
        return self.node

    async def patch_without_result(
        self, resource: APIResource[Any], name: str, namespace: object, patch: Any, **_: object
    ) -> None:
        if resource is NODES:
            self.patches.append(patch["status"])


async def test_extended_resources_of_the_capacity_are_allocatable() -> None:
    hosts, ranges = IPv4Network("172.16.0.0/12"), IPv4Network("10.128.0.0/9")
    node = SimulatedNode("n", 0, NodeTemplate(), hosts, ranges)
    obj = node.node()
    obj.status.capacity["example.com/gpu"] = "4"
    obj.status.allocatable["example.com/gone"] = "1"
    client = RecordingClient(obj)
    objects: Informer[Node] = Informer(cast("Client", client), NODES)
    heartbeats = Heartbeats(cast("Client", client), objects, NodeSet([node]), reports=lambda: True)
    assert await heartbeats.send(node, reports=True)
    assert [each["allocatable"] for each in client.patches] == [
        {**node.template.allocatable, "example.com/gpu": "4", "example.com/gone": None}
    ]


async def test_a_report_has_the_conditions_and_the_changed_fields_of_the_status() -> None:
    hosts, ranges = IPv4Network("172.16.0.0/12"), IPv4Network("10.128.0.0/9")
    node = SimulatedNode("n", 0, NodeTemplate(), hosts, ranges)
    client = RecordingClient(node.node())
    objects: Informer[Node] = Informer(cast("Client", client), NODES)
    heartbeats = Heartbeats(cast("Client", client), objects, NodeSet([node]), reports=lambda: True)
    assert await heartbeats.send(node, reports=True)
    node.has_pulled(["docker.io/library/nginx:latest"])
    assert await heartbeats.send(node, reports=True)
    assert [sorted(each) for each in client.patches] == [["conditions"], ["conditions", "images"]]


class FailingClient(RecordingClient):
    """A client whose first renewals of leases fail."""

    def __init__(self, node: Node, failures: int) -> None:
        super().__init__(node)
        self._failures = failures

    async def patch_without_result(
        self, resource: APIResource[Any], name: str, namespace: object, patch: Any, **_: object
    ) -> None:
        if resource is not LEASES:
            await super().patch_without_result(resource, name, namespace, patch)
        elif self._failures:
            self._failures -= 1
            raise Unreachable("no connection")
        else:
            self.renewed[name] += 1


@pytest.mark.parametrize(("failures", "renewed"), [(4, 1), (5, 0)])
async def test_a_renewal_is_tried_five_times_and_the_status_is_reported_anyway(failures: int, renewed: int) -> None:
    hosts, ranges = IPv4Network("172.16.0.0/12"), IPv4Network("10.128.0.0/9")
    node = SimulatedNode("n", 0, NodeTemplate(), hosts, ranges)
    client = FailingClient(node.node(), failures)
    objects: Informer[Node] = Informer(cast("Client", client), NODES)
    heartbeats = Heartbeats(cast("Client", client), objects, NodeSet([node]), reports=lambda: True)
    assert await heartbeats.send(node, reports=True)
    assert client.renewed["n"] == renewed
    assert len(client.patches) == 1
    assert await heartbeats.send(node, reports=False)
    assert client.renewed["n"] == renewed + 1
