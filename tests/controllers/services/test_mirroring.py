"""Tests of mirrored EndpointSlices."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.core.v1 import EndpointAddress, EndpointPort, Endpoints, EndpointSubset
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.resources import ENDPOINTS, EVENTS, SERVICES
from steersman.controllers.services import mirroring
from steersman.controllers.services.mirroring import EndpointSliceMirroringController
from tests.controllers.services.objects import make_service, slices_of
from tests.controllers.waiting import Run, eventually


def subset(*ips: str, port: int = 80) -> EndpointSubset:
    ports = [EndpointPort(name="http", port=port, protocol="TCP")]
    return EndpointSubset(addresses=[EndpointAddress(ip=each) for each in ips], ports=ports)


async def make(client: Client, *subsets: EndpointSubset, **metadata: Any) -> None:
    made = Endpoints(metadata=ObjectMeta(name="s", namespace="default", **metadata), subsets=list(subsets))
    await client.create(ENDPOINTS, made)


async def mirrored(client: Client, *expected: tuple[str, int, list[str]]) -> None:
    """Wait for slices with these families, ports and addresses."""

    async def as_expected() -> bool:
        found = sorted(
            (
                each.address_type,
                (each.ports or [])[0].port or 0,
                sorted(address for endpoint in each.endpoints or () for address in endpoint.addresses or ()),
            )
            for each in await slices_of(client)
        )
        return found == sorted(expected)

    await eventually(as_expected)


async def test_each_family_and_each_set_of_ports_has_a_slice(run: Run) -> None:
    client = await run(EndpointSliceMirroringController)
    await make_service(client, selector={})
    await make(client, subset("10.1.0.1", "2001:db8::1"), subset("10.1.0.2", port=90), labels={"team": "x"})
    await mirrored(client, ("IPv4", 80, ["10.1.0.1"]), ("IPv6", 80, ["2001:db8::1"]), ("IPv4", 90, ["10.1.0.2"]))
    assert {each.metadata.labels["team"] for each in await slices_of(client)} == {"x"}
    names = {each.metadata.name for each in await slices_of(client)}
    await client.patch(
        ENDPOINTS,
        "s",
        "default",
        {"subsets": [{"addresses": [{"ip": "10.1.0.3"}], "ports": [{"name": "http", "port": 91}]}]},
    )
    await mirrored(client, ("IPv4", 91, ["10.1.0.3"]))
    assert {each.metadata.name for each in await slices_of(client)} < names
    await client.delete(ENDPOINTS, "s", "default")
    await mirrored(client)


@pytest.mark.parametrize(
    "change",
    [
        lambda client: client.patch(SERVICES, "s", "default", {"spec": {"selector": {"a": "b"}}}),
        lambda client: client.delete(SERVICES, "s", "default"),
        lambda client: client.patch(
            ENDPOINTS, "s", "default", {"metadata": {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}}
        ),
    ],
)
async def test_what_is_not_mirrored_any_more_has_no_slices(run: Run, change: Any) -> None:
    client = await run(EndpointSliceMirroringController)
    await make_service(client, selector={})
    await make(client, subset("10.1.0.1"))
    await mirrored(client, ("IPv4", 80, ["10.1.0.1"]))
    await change(client)
    await mirrored(client)


async def test_too_many_addresses_are_told_of(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirroring, "MOST", 2)
    client = await run(EndpointSliceMirroringController)
    await make_service(client, selector={})
    await make(client, subset("10.1.0.1", "10.1.0.2", "10.1.0.3"))
    await mirrored(client, ("IPv4", 80, ["10.1.0.1", "10.1.0.2"]))

    async def messages() -> list[str]:
        return [each.message for each in (await client.list(EVENTS, "default")).items]

    assert await eventually(messages) == [
        "A max of 2 addresses can be mirrored to EndpointSlices per Endpoints subset. 1 addresses were skipped"
    ]
