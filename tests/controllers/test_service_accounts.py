"""Tests of the service account `default`."""

from __future__ import annotations

from steersman.api.core.v1 import Namespace
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.resources import NAMESPACES, SERVICE_ACCOUNTS
from steersman.controllers.service_accounts import ServiceAccountsController
from tests.controllers.waiting import Run, eventually


async def uid(client: Client, namespace: str) -> str:
    found = (await client.list(SERVICE_ACCOUNTS, namespace)).items
    return found[0].metadata.uid if found else ""


async def test_each_namespace_has_one_and_gets_it_again(run: Run) -> None:
    client = await run(ServiceAccountsController)
    await client.create(NAMESPACES, Namespace(metadata=ObjectMeta(name="a")))
    first = await eventually(lambda: uid(client, "a"))
    assert await eventually(lambda: uid(client, "default"))
    await client.delete(SERVICE_ACCOUNTS, "default", "a")

    async def another() -> bool:
        return await uid(client, "a") not in ("", first)

    await eventually(another)
