"""Tests of the attachment of volumes; the tests act as driver and kubelet."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.core.v1 import CSIPersistentVolumeSource, HostPathVolumeSource, Node
from steersman.api.meta.v1 import DeleteOptions, ObjectMeta
from steersman.api.storage.v1 import VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentSpec
from steersman.client.client import Client
from steersman.client.resources import (
    EVENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    VOLUME_ATTACHMENTS,
)
from steersman.controllers.volumes.attach_detach.controller import AttachDetach
from steersman.controllers.volumes.binder.controller import PersistentVolumeBinder
from steersman.machinery.built_in.volumes import CONTROLLER_ATTACHES
from tests.controllers.volumes.objects import claim, pod, volume
from tests.controllers.waiting import Run, eventually

NAME = "kubernetes.io/csi/d^h"


async def create_claim_and_nodes(client: Client, **spec: Any) -> None:
    """Create a bound claim and two nodes."""
    source = CSIPersistentVolumeSource(driver="d", volume_handle="h")
    await client.create(PERSISTENT_VOLUMES, volume("v", csi=source, **spec))
    await client.create(PERSISTENT_VOLUME_CLAIMS, claim())
    for name in ("x", "y"):
        await client.create(NODES, Node(metadata=ObjectMeta(name=name, annotations={CONTROLLER_ATTACHES: "true"})))


async def attachments(client: Client) -> dict[str, VolumeAttachment]:
    found = (await client.list(VOLUME_ATTACHMENTS)).items
    return {each.spec.node_name: each for each in found}


async def attach(client: Client, node: str) -> None:
    """Set the status of an attachment, as a driver does."""

    async def asked() -> VolumeAttachment | None:
        return (await attachments(client)).get(node)

    found = await eventually(asked)
    assert found is not None
    done = {"status": {"attached": True}}
    await client.patch(VOLUME_ATTACHMENTS, found.metadata.name, "", done, subresource="status")


async def wait_for_attached(client: Client, node: str, *names: str) -> None:
    """Wait until a node's status lists these volumes."""

    async def look() -> bool:
        found = await client.get(NODES, node)
        return [each.name for each in found.status.volumes_attached] == list(names)

    await eventually(look)


async def event_messages(client: Client, name: str) -> list[str]:
    events = (await client.list(EVENTS, "default")).items
    return [each.message for each in events if each.involved_object.name == name]


async def test_a_volume_is_attached_and_detached_when_the_node_lets_go(run: Run) -> None:
    client = await run(PersistentVolumeBinder, AttachDetach)
    await create_claim_and_nodes(client)
    await client.create(PODS, pod("p", "a", "x"))
    await attach(client, "x")
    await wait_for_attached(client, "x", NAME)

    async def events() -> list[str]:
        return await event_messages(client, "p")

    assert await eventually(events) == ['AttachVolume.Attach succeeded for volume "v" ']
    await client.patch(NODES, "x", "", {"status": {"volumesInUse": [NAME]}}, subresource="status")
    await client.delete(PODS, "p", "default", DeleteOptions(grace_period_seconds=0))
    await client.create(PODS, pod("q", "a", "y"))

    async def refused() -> list[str]:
        return await event_messages(client, "q")

    why = "Volume is already exclusively attached to one node and can't be attached to another"
    assert await eventually(refused) == [f'Multi-Attach error for volume "v" {why}']
    assert list(await attachments(client)) == ["x"]
    await client.patch(NODES, "x", "", {"status": {"volumesInUse": None}}, subresource="status")
    await wait_for_attached(client, "x")
    await attach(client, "y")
    await wait_for_attached(client, "y", NAME)
    assert list(await attachments(client)) == ["y"]


async def test_a_volume_for_many_is_attached_to_each_node(run: Run) -> None:
    client = await run(PersistentVolumeBinder, AttachDetach)
    await create_claim_and_nodes(client, access_modes=["ReadWriteOnce", "ReadWriteMany"])
    await client.create(PODS, pod("p", "a", "x"))
    await client.create(PODS, pod("q", "a", "y"))
    for node in ("x", "y"):
        await attach(client, node)
        await wait_for_attached(client, node, NAME)


async def test_why_a_volume_is_not_attached_is_told(run: Run) -> None:
    client = await run(PersistentVolumeBinder, AttachDetach)
    await create_claim_and_nodes(client)
    await client.create(PODS, pod("p", "a", "x"))

    async def asked() -> dict[str, VolumeAttachment]:
        return await attachments(client)

    name = (await eventually(asked))["x"].metadata.name
    error = {"status": {"attachError": {"message": "no such disk"}}}
    await client.patch(VOLUME_ATTACHMENTS, name, "", error, subresource="status")

    async def events() -> list[str]:
        return await event_messages(client, "p")

    assert await eventually(events) == ['AttachVolume.Attach failed for volume "v" : no such disk']


async def test_an_attachment_of_a_volume_without_a_driver_is_somebody_elses(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    client = await run(PersistentVolumeBinder, AttachDetach)
    await create_claim_and_nodes(client)
    await client.create(PERSISTENT_VOLUMES, volume("w", host_path=HostPathVolumeSource(path="/a")))
    spec = VolumeAttachmentSpec(attacher="d", node_name="x", source=VolumeAttachmentSource(persistent_volume_name="w"))
    await client.create(VOLUME_ATTACHMENTS, VolumeAttachment(metadata=ObjectMeta(name="theirs"), spec=spec))
    await client.create(PODS, pod("p", "a", "y"))
    await attach(client, "y")
    await wait_for_attached(client, "y", NAME)
    assert (await client.get(VOLUME_ATTACHMENTS, "theirs")).metadata.deletion_timestamp is None
    assert "AssertionError" not in caplog.text
