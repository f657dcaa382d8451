"""Controller of claims that request a larger volume (pkg/controller/volume/expand).

It only records events: the volume's driver expands the volume.
"""

from __future__ import annotations

from steersman.api.core.v1 import PersistentVolumeClaim
from steersman.client.events import reference
from steersman.client.informer import Key, key_of
from steersman.client.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.machinery.built_in.volumes import PRE_RESIZE_CAPACITY, storage_of
from steersman.machinery.values.quantity import Quantity, parse
from steersman.work.work_queue import TryLater


class VolumeExpander(Controller[Key]):
    """Records events about expansions. A key is the namespace and name of a claim.

    None of the plugins that are left in kube-controller-manager can expand volumes.
    """

    name = "persistentvolume-expander-controller"
    account = "expand-controller"
    component = "volume_expand"
    workers = 10

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._claims = self.informers.for_resource(PERSISTENT_VOLUME_CLAIMS)
        self._claims.on_change(self._changed)

    def _changed(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        if new is None or new.status.phase != "Bound":
            return
        if old is None or _requested(new) > _requested(old) or _capacity(new) > _capacity(old):
            self.queue.add(key_of(new))

    async def sync(self, key: Key) -> None:
        claim = self._claims.get(*key)
        if claim is None:
            return
        volume = await self.client.get(PERSISTENT_VOLUMES, claim.spec.volume_name)
        ref = volume.spec.claim_ref
        if ref is None or (ref.namespace, ref.uid) != (claim.metadata.namespace, claim.metadata.uid):
            raise TryLater(f"persistent Volume is not bound to PVC being updated : {'/'.join(key)}")
        if _requested(claim) > _capacity(claim) or PRE_RESIZE_CAPACITY in volume.metadata.annotations:
            about = reference(PERSISTENT_VOLUME_CLAIMS, claim)
            text = "waiting for an external controller to expand this PVC"
            self.recorder.event(about, "Normal", "ExternalExpanding", text)


def _requested(claim: PersistentVolumeClaim) -> Quantity:
    return parse(storage_of(claim.spec.resources.requests))


def _capacity(claim: PersistentVolumeClaim) -> Quantity:
    return parse(storage_of(claim.status.capacity))
