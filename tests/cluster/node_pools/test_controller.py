"""NodePools of a running cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest_asyncio

from steersman.api.core.v1 import Node
from steersman.authentication.user import UserInfo
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.resources import NODES
from steersman.cluster.cluster import Cluster
from steersman.cluster.configuration import Configuration
from steersman.controlplane.options import Options
from steersman.testing.clock import Clock
from tests.controllers.waiting import eventually

ADMIN: Final = UserInfo("admin", groups=("system:masters",))
POOLS: Final[APIResource[dict[str, Any]]] = APIResource(
    "simulation.steersman.dev", "v1alpha1", "nodepools", "NodePool", dict, namespaced=False
)


@pytest_asyncio.fixture
async def clock() -> AsyncIterator[Clock]:
    found = Clock()
    yield found
    found.close()


@pytest_asyncio.fixture
async def client(clock: Clock, keys_folder: Path) -> AsyncIterator[Client]:
    cluster = Cluster(Options(data_dir=keys_folder, storage="memory", listen=False), Configuration((), pools=True))
    await cluster.start()
    try:
        yield cluster.client(ADMIN, "test")
    finally:
        await cluster.stop()


async def create(client: Client, name: str, **spec: Any) -> None:
    await client.create(POOLS, {"metadata": {"name": name}, "spec": spec})


async def names(client: Client) -> list[str]:
    return sorted(each.metadata.name for each in (await client.list(NODES)).items)


async def has_nodes(client: Client, *expected: str) -> None:
    async def there() -> bool:
        return await names(client) == sorted(expected)

    await eventually(there)


async def status_with(client: Client, name: str, **members: Any) -> dict[str, Any]:
    """Wait until the status of a pool has these members, and return it."""

    async def has_them() -> dict[str, Any] | None:
        status: dict[str, Any] = (await client.get(POOLS, name)).get("status", {})
        return status if {each: status.get(each) for each in members} == members else None

    found = await eventually(has_them)
    assert found is not None
    return found


def is_ready(node: Node) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)


async def test_a_pool_has_as_many_nodes_as_it_says(client: Client) -> None:
    await create(client, "spot", replicas=2, template={"status": {"capacity": {"cpu": 4}}})
    status = await status_with(client, "spot", replicas=2, readyReplicas=2)
    assert await names(client) == ["spot-0", "spot-1"]
    assert status["capacity"]["cpu"] == "8"
    assert status["selector"] == "simulation.steersman.dev/group=spot"
    assert [(each["type"], each["status"]) for each in status["conditions"]] == [("Ready", "True")]
    scale = {"spec": {"replicas": 3}}
    await client.patch_without_result(POOLS, "spot", "", scale, subresource="scale")
    await has_nodes(client, "spot-0", "spot-1", "spot-2")
    await client.patch_without_result(POOLS, "spot", "", {"spec": {"replicas": 0}})
    await has_nodes(client)
    await status_with(client, "spot", replicas=0, readyReplicas=0)
