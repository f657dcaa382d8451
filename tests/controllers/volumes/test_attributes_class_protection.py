"""Tests of the protection of VolumeAttributesClasses in use."""

from __future__ import annotations

from steersman.api.meta.v1 import ObjectMeta
from steersman.api.storage.v1 import VolumeAttributesClass
from steersman.client.resources import PERSISTENT_VOLUME_CLAIMS, VOLUME_ATTRIBUTES_CLASSES
from steersman.controllers.volumes.attributes_class_protection import AttributesClassProtection
from tests.controllers.volumes.objects import claim
from tests.controllers.waiting import Run, eventually


async def test_a_class_goes_with_the_last_claim_that_names_it(run: Run) -> None:
    client = await run(AttributesClassProtection)
    made = VolumeAttributesClass(metadata=ObjectMeta(name="c"), driver_name="d", parameters={"a": "b"})
    await client.create(PERSISTENT_VOLUME_CLAIMS, claim(volume_attributes_class_name="c"))
    await client.create(VOLUME_ATTRIBUTES_CLASSES, made)

    async def kept() -> bool:
        return bool((await client.get(VOLUME_ATTRIBUTES_CLASSES, "c")).metadata.finalizers)

    await eventually(kept)
    await client.delete(VOLUME_ATTRIBUTES_CLASSES, "c")
    assert (await client.get(VOLUME_ATTRIBUTES_CLASSES, "c")).metadata.finalizers == ["kubernetes.io/vac-protection"]
    await client.patch(PERSISTENT_VOLUME_CLAIMS, "a", "default", {"metadata": {"finalizers": None}})
    await client.delete(PERSISTENT_VOLUME_CLAIMS, "a", "default")

    async def is_deleted() -> bool:
        return not (await client.list(VOLUME_ATTRIBUTES_CLASSES)).items

    await eventually(is_deleted)
