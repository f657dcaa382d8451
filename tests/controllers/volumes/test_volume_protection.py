"""Tests of the protection of bound volumes."""

from __future__ import annotations

from steersman.client.errors import is_not_found
from steersman.client.resources import PERSISTENT_VOLUMES
from steersman.controllers.volumes.volume_protection import VolumeProtection
from steersman.machinery.errors.status import StatusError
from tests.controllers.volumes.objects import volume
from tests.controllers.waiting import Run, eventually


async def test_a_volume_goes_once_it_is_not_bound(run: Run) -> None:
    client = await run(VolumeProtection)
    await client.create(PERSISTENT_VOLUMES, volume("v"))
    await client.patch(PERSISTENT_VOLUMES, "v", "", {"status": {"phase": "Bound"}}, subresource="status")
    await client.delete(PERSISTENT_VOLUMES, "v")
    kept = await client.get(PERSISTENT_VOLUMES, "v")
    assert kept.metadata.finalizers == ["kubernetes.io/pv-protection"]
    await client.patch(PERSISTENT_VOLUMES, "v", "", {"status": {"phase": "Released"}}, subresource="status")

    async def is_deleted() -> bool:
        try:
            await client.get(PERSISTENT_VOLUMES, "v")
        except StatusError as error:
            return is_not_found(error)
        return False

    await eventually(is_deleted)
