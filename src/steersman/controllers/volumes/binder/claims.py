"""Reconciliation of one claim."""

from __future__ import annotations

from typing import Final

import msgspec

from steersman.api.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod
from steersman.api.storage.v1 import StorageClass
from steersman.client.events import Recorder, reference
from steersman.client.informer import Informer, key_of
from steersman.client.resources import PERSISTENT_VOLUME_CLAIMS
from steersman.controllers.volumes.binder.latest import LatestObjects
from steersman.controllers.volumes.binder.matching import unsuitable
from steersman.controllers.volumes.binder.plugins import NoPlugin, migrate, provisioner_for, refusal_of
from steersman.controllers.volumes.binder.writing import Writer
from steersman.controllers.volumes.pods import pods_of_claim
from steersman.machinery.built_in.classes import STORAGE_CLASS, DefaultClass, storage_class_of
from steersman.machinery.built_in.volumes import (
    BETA_STORAGE_PROVISIONER,
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    WAIT_FOR_FIRST_CONSUMER,
    is_bound_to,
    is_terminated,
)
from steersman.machinery.selectors.labels import SelectorError
from steersman.work.work_queue import TryLater

_NO_VOLUME: Final = "no persistent volumes available for this claim and no storage class is set"
_LOST_REFERENCE: Final = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
_LOST_VOLUME: Final = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
_MISBOUND: Final = "Two claims are bound to the same volume, this one is bound incorrectly"


