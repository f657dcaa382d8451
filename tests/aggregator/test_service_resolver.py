"""Resolution of Services to addresses."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from steersman.aggregator.remote_service import ServiceKey
from steersman.aggregator.service_resolver import NoRoute, ServiceResolver
from steersman.testing import Client

SERVICES = "/api/v1/namespaces/default/services"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
KEY = ServiceKey("default", "s", 443)


def resolver(client: Client, *, endpoints_only: bool = False) -> ServiceResolver:
    plane = client.plane
    service_resolver = ServiceResolver(
        plane.store, plane.objects, endpoints_only=endpoints_only, itself=lambda: ("itself", 6443)
    )
    service_resolver.watch((KEY.namespace, KEY.name))
    return service_resolver


async def service(client: Client, **spec: Any) -> None:
    full = {"ports": [{"name": "https", "port": 443}], **spec}
    answer = await client.post(SERVICES, {"metadata": {"name": "s"}, "spec": full})
    assert answer.status == 201, answer.body


async def endpoints(client: Client, name: str, *addresses: str, port: str = "https", **more: Any) -> None:
    body = {
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": "s"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [each]} for each in addresses],
        "ports": [{"name": port, "port": 8443}],
        **more,
    }
    answer = await client.post(SLICES, body)
    assert answer.status == 201, answer.body


async def no_route(found: ServiceResolver, key: ServiceKey = KEY) -> str:
    with pytest.raises(NoRoute) as caught:
        await found.resolve(key)
    return str(caught.value)


async def test_endpoints_take_their_turns(client: Client) -> None:
    found = resolver(client)
    await service(client)
    await endpoints(client, "a", "10.1.1.1", "10.1.1.2")
    await endpoints(client, "b", "10.1.1.3")
    await endpoints(client, "other", "10.1.1.4", port="http")
    places = Counter([await found.resolve(KEY) for _ in range(200)])
    assert set(places) == {("10.1.1.1", 8443), ("10.1.1.2", 8443), ("10.1.1.3", 8443)}


async def test_only_ready_endpoints_count(client: Client) -> None:
    found = resolver(client)
    await service(client)
    ready = [{"addresses": [f"10.1.1.{number}"], "conditions": {"ready": number == 2}} for number in (1, 2, 3)]
    await endpoints(client, "a", endpoints=ready)
    assert {await found.resolve(KEY) for _ in range(20)} == {("10.1.1.2", 8443)}


async def test_changes_count_at_once(client: Client) -> None:
    found = resolver(client)
    told: list[tuple[str, str]] = []
    found.changed = told.append
    assert await no_route(found) == 'service "s" not found'
    await service(client, clusterIP="10.0.0.77")
    assert await found.resolve(KEY) == ("10.0.0.77", 443)
    await endpoints(client, "a", "10.1.1.1")
    assert await found.resolve(KEY) == ("10.1.1.1", 8443)
    await client.delete(f"{SLICES}/a")
    assert await found.resolve(KEY) == ("10.0.0.77", 443)
    assert told
    assert set(told) == {("default", "s")}


async def test_others_are_not_followed(client: Client) -> None:
    found = resolver(client)
    told: list[tuple[str, str]] = []
    found.changed = told.append
    await client.post(SERVICES, {"metadata": {"name": "other"}, "spec": {"ports": [{"port": 1}]}})
    assert not told


async def test_where_endpoints_alone_count(client: Client) -> None:
    found = resolver(client, endpoints_only=True)
    await service(client, clusterIP="10.0.0.77")
    assert await no_route(found) == 'no endpoints available for service "s"'
    assert await no_route(found, ServiceKey("default", "s", 1)) == 'no service port 1 found for service "s"'


async def test_services_of_other_types(client: Client) -> None:
    await service(client, clusterIP="None")
    assert await no_route(resolver(client)) == 'cannot route to service with ClusterIP "None"'
    await client.delete(f"{SERVICES}/s")
    await service(client, type="ExternalName", externalName="a.example.com", ports=[])
    assert await resolver(client).resolve(KEY) == ("a.example.com", 443)
    assert await no_route(resolver(client, endpoints_only=True)) == 'unsupported service type "ExternalName"'


async def test_the_server_itself_is_near(client: Client) -> None:
    assert await resolver(client).resolve(ServiceKey("default", "kubernetes", 443)) == ("itself", 6443)
