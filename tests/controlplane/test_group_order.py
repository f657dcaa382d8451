"""Groups and versions are ordered by their APIServices."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
MERGE = "application/merge-patch+json"


@pytest_asyncio.fixture
async def client(start_control_plane: Any, client_of: Any) -> AsyncIterator[Any]:
    yield client_of(await start_control_plane())


async def groups(client: Any) -> list[str]:
    return [each["name"] for each in (await client.get("/apis")).json()["groups"]]


async def versions(client: Any, group: str) -> list[str]:
    return [each["version"] for each in (await client.get(f"/apis/{group}")).json()["versions"]]


async def test_a_group_moves_with_the_priority_of_its_service(client: Any) -> None:
    before = await groups(client)
    assert before[:2] == ["apiregistration.k8s.io", "apps"]
    spec = {"spec": {"groupPriorityMinimum": 19000}}
    changed = await client.request("PATCH", f"{SERVICES}/v1.policy", spec, content_type=MERGE)
    assert changed.status == 200
    assert (await groups(client))[:2] == ["apiregistration.k8s.io", "policy"]  # the aggregator's own is always first
    assert sorted(await groups(client)) == sorted(before)
    assert (await client.delete(f"{SERVICES}/v1.policy")).status == 200
    assert await groups(client) == before


async def test_a_version_moves_within_its_group(client: Any) -> None:
    assert await versions(client, "autoscaling") == ["v2", "v1"]
    spec = {"spec": {"versionPriority": 100}}
    await client.request("PATCH", f"{SERVICES}/v1.autoscaling", spec, content_type=MERGE)
    assert await versions(client, "autoscaling") == ["v1", "v2"]


@pytest.mark.parametrize("priority", [{"groupPriorityMinimum": 19000}, {"versionPriority": 1}])
async def test_only_the_group_of_a_service_is_told_of(start_control_plane: Any, client_of: Any, priority: Any) -> None:
    plane = await start_control_plane()
    notified: list[str] = []
    plane.server.catalogue.subscribe(notified.append)
    notified.clear()
    client = client_of(plane)
    await client.request("PATCH", f"{SERVICES}/v1.policy", {"spec": priority}, content_type=MERGE)
    assert notified == ["policy"]
