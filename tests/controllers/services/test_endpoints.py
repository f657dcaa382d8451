"""Tests of the Endpoints controller."""

from __future__ import annotations

import pytest

from steersman.api.core.v1 import Endpoints
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.errors import is_not_found
from steersman.client.resources import ENDPOINTS, PODS, SERVICES
from steersman.controllers.services import subsets
from steersman.controllers.services.endpoints import EndpointsController
from steersman.machinery.errors.status import StatusError
from tests.controllers.services.objects import make_service, run_pod
from tests.controllers.waiting import Run, eventually


async def endpoints(client: Client, name: str = "s") -> Endpoints | None:
    try:
        return await client.get(ENDPOINTS, name, "default")
    except StatusError as error:
        if not is_not_found(error):
            raise
        return None


async def wait_for_addresses(client: Client, ready: list[str], not_ready: list[str], name: str = "s") -> Endpoints:
    async def as_expected() -> Endpoints | None:
        found = await endpoints(client, name)
        if found is None:
            return None
        up = [each.ip for subset in found.subsets for each in subset.addresses]
        down = [each.ip for subset in found.subsets for each in subset.not_ready_addresses]
        return found if (up, down) == (ready, not_ready) else None

    found = await eventually(as_expected)
    assert found is not None
    return found


async def test_endpoints_follow_pods(run: Run) -> None:
    client = await run(EndpointsController)
    await make_service(client)
    await wait_for_addresses(client, [], [])
    await run_pod(client, "two", "10.1.0.2")
    await run_pod(client, "one", "10.1.0.1")
    await run_pod(client, "three", "10.1.0.3", ready=False)
    found = await wait_for_addresses(client, ["10.1.0.1", "10.1.0.2"], ["10.1.0.3"])
    assert found.metadata.labels == {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    await client.delete(PODS, "two", "default")
    await wait_for_addresses(client, ["10.1.0.1"], ["10.1.0.3"])
    await client.delete(SERVICES, "s", "default")

    async def is_deleted() -> bool:
        return await endpoints(client) is None

    await eventually(is_deleted)


async def test_headless_services_may_list_what_is_not_ready(run: Run) -> None:
    client = await run(EndpointsController)
    await make_service(client, cluster_ip="None", ports=[], publish_not_ready_addresses=True)
    await run_pod(client, "one", "10.1.0.1", ready=False)
    found = await wait_for_addresses(client, ["10.1.0.1"], [])
    assert found.metadata.labels["service.kubernetes.io/headless"] == ""
    assert found.subsets[0].ports == []


async def test_a_thousand_addresses_are_listed_at_most(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subsets, "MOST", 2)
    client = await run(EndpointsController)
    await make_service(client)
    await run_pod(client, "one", "10.1.0.1", ready=False)
    await run_pod(client, "two", "10.1.0.2")
    await run_pod(client, "three", "10.1.0.3")
    found = await wait_for_addresses(client, ["10.1.0.2", "10.1.0.3"], [])
    assert found.metadata.annotations["endpoints.kubernetes.io/over-capacity"] == "truncated"
    await client.delete(PODS, "two", "default")
    found = await wait_for_addresses(client, ["10.1.0.3"], ["10.1.0.1"])
    assert "endpoints.kubernetes.io/over-capacity" not in found.metadata.annotations


async def test_endpoints_that_somebody_takes_away_come_back(run: Run) -> None:
    client = await run(EndpointsController)
    await make_service(client)
    await run_pod(client, "one", "10.1.0.1")
    before = await wait_for_addresses(client, ["10.1.0.1"], [])
    await client.delete(ENDPOINTS, "s", "default")
    after = await wait_for_addresses(client, ["10.1.0.1"], [])
    assert after.metadata.uid != before.metadata.uid


async def test_endpoints_without_a_service_go_at_the_start_unless_a_leader_has_them(run: Run) -> None:
    client = await run()
    leader = {"control-plane.alpha.kubernetes.io/leader": "{}"}
    await client.create(ENDPOINTS, Endpoints(metadata=ObjectMeta(name="left", namespace="default")))
    led = ObjectMeta(name="led", namespace="default", annotations=leader)
    await client.create(ENDPOINTS, Endpoints(metadata=led))
    await run(EndpointsController)

    async def is_deleted() -> bool:
        return await endpoints(client, "left") is None

    await eventually(is_deleted)
    assert await endpoints(client, "led") is not None
