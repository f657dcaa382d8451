"""Reclaiming of volumes whose claims are gone."""

from __future__ import annotations

from typing import Final

import msgspec

from steersman.api.core.v1 import PersistentVolume
from steersman.client.client import Client
from steersman.client.errors import ignoring, is_not_found
from steersman.client.events import Recorder, reference
from steersman.client.resources import PERSISTENT_VOLUMES
from steersman.controllers.volumes.binder.latest import LatestObjects
from steersman.controllers.volumes.binder.plugins import (
    MIGRATED_TO,
    NoPlugin,
    check_deletable,
    driver_of,
    is_deleted_here,
)
from steersman.controllers.volumes.binder.recycling import Recycler
from steersman.controllers.volumes.binder.writing import Writer
from steersman.machinery.built_in.volumes import PROVISIONED_BY, PROVISIONER_FINALIZER

IN_TREE_FINALIZER: Final = "kubernetes.io/pv-controller"
"""Finalizer of volumes of in-tree plugins, which keeps them until their storage is deleted."""


class Reclaimer:
    """Retains, deletes or recycles volumes by their reclaim policy. Its methods raise StatusError, Unreachable."""

    def __init__(self, client: Client, latest: LatestObjects, writer: Writer, recorder: Recorder) -> None:
        self._client = client
        self._latest = latest
        self._writer = writer
        self._recorder = recorder
        self._recycler = Recycler(client)

    async def reclaim(self, volume: PersistentVolume) -> None:
        """Apply the reclaim policy of a released volume."""
        if volume.metadata.annotations.get(MIGRATED_TO):
            return
        policy = volume.spec.persistent_volume_reclaim_policy
        if policy == "Delete":
            await self._delete(volume)
        elif policy == "Recycle":
            await self._recycle(volume)
        elif policy != "Retain":
            text = "Volume has unrecognized PersistentVolumeReclaimPolicy"
            await self._fail(volume, "VolumeUnknownReclaimPolicy", text)

    async def _fail(self, volume: PersistentVolume, reason: str, text: str) -> None:
        if volume.status.phase != "Failed":
            failed = await self._writer.put_volume_phase(volume, "Failed", text)
            self._recorder.event(reference(PERSISTENT_VOLUMES, failed), "Warning", reason, text)

    async def _delete(self, volume: PersistentVolume) -> None:
        try:
            if not is_deleted_here(volume):
                return
            current = await self._released(volume)
            if current is None:
                return
            check_deletable(current)
        except NoPlugin as error:
            await self._fail(volume, "VolumeFailedDelete", str(error))
            return
        if IN_TREE_FINALIZER in current.metadata.finalizers:
            finalizers = [each for each in current.metadata.finalizers if each != IN_TREE_FINALIZER]
            current = await self._writer.put_volume(_with_finalizers(current, finalizers))
        with ignoring(is_not_found):
            await self._client.delete(PERSISTENT_VOLUMES, volume.metadata.name)

    async def _recycle(self, volume: PersistentVolume) -> None:
        current = await self._released(volume)
        if current is None:
            return
        try:
            done = await self._recycler.recycle(current)
        except NoPlugin as error:
            await self._fail(current, "VolumeFailedRecycle", str(error))
            return
        if done:
            about = reference(PERSISTENT_VOLUMES, current)
            self._recorder.event(about, "Normal", "VolumeRecycled", "Volume recycled")
            await self._writer.unbind(current)

    async def _released(self, volume: PersistentVolume) -> PersistentVolume | None:
        """Return the current volume if it is still to be reclaimed, else None."""
        current = await self._client.find(PERSISTENT_VOLUMES, volume.metadata.name)
        if current is None:
            return None
        ref = current.spec.claim_ref
        if ref is None or not ref.uid:
            return None
        claim = self._latest.claim((ref.namespace, ref.name))
        if claim is not None and claim.metadata.uid == ref.uid and claim.spec.volume_name in ("", volume.metadata.name):
            return None
        return current


def with_required_finalizers(volume: PersistentVolume) -> PersistentVolume:
    """Return a volume with the finalizers required by its plugin and policy, the same object if it has them."""
    finalizers = volume.metadata.finalizers
    provisioner = volume.metadata.annotations.get(PROVISIONED_BY, "")
    if driver_of(provisioner):
        required = [each for each in finalizers if each != IN_TREE_FINALIZER]
    elif provisioner.startswith("kubernetes.io/"):
        required = [each for each in finalizers if each not in (IN_TREE_FINALIZER, PROVISIONER_FINALIZER)]
        if volume.spec.persistent_volume_reclaim_policy == "Delete":
            required.append(IN_TREE_FINALIZER)
    else:
        return volume
    return volume if sorted(required) == sorted(finalizers) else _with_finalizers(volume, required)


def _with_finalizers(volume: PersistentVolume, finalizers: list[str]) -> PersistentVolume:
    return msgspec.structs.replace(volume, metadata=msgspec.structs.replace(volume.metadata, finalizers=finalizers))
