"""The addresses for requests of the server to a Service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from steersman.machinery.errors.status import StatusError
from steersman.registry.core.services.locating import locate_service
from steersman.registry.kubelet import ProxyConnection
from steersman.testing import Client, Environment

PORTS = [{"name": "https", "port": 443}, {"name": "other", "port": 80}]


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with Environment() as environment:
        yield environment.client()


async def located(client: Client, port: int = 443, *, endpoints_only: bool = False) -> tuple[str, int]:
    services: Any = SimpleNamespace(
        objects=client.plane.objects, enable_aggregator_routing=endpoints_only, proxied=ProxyConnection()
    )
    return (await locate_service(services, "default", "hook", port))[:2]


async def make(client: Client, **spec: Any) -> Any:
    body = {"metadata": {"name": "hook"}, "spec": {"ports": PORTS, **spec}}
    answer = await client.post("/api/v1/namespaces/default/services", body)
    assert answer.status == 201, answer.body
    return answer.json()["spec"]


async def add_slice(client: Client, name: str, endpoints: list[dict[str, Any]], **more: Any) -> None:
    body = {
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": "hook"}},
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [{"name": "https", "port": 8443}],
        **more,
    }
    answer = await client.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", body)
    assert answer.status == 201, answer.body


async def test_an_endpoint_that_is_ready(client: Client) -> None:
    await make(client)
    await add_slice(client, "none", [])
    await add_slice(client, "no-port", [{"addresses": ["10.1.0.9"]}], ports=[{"name": "other", "port": 1}])
    await add_slice(
        client, "some", [{"addresses": ["10.1.0.1"], "conditions": {"ready": False}}, {"addresses": ["10.1.0.2"]}]
    )
    assert {await located(client) for _ in range(20)} == {("10.1.0.2", 8443)}


async def test_endpoints_of_the_first_family_come_first(client: Client) -> None:
    await make(client)
    await add_slice(client, "six", [{"addresses": ["fd00::1"]}], addressType="IPv6")
    await add_slice(client, "four", [{"addresses": ["10.1.0.1"]}])
    assert {await located(client) for _ in range(20)} == {("10.1.0.1", 8443)}


async def test_the_address_of_the_cluster_where_nothing_is_ready(client: Client) -> None:
    spec = await make(client)
    assert await located(client) == (spec["clusterIP"], 443)


async def test_an_external_name_at_any_port(client: Client) -> None:
    await make(client, type="ExternalName", externalName="example.com", ports=[])
    assert await located(client, 8443) == ("example.com", 8443)


@pytest.mark.parametrize(
    ("spec", "code", "text"),
    [
        (None, 404, 'service "hook" not found'),
        ({"ports": [{"port": 80}]}, 503, 'no service port 443 found for service "hook"'),
        ({"clusterIP": "None"}, 500, 'cannot route to service with ClusterIP "None"'),
    ],
)
async def test_services_that_lead_nowhere(client: Client, spec: dict[str, Any] | None, code: int, text: str) -> None:
    if spec is not None:
        await make(client, **spec)
    with pytest.raises(StatusError) as raised:
        await located(client)
    assert (raised.value.code, raised.value.message) == (code, text)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({}, 'no endpoints available for service "hook"'),
        ({"clusterIP": "None"}, 'no endpoints available for service "hook"'),
        ({"type": "ExternalName", "externalName": "example.com"}, 'unsupported service type "ExternalName"'),
    ],
)
async def test_endpoints_only(client: Client, spec: dict[str, Any], text: str) -> None:
    await make(client, **spec)
    with pytest.raises(StatusError) as raised:
        await located(client, endpoints_only=True)
    assert raised.value.message == text


async def test_an_endpoint_where_only_those_count(client: Client) -> None:
    await make(client)
    await add_slice(client, "some", [{"addresses": ["10.1.0.2"]}])
    assert await located(client, endpoints_only=True) == ("10.1.0.2", 8443)