class ClaimSync:
    """Reconciles claims. All methods raise StatusError, Unreachable, TryLater."""

    def __init__(
        self,
        latest: LatestObjects,
        writer: Writer,
        recorder: Recorder,
        classes: Informer[StorageClass],
        default: DefaultClass,
        pods: Informer[Pod],
    ) -> None:
        self._latest = latest
        self._writer = writer
        self._recorder = recorder
        self._classes = classes
        self._default = default
        self._pods = pods
        self._binding: set[str] = set()
        """Volumes that are being bound at the moment."""

    async def sync(self, claim: PersistentVolumeClaim) -> None:
        """Reconcile a claim."""
        annotations = claim.metadata.annotations
        provisioner = annotations.get(STORAGE_PROVISIONER, annotations.get(BETA_STORAGE_PROVISIONER))
        migrated = migrate(annotations, provisioner)
        if migrated is not annotations:
            claim = await self._writer.put_claim(_annotated(claim, migrated))
        if BIND_COMPLETED in claim.metadata.annotations:
            await self._sync_bound(claim)
        elif claim.spec.volume_name:
            await self._sync_named(claim)
        else:
            await self._sync_unbound(claim)

    def _record_event(self, claim: PersistentVolumeClaim, type_: str, reason: str, message: str) -> None:
        self._recorder.event(reference(PERSISTENT_VOLUME_CLAIMS, claim), type_, reason, message)

    async def _bind(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        name = volume.metadata.name
        if name in self._binding:
            raise TryLater(f"volume {name} is being bound")
        self._binding.add(name)
        try:
            await self._writer.bind(volume, claim)
        finally:
            self._binding.discard(name)

    # Claims that have been bound before

    async def _sync_bound(self, claim: PersistentVolumeClaim) -> None:
        name = claim.spec.volume_name
        if not name:
            await self._lose(claim, "ClaimLost", _LOST_REFERENCE)
            return
        volume = self._latest.volume(name)
        if volume is None:
            await self._lose(claim, "ClaimLost", _LOST_VOLUME)
        elif volume.spec.claim_ref is None or volume.spec.claim_ref.uid == claim.metadata.uid:
            await self._bind(volume, claim)
        else:
            await self._lose(claim, "ClaimMisbound", _MISBOUND)

    async def _lose(self, claim: PersistentVolumeClaim, reason: str, message: str) -> None:
        if claim.status.phase != "Lost":
            lost = await self._writer.put_claim_phase(claim, "Lost")
            self._record_event(lost, "Warning", reason, message)

    # Unbound claims that name a volume

    async def _sync_named(self, claim: PersistentVolumeClaim) -> None:
        name = claim.spec.volume_name
        volume = self._latest.volume(name)
        if volume is None:
            await self._writer.put_claim_phase(claim, "Pending")
        elif volume.spec.claim_ref is None:
            why = unsuitable(volume, claim)
            if why:
                self._record_event(
                    claim, "Warning", "VolumeMismatch", f'Cannot bind to requested volume "{name}": {why}'
                )
                await self._writer.put_claim_phase(claim, "Pending")
            else:
                await self._bind(volume, claim)
        elif is_bound_to(volume, claim):
            await self._bind(volume, claim)
        else:
            self._record_event(
                claim, "Warning", "FailedBinding", f'volume "{name}" already bound to a different claim.'
            )
            if BOUND_BY_CONTROLLER in claim.metadata.annotations:
                raise TryLater(f"invalid binding of claim {key_of(claim)} to volume {name}: volume already claimed")
            await self._writer.put_claim_phase(claim, "Pending")

    # Unbound claims that name no volume

    async def _sync_unbound(self, claim: PersistentVolumeClaim) -> None:
        name = storage_class_of(claim)
        storage_class = self._classes.get("", name) if name else None
        delayed = storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
        try:
            volume = await self._latest.available.match(claim, delayed=delayed)
        except SelectorError as error:
            raise TryLater(str(error)) from None
        if volume is not None:
            await self._bind(volume, claim)
        elif await self._set_default_class(claim):
            return
        elif delayed and SELECTED_NODE not in claim.metadata.annotations:
            self._record_wait(claim)
            await self._writer.put_claim_phase(claim, "Pending")
        elif name:
            await self._request_volume(claim, name, storage_class)
        else:
            self._record_event(claim, "Normal", "FailedBinding", _NO_VOLUME)
            await self._writer.put_claim_phase(claim, "Pending")

    async def _set_default_class(self, claim: PersistentVolumeClaim) -> bool:
        """Set the default class of a claim without a class, if there is one now. Return True if it was set."""
        if STORAGE_CLASS in claim.metadata.annotations or claim.spec.storage_class_name is not None:
            return False
        name = self._default.name()
        if name is None:
            return False
        spec = msgspec.structs.replace(claim.spec, storage_class_name=name)
        await self._writer.put_claim(msgspec.structs.replace(claim, spec=spec))
        return True

    def _record_wait(self, claim: PersistentVolumeClaim) -> None:
        waiting = [
            each.metadata.name
            for each in pods_of_claim(self._pods, key_of(claim))
            if not each.spec.node_name and not is_terminated(each)
        ]
        if not waiting:
            text = "waiting for first consumer to be created before binding"
            self._record_event(claim, "Normal", "WaitForFirstConsumer", text)
            return
        pods = f"pods {','.join(waiting)}" if len(waiting) > 1 else f"pod {waiting[0]}"
        self._record_event(claim, "Normal", "WaitForPodScheduled", f"waiting for {pods} to be scheduled")

    async def _request_volume(
        self, claim: PersistentVolumeClaim, name: str, storage_class: StorageClass | None
    ) -> None:
        """Annotate a claim with the provisioner that is to create its volume."""
        try:
            if storage_class is None:
                raise NoPlugin(f'storageclass.storage.k8s.io "{name}" not found')
            provisioner = provisioner_for(storage_class.provisioner)
        except NoPlugin as error:
            self._record_event(claim, "Warning", "ProvisioningFailed", str(error))
            return
        annotations = claim.metadata.annotations
        if annotations.get(STORAGE_PROVISIONER) != provisioner:
            desired = {**annotations, BETA_STORAGE_PROVISIONER: provisioner, STORAGE_PROVISIONER: provisioner}
            claim = await self._writer.put_claim(_annotated(claim, migrate(desired, provisioner)))
        refusal = refusal_of(provisioner)
        if refusal:
            self._record_event(claim, "Warning", "ProvisioningFailed", refusal)
            return
        self._record_event(
            claim,
            "Normal",
            "ExternalProvisioning",
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
            "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
            "correctly registered.",
        )


def _annotated(claim: PersistentVolumeClaim, annotations: dict[str, str]) -> PersistentVolumeClaim:
    return msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, annotations=annotations))
