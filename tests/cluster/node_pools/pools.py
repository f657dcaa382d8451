"""NodePools as clients see them: their resource, their nodes, their status."""

from __future__ import annotations

from typing import Any, Final

from steersman.authentication.user import UserInfo
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.resources import NODES
from tests.controllers.waiting import eventually

ADMIN: Final = UserInfo("admin", groups=("system:masters",))
POOLS: Final[APIResource[dict[str, Any]]] = APIResource(
    "simulation.steersman.dev", "v1alpha1", "nodepools", "NodePool", dict, namespaced=False
)


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
