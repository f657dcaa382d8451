"""Tests of the published CA bundle."""

from __future__ import annotations

from steersman.client.client import Client
from steersman.client.resources import CONFIG_MAPS
from steersman.controllers.root_ca_publisher import NAME, RootCAPublisher
from tests.controllers.waiting import Run, eventually


async def published(client: Client) -> list[dict[str, str]]:
    return [each.data for each in (await client.list(CONFIG_MAPS, "default")).items if each.metadata.name == NAME]


async def test_it_is_published_and_put_right(run: Run) -> None:
    client = await run(RootCAPublisher, root_ca="PEM")
    await eventually(lambda: published(client))
    await client.patch(CONFIG_MAPS, NAME, "default", {"data": {"ca.crt": "forged", "more": "x"}})

    async def right() -> bool:
        return await published(client) == [{"ca.crt": "PEM"}]

    await eventually(right)
    await client.delete(CONFIG_MAPS, NAME, "default")
    await eventually(right)
