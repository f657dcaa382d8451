"""Tests of the ServiceCIDR controller."""

from __future__ import annotations

import pytest

from steersman.api.meta.v1 import ObjectMeta
from steersman.api.networking.v1 import ServiceCIDR, ServiceCIDRSpec
from steersman.client.client import Client
from steersman.client.resources import SERVICE_CIDRS, SERVICES
from steersman.controllers.services.service_cidrs import FINALIZER, ServiceCIDRController, is_within, network_keys
from steersman.testing.clock import Clock
from tests.controllers.services.objects import make_service
from tests.controllers.waiting import Run


@pytest.mark.parametrize(
    ("inner", "expected"),
    [("10.1.0.0/16", True), ("10.1.2.0/24", True), ("10.0.0.0/15", False), ("10.2.0.0/16", False), ("::/16", False)],
)
def test_networks_are_found_within_others(inner: str, expected: bool) -> None:
    (block,) = network_keys([inner])
    assert is_within(network_keys(["10.1.0.0/16", "fd00::/64"]), *block) == expected


async def ready(client: Client, name: str) -> list[tuple[str, str]]:
    service_cidr = await client.get(SERVICE_CIDRS, name)
    return [(each.status, each.reason) for each in service_cidr.status.conditions]


async def names(client: Client) -> set[str]:
    return {each.metadata.name for each in (await client.list(SERVICE_CIDRS)).items}


async def test_a_range_is_ready_and_stays_while_addresses_of_it_are_used(run: Run) -> None:
    clock = Clock()
    client = await run(ServiceCIDRController)
    spec = ServiceCIDRSpec(cidrs=["10.96.5.0/24"])
    await client.create(SERVICE_CIDRS, ServiceCIDR(metadata=ObjectMeta(name="more"), spec=spec))
    await clock.settle()
    assert await ready(client, "more") == [("True", "")]
    assert (await client.get(SERVICE_CIDRS, "more")).metadata.finalizers == [FINALIZER]
    await make_service(client, cluster_ip="10.96.5.7")
    await client.delete(SERVICE_CIDRS, "more")
    await clock.advance(seconds=30)
    assert await ready(client, "more") == [("False", "Terminating")]
    await client.delete(SERVICES, "s", "default")
    await clock.settle()
    assert await names(client) == {"kubernetes"}


async def test_an_unused_range_goes_when_all_servers_know(run: Run) -> None:
    clock = Clock()
    client = await run(ServiceCIDRController)
    spec = ServiceCIDRSpec(cidrs=["10.96.5.0/24"])
    await client.create(SERVICE_CIDRS, ServiceCIDR(metadata=ObjectMeta(name="more"), spec=spec))
    await clock.settle()
    await client.delete(SERVICE_CIDRS, "more")
    await clock.advance(seconds=8)
    assert await names(client) == {"kubernetes", "more"}
    await clock.advance(seconds=4)
    assert await names(client) == {"kubernetes"}
