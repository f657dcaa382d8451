"""Resizer of the driver: it enlarges volumes whose claims request more (the task of external-resizer)."""

from __future__ import annotations

import msgspec

from steersman.api.core.v1 import PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimCondition
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.informer import key_of
from steersman.client.resources import PERSISTENT_VOLUMES
from steersman.controllers.controller import ControllerDependencies
from steersman.controllers.volumes.driver.component import ClaimComponent
from steersman.machinery.built_in.volumes import PRE_RESIZE_CAPACITY, mode_of, storage_of
from steersman.machinery.values import times
from steersman.machinery.values.conditions import without_conditions
from steersman.machinery.values.quantity import parse

_RESIZING = ("Resizing", "FileSystemResizePending")
_PENDING = "Waiting for user to (re-)start a pod to finish file system resize of volume on node."


class Resizer(ClaimComponent):
    """Enlarges volumes. A key is the namespace and name of a claim."""

    name = "volume-driver-resizer"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self.claims.on_change(self._changed)

    def _changed(self, _: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        if new is not None and new.status.phase == "Bound" and new.spec.volume_name:
            volume = self.volumes.get("", new.spec.volume_name)
            if _is_larger(new) or (volume is not None and PRE_RESIZE_CAPACITY in volume.metadata.annotations):
                self.queue.add(key_of(new))

    async def sync_bound(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        if not _is_larger(claim):
            await self._remove_annotation(volume)
        elif parse(storage_of(volume.spec.capacity)) < parse(storage_of(claim.spec.resources.requests)):
            await self._enlarge(claim, volume)
        elif claim.status.allocated_resource_statuses.get("storage") not in (
            "NodeResizePending",
            "NodeResizeInProgress",
        ):
            await self._hand_to_node(claim, volume)

    async def _enlarge(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        size = storage_of(claim.spec.resources.requests)
        claim = await self._write_resize_status(claim, "ControllerResizeInProgress", "Resizing", "")
        self.record_event(claim, "Resizing", f"External resizer is resizing volume {volume.metadata.name}")
        annotations = dict(volume.metadata.annotations)
        if mode_of(volume) == "Filesystem":
            annotations[PRE_RESIZE_CAPACITY] = storage_of(volume.spec.capacity)
        spec = msgspec.structs.replace(volume.spec, capacity={**volume.spec.capacity, "storage": size})
        changed = msgspec.structs.replace(volume, metadata=_annotated(volume.metadata, annotations), spec=spec)
        await self._hand_to_node(claim, await self.client.update(PERSISTENT_VOLUMES, changed))

    async def _hand_to_node(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        """Finish the resize of a block volume, or leave the resize of the file system to the node of a pod that uses
        it.
        """
        if mode_of(volume) == "Filesystem":
            await self._write_resize_status(claim, "NodeResizePending", "FileSystemResizePending", _PENDING)
            self.record_event(claim, "FileSystemResizeRequired", "Require file system resize of volume on node")
            return
        await self.put_status(
            claim,
            capacity={**claim.status.capacity, "storage": storage_of(volume.spec.capacity)},
            conditions=without_conditions(claim.status.conditions, *_RESIZING),
            allocated_resource_statuses={},
        )
        self.record_event(claim, "VolumeResizeSuccessful", "Resize volume succeeded")

    async def _write_resize_status(
        self, claim: PersistentVolumeClaim, resource_status: str, condition: str, message: str
    ) -> PersistentVolumeClaim:
        now = times.now()
        resizing = PersistentVolumeClaimCondition(
            type=condition, status="True", last_transition_time=now, last_probe_time=None, message=message
        )
        return await self.put_status(
            claim,
            conditions=[*without_conditions(claim.status.conditions, *_RESIZING), resizing],
            allocated_resources={"storage": storage_of(claim.spec.resources.requests)},
            allocated_resource_statuses={"storage": resource_status},
        )

    async def _remove_annotation(self, volume: PersistentVolume) -> None:
        annotations = dict(volume.metadata.annotations)
        if annotations.pop(PRE_RESIZE_CAPACITY, None) is not None:
            changed = msgspec.structs.replace(volume, metadata=_annotated(volume.metadata, annotations))
            await self.client.update(PERSISTENT_VOLUMES, changed)


def _is_larger(claim: PersistentVolumeClaim) -> bool:
    """Return True if a claim requests more than its capacity."""
    return parse(storage_of(claim.spec.resources.requests)) > parse(storage_of(claim.status.capacity))


def _annotated(metadata: ObjectMeta, annotations: dict[str, str]) -> ObjectMeta:
    return msgspec.structs.replace(metadata, annotations=annotations)
