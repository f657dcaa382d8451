"""Tests of simulated load balancers."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

import pytest

from steersman.api.core.v1 import Service
from steersman.client.client import Client
from steersman.client.resources import EVENTS, SERVICES
from steersman.controllers.services.load_balancers import FINALIZER, Addresses, LoadBalancerController, NoAddresses
from tests.controllers.services.objects import make_node, make_service
from tests.controllers.waiting import Run, eventually


def test_the_lowest_address_that_is_free_is_taken() -> None:
    addresses = Addresses(IPv4Network("10.0.0.0/29"))
    addresses.occupy("old", "10.0.0.2")
    assert [addresses.allocate(each) for each in ("a", "b", "a", "old")] == [
        "10.0.0.1",
        "10.0.0.3",
        "10.0.0.1",
        "10.0.0.2",
    ]
    addresses.release("a")
    assert addresses.allocate("c") == "10.0.0.1"
    assert [addresses.allocate(each) for each in ("d", "e", "f")] == ["10.0.0.4", "10.0.0.5", "10.0.0.6"]
    with pytest.raises(NoAddresses):
        addresses.allocate("g")
    addresses.release("old")
    assert addresses.allocate("g") == "10.0.0.2"


def test_addresses_of_others_are_not_kept() -> None:
    addresses = Addresses(IPv4Network("10.0.0.0/29"))
    for each in ("10.0.1.1", "::1", "none", "10.0.0.0"):
        addresses.occupy("old", each)
    assert addresses.allocate("old") == "10.0.0.1"


async def ips(client: Client, name: str = "s") -> list[str]:
    return [each.ip for each in (await client.get(SERVICES, name, "default")).status.load_balancer.ingress]


async def reasons(client: Client) -> list[str]:
    return [each.reason for each in (await client.list(EVENTS, "default")).items if each.involved_object.name == "s"]


async def test_a_service_gets_an_address_and_gives_it_back(run: Run) -> None:
    client = await run(LoadBalancerController)
    await make_node(client)
    await make_service(client, type="LoadBalancer")
    assert await eventually(lambda: ips(client)) == ["198.18.0.1"]
    assert (await client.get(SERVICES, "s", "default")).metadata.finalizers == [FINALIZER]
    await client.patch(SERVICES, "s", "default", {"spec": {"type": "ClusterIP"}})

    async def released() -> bool:
        service = await client.get(SERVICES, "s", "default")
        return not service.metadata.finalizers and not service.status.load_balancer.ingress

    await eventually(released)
    await make_service(client, "another", type="LoadBalancer")
    assert await eventually(lambda: ips(client, "another")) == ["198.18.0.1"]
    told = ["EnsuringLoadBalancer", "EnsuredLoadBalancer", "DeletingLoadBalancer", "DeletedLoadBalancer"]

    async def all_told() -> bool:
        return await reasons(client) == told

    await eventually(all_told)


async def test_a_deleted_service_goes_when_its_address_is_given_back(run: Run) -> None:
    client = await run(LoadBalancerController)
    await make_service(client, type="LoadBalancer")
    await eventually(lambda: ips(client))
    await client.delete(SERVICES, "s", "default")

    async def is_deleted() -> bool:
        return not [each for each in await _services(client) if each.metadata.name == "s"]

    await eventually(is_deleted)
    assert "UnAvailableLoadBalancer" in await reasons(client)


async def _services(client: Client) -> list[Service]:
    return (await client.list(SERVICES, "default")).items


@pytest.mark.parametrize(
    ("spec", "expected"), [({"load_balancer_ip": "192.0.2.9"}, ["192.0.2.9"]), ({}, ["198.18.0.1"])]
)
async def test_an_address_that_is_asked_for_is_given(run: Run, spec: dict[str, Any], expected: list[str]) -> None:
    client = await run(LoadBalancerController)
    await make_service(client, "classed", type="LoadBalancer", load_balancer_class="example.com/other")
    await make_service(client, type="LoadBalancer", **spec)
    assert await eventually(lambda: ips(client)) == expected
    assert await ips(client, "classed") == []
