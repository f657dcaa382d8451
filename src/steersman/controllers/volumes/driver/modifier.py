"""Modifier of the driver: it gives volumes the requested attributes class (a task of external-resizer)."""

from __future__ import annotations

from typing import Final

import msgspec

from steersman.api.core.v1 import (
    ModifyVolumeStatus,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimCondition,
)
from steersman.api.storage.v1 import VolumeAttributesClass
from steersman.client.informer import key_of
from steersman.client.resources import PERSISTENT_VOLUMES, VOLUME_ATTRIBUTES_CLASSES
from steersman.controllers.controller import ControllerDependencies
from steersman.controllers.volumes.driver.component import ClaimComponent
from steersman.controllers.volumes.driver.objects import DRIVER
from steersman.machinery.built_in.volumes import attributes_class_of
from steersman.machinery.values import times
from steersman.machinery.values.conditions import without_conditions

_MODIFYING: Final = "ModifyingVolume"
_WAITING: Final = "claims by the class that they want"


class Modifier(ClaimComponent):
    """Modifies volumes. A key is the namespace and name of a claim."""

    name = "volume-driver-modifier"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._classes = self.informers.for_resource(VOLUME_ATTRIBUTES_CLASSES)
        self.claims.add_index(_WAITING, lambda each: (attributes_class_of(each),) if _needs_modification(each) else ())
        self.claims.on_change(self._claim_changed)
        self._classes.on_change(self._class_changed)

    def _claim_changed(self, _: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        if new is not None and _needs_modification(new):
            self.queue.add(key_of(new))

    def _class_changed(self, _: VolumeAttributesClass | None, new: VolumeAttributesClass | None) -> None:
        for claim in self.claims.indexed(_WAITING, new.metadata.name) if new is not None else ():
            self.queue.add(key_of(claim))

    async def sync_bound(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        if not _needs_modification(claim):
            return
        name = attributes_class_of(claim)
        attributes_class = self._classes.get("", name)
        if attributes_class is not None and attributes_class.driver_name == DRIVER:
            await self._modify(claim, volume, name)
        elif claim.status.modify_volume_status != _state(name, "Pending"):
            await self.put_status(claim, modify_volume_status=_state(name, "Pending"))
            why = "does not exist" if attributes_class is None else "is not of this driver"
            self.record_event(claim, "VolumeModifyFailed", f"VAC {name} {why}.", "Warning")

    async def _modify(self, claim: PersistentVolumeClaim, volume: PersistentVolume, name: str) -> None:
        whose = f"volume {volume.metadata.name} with vac {name}"
        others = without_conditions(claim.status.conditions, _MODIFYING)
        condition = PersistentVolumeClaimCondition(
            type=_MODIFYING, status="True", last_transition_time=times.now(), last_probe_time=None
        )
        claim = await self.put_status(
            claim, modify_volume_status=_state(name, "InProgress"), conditions=[*others, condition]
        )
        self.record_event(claim, "VolumeModify", f"external resizer is modifying {whose}")
        spec = msgspec.structs.replace(volume.spec, volume_attributes_class_name=name)
        await self.client.update(PERSISTENT_VOLUMES, msgspec.structs.replace(volume, spec=spec))
        claim = await self.put_status(
            claim,
            current_volume_attributes_class_name=name,
            modify_volume_status=None,
            conditions=without_conditions(claim.status.conditions, _MODIFYING),
        )
        self.record_event(claim, "VolumeModifySuccessful", f"external resizer modified {whose} successfully")


def _needs_modification(claim: PersistentVolumeClaim) -> bool:
    """Return True if a bound claim requests another class than its volume has."""
    attributes_class = attributes_class_of(claim)
    return claim.status.phase == "Bound" and attributes_class not in (
        "",
        claim.status.current_volume_attributes_class_name or "",
    )


def _state(name: str, status: str) -> ModifyVolumeStatus:
    return ModifyVolumeStatus(target_volume_attributes_class_name=name, status=status)
