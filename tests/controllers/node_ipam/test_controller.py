"""Tests of the assignment of address blocks to nodes."""

from __future__ import annotations

from ipaddress import ip_network

from steersman.api.core.v1 import Node, NodeSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.resources import EVENTS, NODES
from steersman.controllers.controller import ClusterCIDR, Settings
from steersman.controllers.node_ipam.controller import NodeIPAMController
from tests.controllers.waiting import Run, eventually

BOTH = (ClusterCIDR(ip_network("10.1.0.0/22"), 24), ClusterCIDR(ip_network("fd00::/48"), 64))
SERVICES = (ip_network("10.1.0.0/24"), ip_network("fd01::/112"))


async def make(client: Client, name: str, *blocks: str) -> None:
    spec = NodeSpec(pod_cidr=blocks[0] if blocks else "", pod_cidrs=list(blocks))
    await client.create(NODES, Node(metadata=ObjectMeta(name=name), spec=spec))


async def blocks_of(client: Client, name: str) -> list[str]:
    async def look() -> list[str]:
        spec = (await client.get(NODES, name)).spec
        assert spec.pod_cidr == (spec.pod_cidrs[0] if spec.pod_cidrs else "")
        return spec.pod_cidrs

    return await eventually(look)


async def test_each_node_has_a_block_of_each_range(run: Run) -> None:
    client = await run()
    await make(client, "old", "10.1.1.0/24", "fd00::/64")
    await run(NodeIPAMController, cluster_cidrs=BOTH, service_cidrs=SERVICES)
    await make(client, "a")
    assert await blocks_of(client, "a") == ["10.1.2.0/24", "fd00:0:0:1::/64"]
    await make(client, "b")
    assert await blocks_of(client, "b") == ["10.1.3.0/24", "fd00:0:0:2::/64"]
    await make(client, "c")

    async def reported() -> list[tuple[str, str]]:
        found = (await client.list(EVENTS, "default")).items
        return [(each.message, each.source.component) for each in found if each.reason == "CIDRNotAvailable"]

    assert (await eventually(reported))[0] == ("Node c status is now: CIDRNotAvailable", "cidrAllocator")
    await client.delete(NODES, "old")
    assert (await blocks_of(client, "c"))[0] == "10.1.1.0/24"


def test_it_runs_where_there_are_ranges() -> None:
    assert not NodeIPAMController.can_run(Settings())
    assert NodeIPAMController.can_run(Settings(cluster_cidrs=BOTH))
