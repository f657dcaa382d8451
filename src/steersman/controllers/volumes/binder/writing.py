"""Writes of the binder: bindings and phases of claims and volumes."""

from __future__ import annotations

from typing import Final

import msgspec

from steersman.api.core.v1 import PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from steersman.controllers.volumes.binder.latest import LatestObjects
from steersman.machinery.built_in.volumes import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    PRE_RESIZE_CAPACITY,
    is_bound_to,
    reference_to,
)
from steersman.machinery.values.quantity import QuantityError, canonical, parse
from steersman.work.work_queue import TryLater

_YES: Final = "yes"


class Writer:
    """Writes claims and volumes, but only if something changes. Its methods raise StatusError, Unreachable, TryLater."""

    def __init__(self, client: Client, latest: LatestObjects) -> None:
        self._client = client
        self._latest = latest

    async def put_claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Update a claim and return it as stored."""
        return self._latest.record_claim(await self._client.update(PERSISTENT_VOLUME_CLAIMS, claim))

    async def put_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Update a volume and return it as stored."""
        return self._latest.record_volume(await self._client.update(PERSISTENT_VOLUMES, volume))

    async def put_claim_phase(
        self, claim: PersistentVolumeClaim, phase: str, volume: PersistentVolume | None = None
    ) -> PersistentVolumeClaim:
        """Update the phase of a claim, and the parts of its status that come from its volume. Return the claim."""
        status = _status(claim, phase, volume)
        if status == claim.status:
            return claim
        changed = msgspec.structs.replace(claim, status=status)
        return self._latest.record_claim(await self._client.update_status(PERSISTENT_VOLUME_CLAIMS, changed))

    async def put_volume_phase(self, volume: PersistentVolume, phase: str, message: str = "") -> PersistentVolume:
        """Update the phase of a volume. Return the volume."""
        if volume.status.phase == phase:
            return volume
        status = msgspec.structs.replace(volume.status, phase=phase, message=message)
        changed = msgspec.structs.replace(volume, status=status)
        return self._latest.record_volume(await self._client.update_status(PERSISTENT_VOLUMES, changed))

    async def bind(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        """Bind a volume and a claim to each other, the volume first. After an error the next reconciliation completes
        it.
        """
        bound = _volume_for(volume, claim)
        volume = bound if bound is volume else await self.put_volume(bound)
        volume = await self.put_volume_phase(volume, "Bound")
        desired = _claim_for(claim, volume)
        claim = desired if desired is claim else await self.put_claim(desired)
        await self.put_claim_phase(claim, "Bound", volume)

    async def unbind(self, volume: PersistentVolume) -> None:
        """Make a volume available again, for any claim or for the claim that its user reserved it for."""
        annotations, ref = volume.metadata.annotations, volume.spec.claim_ref
        if BOUND_BY_CONTROLLER in annotations:
            annotations = {key: value for key, value in annotations.items() if key != BOUND_BY_CONTROLLER}
            ref = None
        elif ref is not None:
            ref = msgspec.structs.replace(ref, uid="")
        spec = msgspec.structs.replace(volume.spec, claim_ref=ref)
        changed = msgspec.structs.replace(volume, metadata=_annotated(volume.metadata, annotations), spec=spec)
        await self.put_volume_phase(await self.put_volume(changed), "Available")


def _volume_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """Return a volume bound to a claim, the same object if it is bound already (GetBindVolumeToClaim)."""
    annotations, spec, ref = volume.metadata.annotations, volume.spec, volume.spec.claim_ref
    if not is_bound_to(volume, claim) and BOUND_BY_CONTROLLER not in annotations:
        annotations = {**annotations, BOUND_BY_CONTROLLER: _YES}
    named = None if ref is None else (ref.namespace, ref.name, ref.uid)
    if named != (claim.metadata.namespace, claim.metadata.name, claim.metadata.uid):
        spec = msgspec.structs.replace(spec, claim_ref=reference_to(claim))
    if annotations is volume.metadata.annotations and spec is volume.spec:
        return volume
    return msgspec.structs.replace(volume, metadata=_annotated(volume.metadata, annotations), spec=spec)


def _claim_for(claim: PersistentVolumeClaim, volume: PersistentVolume) -> PersistentVolumeClaim:
    """Return a claim bound to a volume, the same object if it is bound already."""
    annotations, spec = dict(claim.metadata.annotations), claim.spec
    if spec.volume_name != volume.metadata.name:
        spec = msgspec.structs.replace(spec, volume_name=volume.metadata.name)
        annotations.setdefault(BOUND_BY_CONTROLLER, _YES)
    annotations.setdefault(BIND_COMPLETED, _YES)
    if spec is claim.spec and annotations == claim.metadata.annotations:
        return claim
    return msgspec.structs.replace(claim, metadata=_annotated(claim.metadata, annotations), spec=spec)


def _status(claim: PersistentVolumeClaim, phase: str, volume: PersistentVolume | None) -> PersistentVolumeClaimStatus:
    """Return the status of a claim in a phase.

    Its capacity is taken from the volume only when the phase changes; later the component that expands the volume sets
    it.
    """
    old = claim.status
    if volume is None:
        return msgspec.structs.replace(
            old, phase=phase, access_modes=[], capacity={}, current_volume_attributes_class_name=None
        )
    status = msgspec.structs.replace(old, phase=phase, access_modes=list(volume.spec.access_modes))
    if old.phase != phase:
        status.capacity = _capacity(volume, old.capacity)
        if old.phase == "Pending" and phase == "Bound":
            status.current_volume_attributes_class_name = volume.spec.volume_attributes_class_name
    return status


def _capacity(volume: PersistentVolume, old: dict[str, str]) -> dict[str, str]:
    capacity = volume.spec.capacity
    if "storage" not in capacity:
        raise TryLater(f'PersistentVolume "{volume.metadata.name}" is without a storage capacity')
    before = volume.metadata.annotations.get(PRE_RESIZE_CAPACITY)
    if before is not None:
        try:
            return {**old, "storage": canonical(before)}
        except QuantityError:
            return {**old, "storage": capacity["storage"]}
    if "storage" in old and parse(old["storage"]) == parse(capacity["storage"]):
        return old
    return dict(capacity)


def _annotated(metadata: ObjectMeta, annotations: dict[str, str]) -> ObjectMeta:
    return msgspec.structs.replace(metadata, annotations=annotations)
