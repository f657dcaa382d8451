"""Controller that binds claims to volumes, and reclaims volumes of deleted claims
(pkg/controller/volume/persistentvolume).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec

from steersman.api.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod
from steersman.api.storage.v1 import StorageClass
from steersman.client.events import reference
from steersman.client.informer import key_of
from steersman.client.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.controllers.volumes.binder.claims import ClaimSync
from steersman.controllers.volumes.binder.latest import LatestObjects
from steersman.controllers.volumes.binder.plugins import migrate
from steersman.controllers.volumes.binder.reclaiming import Reclaimer, with_required_finalizers
from steersman.controllers.volumes.binder.recycling import recycled_by
from steersman.controllers.volumes.binder.writing import Writer
from steersman.controllers.volumes.pods import add_claim_index
from steersman.machinery.built_in.classes import DEFAULT_STORAGE_CLASS, DefaultClass, storage_class_of
from steersman.machinery.built_in.volumes import BIND_COMPLETED, PROVISIONED_BY, mode_of
from steersman.machinery.errors.status import StatusError
from steersman.work.periodic import Periodic
from steersman.work.yielding import time_sliced

RESYNC: Final = 15.0
"""Seconds between two reconciliations of waiting claims and volumes (`--pvclaimbinder-sync-period`)."""
_WAITING: Final = "class of claims that wait"
_UNSETTLED: Final = "claims to be bound, volumes to be taken back"
_SOON: Final = 0.05
"""Seconds during which new volumes are collected before waiting claims are reconciled."""


Key = tuple[Literal["claim", "volume", "class"], str, str]


class PersistentVolumeBinder(Controller[Key]):
    """Binds claims and volumes. A key is a claim, a volume, or a storage class for all claims that wait for its
    volumes.
    """

    name = "persistentvolume-binder-controller"
    account = "persistent-volume-binder"
    component = "persistentvolume-controller"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._claims = self.informers.for_resource(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = self.informers.for_resource(PERSISTENT_VOLUMES)
        self._classes = self.informers.for_resource(STORAGE_CLASSES)
        self._pods = self.informers.for_resource(PODS)
        add_claim_index(self._pods)
        self._claims.add_index(_WAITING, _waiting)
        self._claims.add_index(_UNSETTLED, _unbound)
        self._volumes.add_index(_UNSETTLED, _unsettled)
        self._latest = LatestObjects(self._claims, self._volumes)
        self._writer = Writer(self.client, self._latest)
        self._reclaimer = Reclaimer(self.client, self._latest, self._writer, self.recorder)
        self._class_changes = 0
        default = DefaultClass(DEFAULT_STORAGE_CLASS, self._classes.list, lambda: self._class_changes)
        self._claim_sync = ClaimSync(self._latest, self._writer, self.recorder, self._classes, default, self._pods)
        self._claims.on_change(self._claim_changed)
        self._volumes.on_change(self._volume_changed)
        self._classes.on_change(self._class_changed)
        self._pods.on_change(self._pod_changed)

    def _claim_changed(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        self._latest.claim_changed(old, new)
        if new is not None:
            self.queue.add(("claim", *key_of(new)))
        elif old is not None and old.spec.volume_name:
            self.queue.add(("volume", "", old.spec.volume_name))

    def _volume_changed(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        self._latest.volume_changed(old, new)
        if new is not None:
            self.queue.add(("volume", "", new.metadata.name))
            if new.status.phase == "Available":
                self.queue.add_after(("class", "", storage_class_of(new)), _SOON)
        ref = None if (changed := new or old) is None else changed.spec.claim_ref
        if ref is not None and (new is None or (old is None and not ref.uid)):
            self.queue.add(("claim", ref.namespace, ref.name))

    def _class_changed(self, _: StorageClass | None, new: StorageClass | None) -> None:
        self._class_changes += 1
        if new is not None:
            self.queue.add(("class", "", new.metadata.name))
            self.queue.add(("class", "", ""))  # claims without a class: the class may be the default now

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        volume = "" if pod is None else recycled_by(pod)
        if volume:
            self.queue.add(("volume", "", volume))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            resync = Periodic(f"{self.name}: resync", self._resync, RESYNC, is_simulated=True)
            group.create_task(resync.run(), name=f"{self.name}: resync")
            group.create_task(super().run(), name=self.name)

    async def _resync(self) -> None:
        await self._enqueue_all("claim", self._claims.indexed(_UNSETTLED, ""))
        await self._enqueue_all("volume", self._volumes.indexed(_UNSETTLED, ""))

    async def _enqueue_all(
        self, kind: Literal["claim", "volume"], objects: Sequence[PersistentVolumeClaim | PersistentVolume]
    ) -> None:
        """Queue objects, in time slices."""
        async for each in time_sliced(objects):
            self.queue.add((kind, *key_of(each)))

    async def sync(self, key: Key) -> None:
        kind, namespace, name = key
        if kind == "class":
            await self._enqueue_all("claim", self._claims.indexed(_WAITING, name))
        elif kind == "claim":
            claim = self._latest.claim((namespace, name))
            if claim is not None:
                await self._claim_sync.sync(claim)
        else:
            volume = self._latest.volume(name)
            if volume is not None:
                await self._sync_volume(volume)

    async def _sync_volume(self, volume: PersistentVolume) -> None:
        annotations = migrate(volume.metadata.annotations, volume.metadata.annotations.get(PROVISIONED_BY))
        right = with_required_finalizers(volume)
        if annotations is not volume.metadata.annotations or right is not volume:
            metadata = msgspec.structs.replace(right.metadata, annotations=annotations)
            volume = await self._writer.put_volume(msgspec.structs.replace(right, metadata=metadata))
        ref = volume.spec.claim_ref
        if ref is None or not ref.uid:
            await self._writer.put_volume_phase(volume, "Available")
            return
        claim = await self._claim_of(volume)
        if claim is None:
            await self._release(volume)
        elif not claim.spec.volume_name:
            self._enqueue_reserved_claim(volume, claim)
        elif claim.spec.volume_name == volume.metadata.name:
            await self._writer.put_volume_phase(volume, "Bound")
        elif PROVISIONED_BY in volume.metadata.annotations and _is_to_be_deleted(volume):
            await self._release(volume)
        else:
            await self._writer.unbind(volume)

    async def _claim_of(self, volume: PersistentVolume) -> PersistentVolumeClaim | None:
        """Return the claim that a volume is bound to. If the known claim is missing or another one, it is read from the
        server.
        """
        ref = volume.spec.claim_ref
        assert ref is not None
        claim = self._latest.claim((ref.namespace, ref.name))
        settled = volume.status.phase in ("Released", "Failed")
        if (claim is None and not settled) or (claim is not None and claim.metadata.uid != ref.uid):
            try:
                claim = await self.client.get(PERSISTENT_VOLUME_CLAIMS, ref.name, ref.namespace)
            except StatusError as error:
                if error.code != 404:
                    raise
                return None
        return claim if claim is not None and claim.metadata.uid == ref.uid else None

    async def _release(self, volume: PersistentVolume) -> None:
        if volume.status.phase not in ("Released", "Failed"):
            volume = await self._writer.put_volume_phase(volume, "Released")
        await self._reclaimer.reclaim(volume)

    def _enqueue_reserved_claim(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        """Queue the claim that a volume is reserved for, or record an event if their volume modes differ."""
        if mode_of(volume) == mode_of(claim):
            self.queue.add(("claim", *key_of(claim)))
            return
        why = "due to incompatible volumeMode."
        self.recorder.event(
            reference(PERSISTENT_VOLUMES, volume),
            "Warning",
            "VolumeMismatch",
            f'Cannot bind PersistentVolume to requested PersistentVolumeClaim "{claim.metadata.name}" {why}',
        )
        self.recorder.event(
            reference(PERSISTENT_VOLUME_CLAIMS, claim),
            "Warning",
            "VolumeMismatch",
            f'Cannot bind PersistentVolume "{volume.metadata.name}" to requested PersistentVolumeClaim {why}',
        )


def _is_to_be_deleted(volume: PersistentVolume) -> bool:
    return volume.spec.persistent_volume_reclaim_policy == "Delete"


def _waiting(claim: PersistentVolumeClaim) -> Iterable[str]:
    return () if claim.spec.volume_name or BIND_COMPLETED in claim.metadata.annotations else (storage_class_of(claim),)


def _unbound(claim: PersistentVolumeClaim) -> Iterable[str]:
    return () if BIND_COMPLETED in claim.metadata.annotations else ("",)


def _unsettled(volume: PersistentVolume) -> Iterable[str]:
    return ("",) if volume.status.phase in ("Released", "Failed") else ()
