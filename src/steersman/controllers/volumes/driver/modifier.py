"""Gives volumes of the driver the attributes of another class (what external-resizer does)."""

from __future__ import annotations

from typing import Final

import msgspec

from steersman.api.core.v1 import (
    ModifyVolumeStatus,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimCondition,
    PersistentVolumeClaimStatus,
)
from steersman.api.storage.v1 import VolumeAttributesClass
from steersman.client.events import reference
from steersman.client.informer import Key, key_of
from steersman.client.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, VOLUME_ATTRIBUTES_CLASSES
from steersman.controllers.controller import Surroundings
from steersman.controllers.volumes.driver.component import DriverComponent
from steersman.controllers.volumes.driver.objects import DRIVER
from steersman.machinery.built_in.volumes import attributes_class_of
from steersman.machinery.values import times
from steersman.machinery.values.conditions import without_conditions

_MODIFYING: Final = "ModifyingVolume"
_WAITING: Final = "claims by the class that they want"


class Modifier(DriverComponent[Key]):
    """A key is namespace and name of a claim."""

    name = "volume-driver-modifier"

    def __init__(self, given: Surroundings) -> None:
        super().__init__(given)
        self._claims = self.informers.of(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = self.informers.of(PERSISTENT_VOLUMES)
        self._classes = self.informers.of(VOLUME_ATTRIBUTES_CLASSES)
        self._claims.add_index(_WAITING, lambda each: (attributes_class_of(each),) if _is_to_change(each) else ())
        self._claims.on_change(self._claim_changed)
        self._classes.on_change(self._class_changed)

    def _claim_changed(self, _: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        if new is not None and _is_to_change(new):
            self.queue.add(key_of(new))

    def _class_changed(self, _: VolumeAttributesClass | None, new: VolumeAttributesClass | None) -> None:
        for claim in self._claims.indexed(_WAITING, new.metadata.name) if new is not None else ():
            self.queue.add(key_of(claim))

    async def sync(self, key: Key) -> None:
        claim = self._claims.get(*key)
        volume = None if claim is None else self._volumes.get("", claim.spec.volume_name)
        if claim is None or volume is None or volume.spec.csi is None or volume.spec.csi.driver != DRIVER:
            return
        if not _is_to_change(claim):
            return
        name = attributes_class_of(claim)
        wanted = self._classes.get("", name)
        if wanted is None or wanted.driver_name != DRIVER:
            if claim.status.modify_volume_status != _state(name, "Pending"):
                await self._put(
                    claim, msgspec.structs.replace(claim.status, modify_volume_status=_state(name, "Pending"))
                )
                why = "does not exist" if wanted is None else "is not of this driver"
                self._tell(claim, "Warning", "VolumeModifyFailed", f"VAC {name} {why}.")
            return
        await self._modify(claim, volume, name)

    async def _modify(self, claim: PersistentVolumeClaim, volume: PersistentVolume, name: str) -> None:
        whose = f"volume {volume.metadata.name} with vac {name}"
        condition = PersistentVolumeClaimCondition(
            type=_MODIFYING, status="True", last_transition_time=times.now(), last_probe_time=None
        )
        claim = await self._put(
            claim,
            msgspec.structs.replace(
                claim.status,
                modify_volume_status=_state(name, "InProgress"),
                conditions=[*without_conditions(claim.status.conditions, _MODIFYING), condition],
            ),
        )
        self._tell(claim, "Normal", "VolumeModify", f"external resizer is modifying {whose}")
        spec = msgspec.structs.replace(volume.spec, volume_attributes_class_name=name)
        await self.client.update(PERSISTENT_VOLUMES, msgspec.structs.replace(volume, spec=spec))
        claim = await self._put(
            claim,
            msgspec.structs.replace(
                claim.status,
                current_volume_attributes_class_name=name,
                modify_volume_status=None,
                conditions=without_conditions(claim.status.conditions, _MODIFYING),
            ),
        )
        self._tell(claim, "Normal", "VolumeModifySuccessful", f"external resizer modified {whose} successfully")

    async def _put(self, claim: PersistentVolumeClaim, status: PersistentVolumeClaimStatus) -> PersistentVolumeClaim:
        return await self.client.update_status(PERSISTENT_VOLUME_CLAIMS, msgspec.structs.replace(claim, status=status))

    def _tell(self, claim: PersistentVolumeClaim, type_: str, reason: str, message: str) -> None:
        self.recorder.event(reference(PERSISTENT_VOLUME_CLAIMS, claim), type_, reason, message)


def _is_to_change(claim: PersistentVolumeClaim) -> bool:
    """Whether a bound claim wants another class than its volume has."""
    wanted = attributes_class_of(claim)
    return claim.status.phase == "Bound" and wanted not in ("", claim.status.current_volume_attributes_class_name or "")


def _state(name: str, status: str) -> ModifyVolumeStatus:
    return ModifyVolumeStatus(target_volume_attributes_class_name=name, status=status)
