"""Tests of the protection of claims in use."""

from __future__ import annotations

from steersman.api.meta.v1 import DeleteOptions
from steersman.client.client import Client
from steersman.client.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from steersman.controllers.volumes.claim_protection import ClaimProtection
from tests.controllers.volumes.objects import claim, pod
from tests.controllers.waiting import Run, eventually


async def names(client: Client) -> list[str]:
    return [each.metadata.name for each in (await client.list(PERSISTENT_VOLUME_CLAIMS, "default")).items]


async def test_a_claim_goes_when_no_pod_with_a_node_uses_it(run: Run) -> None:
    client = await run(ClaimProtection)
    for name in ("used", "waited", "unused"):
        await client.create(PERSISTENT_VOLUME_CLAIMS, claim(name))
    await client.create(PODS, pod("p", "used", "node-a"))
    await client.create(PODS, pod("q", "waited"))
    for name in ("used", "waited", "unused"):
        await client.delete(PERSISTENT_VOLUME_CLAIMS, name, "default")

    async def only_used() -> bool:
        return await names(client) == ["used"]

    await eventually(only_used)
    await client.delete(PODS, "p", "default", DeleteOptions(grace_period_seconds=0))

    async def none() -> bool:
        return await names(client) == []

    await eventually(none)


async def test_the_finalizer_is_put_back(run: Run) -> None:
    client = await run(ClaimProtection)
    await client.create(PERSISTENT_VOLUME_CLAIMS, claim())
    await client.patch(PERSISTENT_VOLUME_CLAIMS, "a", "default", {"metadata": {"finalizers": None}})

    async def back() -> bool:
        claim = await client.get(PERSISTENT_VOLUME_CLAIMS, "a", "default")
        return claim.metadata.finalizers == ["kubernetes.io/pvc-protection"]

    await eventually(back)
