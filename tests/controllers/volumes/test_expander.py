"""Tests of events about expansions."""

from __future__ import annotations

from steersman.api.core.v1 import CSIPersistentVolumeSource
from steersman.client.resources import EVENTS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from steersman.controllers.volumes.binder.controller import PersistentVolumeBinder
from steersman.controllers.volumes.expander import VolumeExpander
from tests.controllers.volumes.objects import claim, storage_class, volume
from tests.controllers.waiting import Run, eventually


async def test_a_driver_is_waited_for(run: Run) -> None:
    client = await run(PersistentVolumeBinder, VolumeExpander)
    await client.create(STORAGE_CLASSES, storage_class("c", allow_volume_expansion=True))
    source = CSIPersistentVolumeSource(driver="d", volume_handle="h")
    await client.create(PERSISTENT_VOLUMES, volume("v", storage_class_name="c", csi=source))
    await client.create(PERSISTENT_VOLUME_CLAIMS, claim(storage_class="c"))

    async def bound() -> bool:
        return (await client.get(PERSISTENT_VOLUME_CLAIMS, "a", "default")).status.phase == "Bound"

    await eventually(bound)
    larger = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    await client.patch(PERSISTENT_VOLUME_CLAIMS, "a", "default", larger)

    async def reported() -> list[tuple[str, str, str]]:
        events = (await client.list(EVENTS, "default")).items
        return [
            (each.type, each.message, each.source.component) for each in events if each.reason == "ExternalExpanding"
        ]

    assert await eventually(reported) == [
        ("Normal", "waiting for an external controller to expand this PVC", "volume_expand")
    ]
