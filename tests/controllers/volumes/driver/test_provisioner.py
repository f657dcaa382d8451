"""Tests of the simulated driver's provisioner."""

from __future__ import annotations

from steersman.api.core.v1 import Node, PersistentVolume, TopologySelectorLabelRequirement, TopologySelectorTerm
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.resources import EVENTS, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from steersman.controllers.volumes.binder.controller import PersistentVolumeBinder
from steersman.controllers.volumes.claim_protection import ClaimProtection
from steersman.controllers.volumes.driver.objects import DRIVER, install
from steersman.controllers.volumes.driver.provisioner import Provisioner
from steersman.controllers.volumes.volume_protection import VolumeProtection
from tests.controllers.volumes.driver.users import allow_driver
from tests.controllers.volumes.objects import claim, storage_class
from tests.controllers.waiting import Run, eventually

ZONE = "topology.kubernetes.io/zone"


async def the_volume(client: Client) -> PersistentVolume:
    async def look() -> list[PersistentVolume]:
        return [each for each in (await client.list(PERSISTENT_VOLUMES)).items if each.status.phase == "Bound"]

    (found,) = await eventually(look)
    return found


async def test_a_claim_of_the_default_class_gets_a_volume_that_goes_with_it(run: Run) -> None:
    client = await run(PersistentVolumeBinder, Provisioner, ClaimProtection, VolumeProtection)
    await allow_driver(client)
    await install(client)
    await install(client)  # again, as at each start
    made = await client.create(PERSISTENT_VOLUME_CLAIMS, claim(storage_class=None))
    assert made.spec.storage_class_name == "standard"
    found = await the_volume(client)
    assert found.metadata.name == f"pvc-{made.metadata.uid}"
    assert found.metadata.annotations["pv.kubernetes.io/provisioned-by"] == DRIVER
    assert found.spec.csi is not None
    assert (found.spec.csi.driver, found.spec.capacity, found.spec.node_affinity) == (DRIVER, {"storage": "1Gi"}, None)

    async def event_messages() -> list[str]:
        events = (await client.list(EVENTS, "default")).items
        messages = [each.message for each in events if each.source.component == DRIVER]
        return messages if len(messages) == 2 else []

    assert await eventually(event_messages) == [
        'External provisioner is provisioning volume for claim "default/a"',
        f"Successfully provisioned volume {found.metadata.name}",
    ]
    await client.delete(PERSISTENT_VOLUME_CLAIMS, "a", "default")

    async def is_deleted() -> bool:
        return not (await client.list(PERSISTENT_VOLUMES)).items

    await eventually(is_deleted)


async def test_a_delayed_volume_is_made_where_its_node_is(run: Run) -> None:
    client = await run(PersistentVolumeBinder, Provisioner)
    await allow_driver(client)
    term = TopologySelectorTerm(match_label_expressions=[TopologySelectorLabelRequirement(key=ZONE, values=["a", "b"])])
    delayed = storage_class("c", DRIVER, volume_binding_mode="WaitForFirstConsumer", allowed_topologies=[term])
    await client.create(STORAGE_CLASSES, delayed)
    await client.create(NODES, Node(metadata=ObjectMeta(name="n", labels={ZONE: "b"})))
    await client.create(PERSISTENT_VOLUME_CLAIMS, claim(storage_class="c"))
    selected = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n"}}}
    await client.patch(PERSISTENT_VOLUME_CLAIMS, "a", "default", selected)
    affinity = (await the_volume(client)).spec.node_affinity
    assert affinity is not None
    assert affinity.required is not None
    (found,) = affinity.required.node_selector_terms or []
    assert [(each.key, each.operator, each.values) for each in found.match_expressions] == [(ZONE, "In", ["b"])]
