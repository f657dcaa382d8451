"""Tests of the binding of claims and volumes."""

from __future__ import annotations

import asyncio

from steersman.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from steersman.client.client import Client
from steersman.client.resources import EVENTS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES
from steersman.controllers.volumes.binder.controller import PersistentVolumeBinder
from steersman.controllers.volumes.claim_protection import ClaimProtection
from steersman.controllers.volumes.volume_protection import VolumeProtection
from tests.controllers.volumes.objects import claim, pod, storage_class, volume
from tests.controllers.waiting import Run, eventually


async def claim_in(client: Client, phase: str, name: str = "a") -> PersistentVolumeClaim:
    async def look() -> PersistentVolumeClaim | None:
        claim = await client.get(PERSISTENT_VOLUME_CLAIMS, name, "default")
        return claim if claim.status.phase == phase else None

    found = await eventually(look)
    assert found is not None
    return found


async def wait_for_volume(client: Client, phase: str, name: str = "v") -> PersistentVolume:
    async def look() -> PersistentVolume | None:
        persistent_volume = await client.get(PERSISTENT_VOLUMES, name)
        return persistent_volume if persistent_volume.status.phase == phase else None

    found = await eventually(look)
    assert found is not None
    return found


async def wait_for_event(client: Client, reason: str) -> str:
    async def look() -> str:
        events = (await client.list(EVENTS, "default")).items
        return next((each.message for each in events if each.reason == reason), "")

    return await eventually(look)


async def test_a_claim_gets_a_volume_that_was_there_or_comes_later_and_gives_it_back(run: Run) -> None:
    client = await run(PersistentVolumeBinder, ClaimProtection, VolumeProtection)
    await client.create(PERSISTENT_VOLUME_CLAIMS, claim())
    assert "no storage class is set" in await wait_for_event(client, "FailedBinding")
    await client.create(PERSISTENT_VOLUMES, volume("v", "2Gi", persistent_volume_reclaim_policy="Retain"))
    bound = await claim_in(client, "Bound")
    assert bound.spec.volume_name == "v"
    assert bound.status.capacity == {"storage": "2Gi"}
    assert bound.metadata.annotations == {
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
    }
    of_volume = await wait_for_volume(client, "Bound")
    assert of_volume.spec.claim_ref is not None
    assert of_volume.spec.claim_ref.uid == bound.metadata.uid
    await client.delete(PERSISTENT_VOLUME_CLAIMS, "a", "default")
    await wait_for_volume(client, "Released")


async def test_claims_share_out_volumes_each_to_one(run: Run) -> None:
    client = await run(PersistentVolumeBinder)
    async with asyncio.TaskGroup() as group:
        for number in range(12):
            group.create_task(client.create(PERSISTENT_VOLUME_CLAIMS, claim(f"c{number}")))
            group.create_task(client.create(PERSISTENT_VOLUMES, volume(f"v{number}")))

    async def all_bound() -> list[str]:
        claims = (await client.list(PERSISTENT_VOLUME_CLAIMS, "default")).items
        return [each.spec.volume_name for each in claims if each.status.phase == "Bound"] if len(claims) == 12 else []

    async def names_if_all_bound() -> list[str]:
        found = await all_bound()
        return found if len(found) == 12 else []

    assert len(set(await eventually(names_if_all_bound))) == 12


async def test_a_claim_without_a_class_gets_the_default_when_there_is_one(run: Run) -> None:
    client = await run(PersistentVolumeBinder)
    await client.create(PERSISTENT_VOLUME_CLAIMS, claim(storage_class=None))
    await wait_for_event(client, "FailedBinding")
    default = storage_class("c")
    default.metadata.annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    await client.create(STORAGE_CLASSES, default)
    text = await wait_for_event(client, "ExternalProvisioning")
    assert text.startswith("Waiting for a volume to be created either by the external provisioner 'example.com/p' or ")
    persistent_volume_claim = await client.get(PERSISTENT_VOLUME_CLAIMS, "a", "default")
    assert persistent_volume_claim.spec.storage_class_name == "c"
    assert persistent_volume_claim.metadata.annotations["volume.kubernetes.io/storage-provisioner"] == "example.com/p"


async def test_a_claim_of_a_delayed_class_waits_for_the_node_of_its_pod(run: Run) -> None:
    client = await run(PersistentVolumeBinder)
    await client.create(STORAGE_CLASSES, storage_class("c", volume_binding_mode="WaitForFirstConsumer"))
    await client.create(PERSISTENT_VOLUMES, volume("v", storage_class_name="c"))
    await wait_for_volume(client, "Available")
    await client.create(PERSISTENT_VOLUME_CLAIMS, claim(storage_class="c"))
    assert (
        await wait_for_event(client, "WaitForFirstConsumer")
        == "waiting for first consumer to be created before binding"
    )
    await client.create(PODS, pod("p", "b"))
    await client.create(PERSISTENT_VOLUME_CLAIMS, claim("b", storage_class="c"))
    assert await wait_for_event(client, "WaitForPodScheduled") == "waiting for pod p to be scheduled"
    selected = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n"}}}
    await client.patch(PERSISTENT_VOLUME_CLAIMS, "a", "default", selected)
    await wait_for_event(client, "ExternalProvisioning")


async def test_a_claim_whose_volume_is_gone_is_lost(run: Run) -> None:
    client = await run(PersistentVolumeBinder)
    await client.create(PERSISTENT_VOLUMES, volume("v"))
    await client.create(PERSISTENT_VOLUME_CLAIMS, claim())
    await claim_in(client, "Bound")
    await client.patch(PERSISTENT_VOLUMES, "v", "", {"metadata": {"finalizers": None}})
    await client.delete(PERSISTENT_VOLUMES, "v")
    lost = await claim_in(client, "Lost")
    assert lost.status.capacity == {}
    assert (
        await wait_for_event(client, "ClaimLost")
        == "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
    )


async def test_what_cannot_be_deleted_has_failed(run: Run) -> None:
    client = await run(PersistentVolumeBinder, ClaimProtection, VolumeProtection)
    await client.create(PERSISTENT_VOLUMES, volume("v", persistent_volume_reclaim_policy="Delete"))
    await client.create(PERSISTENT_VOLUME_CLAIMS, claim())
    await claim_in(client, "Bound")
    await client.delete(PERSISTENT_VOLUME_CLAIMS, "a", "default")
    failed = await wait_for_volume(client, "Failed")
    assert failed.status.message == "host_path deleter only supports /tmp/.+ but received provided /data"


async def test_a_recycled_volume_is_emptied_by_a_pod_and_free_again(run: Run) -> None:
    client = await run(PersistentVolumeBinder, ClaimProtection)
    await client.create(PERSISTENT_VOLUMES, volume("v", persistent_volume_reclaim_policy="Recycle"))
    await client.create(PERSISTENT_VOLUME_CLAIMS, claim())
    await claim_in(client, "Bound")
    await client.delete(PERSISTENT_VOLUME_CLAIMS, "a", "default")

    async def pod_names() -> list[str]:
        return [each.metadata.name for each in (await client.list(PODS, "default")).items]

    assert await eventually(pod_names) == ["recycler-for-v"]
    await client.patch(PODS, "recycler-for-v", "default", {"status": {"phase": "Succeeded"}}, subresource="status")
    free = await wait_for_volume(client, "Available")
    assert free.spec.claim_ref is None
    assert await wait_for_event(client, "VolumeRecycled") == "Volume recycled"
