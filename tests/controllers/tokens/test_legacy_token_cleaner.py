"""Tests of the removal of unused, automatically created tokens."""

from __future__ import annotations

from steersman.api.core.v1 import ObjectReference, Pod, Secret, ServiceAccount
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.resources import CONFIG_MAPS, PODS, SECRETS, SERVICE_ACCOUNTS
from steersman.controllers.tokens.legacy_token_cleaner import TRACKING, LegacyTokenCleaner
from steersman.machinery.built_in.token_secrets import ACCOUNT_NAME, INVALID_SINCE, LAST_USED, SECRET_TYPE
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.values import times
from tests.controllers.waiting import Run, eventually

LONG_AGO = "2020-01-01"
PERIOD = 1e-3


async def make(client: Client, name: str, **labels: str) -> None:
    metadata = ObjectMeta(name=name, namespace="default", annotations={ACCOUNT_NAME: "a"}, labels=labels)
    await client.create(SECRETS, Secret(metadata=metadata, type=SECRET_TYPE, data={"token": b"t"}))


async def labels(client: Client) -> dict[str, str | None]:
    """Return the date since which each secret is invalid."""
    found = (await client.list(SECRETS, "default", field_selector=f"type={SECRET_TYPE}")).items
    return {each.metadata.name: each.metadata.labels.get(INVALID_SINCE) for each in found}


async def test_they_are_called_invalid_at_first_and_deleted_later(run: Run) -> None:
    client = await run()

    async def tracked() -> bool:
        found = (await client.list(CONFIG_MAPS, "kube-system")).items
        return any(each.metadata.name == TRACKING for each in found)

    await eventually(tracked)
    await client.patch(CONFIG_MAPS, TRACKING, "kube-system", {"data": {"since": LONG_AGO}})
    names = ("old", "used", "mounted", "broken", "known", "new")
    references = [ObjectReference(name=each) for each in names]
    account = ServiceAccount(metadata=ObjectMeta(name="a", namespace="default"), secrets=references)
    await client.create(SERVICE_ACCOUNTS, account)
    await make(client, "old", **{LAST_USED: LONG_AGO})
    await make(client, "used", **{LAST_USED: "9999-01-01"})
    await make(client, "broken", **{LAST_USED: "yesterday"})
    await make(client, "known", **{INVALID_SINCE: LONG_AGO})
    await make(client, "by-hand")
    await make(client, "mounted")
    spec = {
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": "v", "secret": {"secretName": "mounted"}}],
    }
    await client.create(PODS, from_plain(Pod, {"metadata": {"name": "p", "namespace": "default"}, "spec": spec}))
    times.advance(2)  # they are as old as that
    try:
        await run(LegacyTokenCleaner, legacy_token_clean_up_period=PERIOD)

        async def done() -> bool:
            return await labels(client) == {
                "old": times.today(),
                "used": None,
                "broken": None,
                "by-hand": None,
                "mounted": None,
            }

        await eventually(done)
    finally:
        times.advance(-2)
