"""Controller that keeps deleted volumes while they are bound (pkg/controller/volume/pvprotection)."""

from __future__ import annotations

from steersman.api.core.v1 import PersistentVolume
from steersman.client.errors import ignoring, is_not_found
from steersman.client.resources import PERSISTENT_VOLUMES
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.controllers.volumes.protection import (
    is_deletion_candidate,
    needs_finalizer,
    needs_processing,
    with_finalizer,
    without_finalizer,
)
from steersman.machinery.built_in.volumes import VOLUME_PROTECTION


class VolumeProtection(Controller[str]):
    """Adds and removes the protection finalizer. A key is the name of a volume."""

    name = "persistentvolume-protection-controller"
    account = "pv-protection-controller"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._volumes = self.informers.for_resource(PERSISTENT_VOLUMES)
        self._volumes.on_change(self._changed)

    def _changed(self, _: PersistentVolume | None, new: PersistentVolume | None) -> None:
        if new is not None and needs_processing(new, VOLUME_PROTECTION):
            self.queue.add(new.metadata.name)

    async def sync(self, key: str) -> None:
        volume = self._volumes.get("", key)
        if volume is None:
            return
        with ignoring(is_not_found):
            if needs_finalizer(volume, VOLUME_PROTECTION):
                await self.client.update(PERSISTENT_VOLUMES, with_finalizer(volume, VOLUME_PROTECTION))
            elif is_deletion_candidate(volume, VOLUME_PROTECTION) and volume.status.phase != "Bound":
                await self.client.update(PERSISTENT_VOLUMES, without_finalizer(volume, VOLUME_PROTECTION))
