"""Comparison of the allocated node ports with the stored Services."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.registry.core.events import EVENTS
from steersman.registry.core.services.endpoints import ENDPOINTS
from steersman.registry.core.services.node_port_repair import NodePortRepair
from steersman.registry.core.services.node_ports import KEY, NodePorts, PortBitmap, decode_bitmap, encode_bitmap
from steersman.registry.core.services.services import SERVICES
from steersman.registry.networking.ipaddresses import IP_ADDRESSES
from steersman.registry.networking.servicecidrs import SERVICE_CIDRS


class Net:
    """Services of a cluster, and a repair started by the test: each `repair` is that of a new server."""

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster
        self.repair = self.another()

    def another(self) -> NodePortRepair:
        services = self.cluster.services
        return NodePortRepair(services, NodePorts(services.service_node_ports, self.cluster.storage))

    async def service(self, name: str, *ports: int) -> None:
        spec = {"type": "NodePort", "ports": [{"name": f"p{port}", "port": port, "nodePort": port} for port in ports]}
        await self.cluster.create("services", {"metadata": {"name": name}, "spec": spec})

    async def allocated(self) -> set[int]:
        stored = await self.cluster.storage.get(KEY)
        return set(decode_bitmap(stored.value))

    async def store_allocation(self, ports: range, *taken: int) -> None:
        """Store an allocation of these ports, as another server would."""
        allocation = PortBitmap(ports)
        for port in taken:
            allocation.allocate(port)
        stored = await self.cluster.storage.get(KEY)
        await self.cluster.storage.update(KEY, encode_bitmap(allocation), expected_revision=stored.mod_revision)

    def events(self) -> list[tuple[str, str, str]]:
        events = self.cluster.objects("", "events").list()
        return sorted((each.reason, each.involved_object.name, each.message) for each in events)


@pytest.fixture
async def net(cluster: Callable[..., Any]) -> Net:
    return Net(await cluster(SERVICES, ENDPOINTS, IP_ADDRESSES, SERVICE_CIDRS, EVENTS))


async def test_the_first_server_writes_the_range_and_tells_nothing(net: Net) -> None:
    await net.repair.run()
    assert await net.allocated() == set()
    assert net.events() == []


async def test_a_second_look_writes_nothing(net: Net) -> None:
    await net.service("a", 30001)
    await net.repair.run()
    before = net.cluster.storage.revision
    await net.repair.run()
    await net.another().run()
    assert net.cluster.storage.revision == before


async def test_a_port_that_nobody_took_for_its_service_is_taken_and_told(net: Net) -> None:
    await net.service("a", 30001, 30002)
    await net.store_allocation(range(30000, 32768), 30002)
    await net.repair.run()
    assert await net.allocated() == {30001, 30002}
    assert net.events() == [("PortNotAllocated", "a", "Port 30001 is not allocated; repairing")]


async def test_a_port_of_no_service_is_given_back_when_it_was_seen_three_times(net: Net) -> None:
    await net.service("a", 30001)
    await net.store_allocation(range(30000, 32768), 30001, 30002)
    for _ in range(2):
        await net.repair.run()
        assert await net.allocated() == {30001, 30002}
    await net.repair.run()
    assert await net.allocated() == {30001}


async def test_a_port_that_gets_its_service_meanwhile_stays(net: Net) -> None:
    await net.service("a", 30001)
    await net.store_allocation(range(30000, 32768), 30001, 30002)
    await net.repair.run()
    await net.store_allocation(range(30000, 32768), 30001)
    await net.service("b", 30002)
    for _ in range(4):
        await net.repair.run()
    assert await net.allocated() == {30001, 30002}


async def test_a_port_of_two_services_is_told(net: Net) -> None:
    await net.service("a", 30001)
    await net.store_allocation(range(30000, 32768))
    await net.service("b", 30001)
    await net.repair.run()
    assert net.events() == [
        ("PortAlreadyAllocated", "b", "Port 30001 was assigned to multiple services; please recreate service")
    ]


async def test_another_range_takes_the_place_of_the_one_before(net: Net) -> None:
    await net.service("a", 30001)
    await net.store_allocation(range(100, 200), 150)
    await net.repair.run()
    assert await net.allocated() == {30001}
    stored = await net.cluster.storage.get(KEY)
    assert decode_bitmap(stored.value).ports == range(30000, 32768)


async def test_what_is_outside_of_the_range_is_told(net: Net) -> None:
    await net.service("a", 30001)
    repair = NodePortRepair(net.cluster.services, NodePorts(range(31000, 31100), net.cluster.storage))
    repair._range = range(31000, 31100)
    await repair.run()
    assert net.events() == [
        (
            "PortOutOfRange",
            "a",
            "Port 30001 is not within the port range 31000-31099; please recreate service",
        )
    ]


async def test_one_that_comes_between_is_not_lost(net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another server allocates a port between a repair's read and write."""
    await net.service("a", 30001)
    replace = NodePorts.replace
    others = iter([net.service("b", 30002)])

    async def late(self: NodePorts, *rest: Any) -> bool:
        for other in others:
            await other
        return await replace(self, *rest)

    await net.store_allocation(range(30000, 32768), 30001, 30005)
    monkeypatch.setattr(NodePorts, "replace", late)
    await net.repair.run()
    assert await net.allocated() == {30001, 30002, 30005}
