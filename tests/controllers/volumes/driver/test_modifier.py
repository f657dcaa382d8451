"""Tests of the simulated driver's modifier."""

from __future__ import annotations

from steersman.api.core.v1 import PersistentVolumeClaim
from steersman.api.meta.v1 import ObjectMeta
from steersman.api.storage.v1 import VolumeAttributesClass
from steersman.client.resources import EVENTS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, VOLUME_ATTRIBUTES_CLASSES
from steersman.controllers.volumes.binder.controller import PersistentVolumeBinder
from steersman.controllers.volumes.driver.modifier import Modifier
from steersman.controllers.volumes.driver.objects import DRIVER, install
from steersman.controllers.volumes.driver.provisioner import Provisioner
from tests.controllers.volumes.driver.users import allow_driver
from tests.controllers.volumes.objects import claim
from tests.controllers.waiting import Run, eventually


async def test_a_claim_waits_for_its_class_and_its_volume_follows_it(run: Run) -> None:
    client = await run(PersistentVolumeBinder, Provisioner, Modifier)
    await allow_driver(client)
    await install(client)
    await client.create(PERSISTENT_VOLUME_CLAIMS, claim(storage_class=None))

    async def with_phase() -> PersistentVolumeClaim | None:
        claim = await client.get(PERSISTENT_VOLUME_CLAIMS, "a", "default")
        return claim if claim.status.phase == "Bound" else None

    await eventually(with_phase)
    wanted = {"spec": {"volumeAttributesClassName": "silver"}}
    await client.patch(PERSISTENT_VOLUME_CLAIMS, "a", "default", wanted)

    async def pending() -> bool:
        status = (await client.get(PERSISTENT_VOLUME_CLAIMS, "a", "default")).status.modify_volume_status
        return status is not None and status.status == "Pending"

    await eventually(pending)
    silver = VolumeAttributesClass(metadata=ObjectMeta(name="silver"), driver_name=DRIVER, parameters={"a": "b"})
    await client.create(VOLUME_ATTRIBUTES_CLASSES, silver)

    async def modified() -> PersistentVolumeClaim | None:
        claim = await client.get(PERSISTENT_VOLUME_CLAIMS, "a", "default")
        return claim if claim.status.current_volume_attributes_class_name == "silver" else None

    found = await eventually(modified)
    assert found is not None
    assert (found.status.modify_volume_status, found.status.conditions) == (None, [])
    volume = await client.get(PERSISTENT_VOLUMES, found.spec.volume_name)
    assert volume.spec.volume_attributes_class_name == "silver"

    async def event_messages() -> list[str]:
        events = (await client.list(EVENTS, "default")).items
        messages = [each.message for each in events if each.reason.startswith("VolumeModify")]
        return messages if len(messages) == 3 else []

    assert await eventually(event_messages) == [
        "VAC silver does not exist.",
        f"external resizer is modifying volume {volume.metadata.name} with vac silver",
        f"external resizer modified volume {volume.metadata.name} with vac silver successfully",
    ]
