"""Controller that keeps deleted VolumeAttributesClasses while they are in use (pkg/controller/volume/vacprotection)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from steersman.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from steersman.api.storage.v1 import VolumeAttributesClass
from steersman.client.errors import ignoring, is_not_found
from steersman.client.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, VOLUME_ATTRIBUTES_CLASSES
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.controllers.volumes.protection import (
    is_deletion_candidate,
    needs_finalizer,
    needs_processing,
    with_finalizer,
    without_finalizer,
)
from steersman.machinery.built_in.volumes import ATTRIBUTES_CLASS_PROTECTION, attributes_class_of

_BY_CLASS: Final = "attributes class"


class AttributesClassProtection(Controller[str]):
    """Adds and removes the protection finalizer. A key is the name of a VolumeAttributesClass."""

    name = "volumeattributesclass-protection-controller"
    account = "volumeattributesclass-protection-controller"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._classes = self.informers.for_resource(VOLUME_ATTRIBUTES_CLASSES)
        self._claims = self.informers.for_resource(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = self.informers.for_resource(PERSISTENT_VOLUMES)
        self._claims.add_index(_BY_CLASS, _classes_of_claim)
        self._volumes.add_index(_BY_CLASS, _classes_of_volume)
        self._classes.on_change(self._class_changed)
        self._claims.on_change(self._claim_changed)
        self._volumes.on_change(self._volume_changed)

    def _class_changed(self, _: VolumeAttributesClass | None, new: VolumeAttributesClass | None) -> None:
        if new is not None and needs_processing(new, ATTRIBUTES_CLASS_PROTECTION):
            self.queue.add(new.metadata.name)

    def _claim_changed(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        if old is not None:
            self._enqueue_left(_classes_of_claim(old), () if new is None else _classes_of_claim(new))

    def _volume_changed(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        if old is not None:
            self._enqueue_left(_classes_of_volume(old), () if new is None else _classes_of_volume(new))

    def _enqueue_left(self, before: Iterable[str], after: Iterable[str]) -> None:
        for name in {*before} - {*after}:
            self.queue.add(name)

    async def sync(self, key: str) -> None:
        attributes_class = self._classes.get("", key)
        if attributes_class is None:
            return
        finalizer = ATTRIBUTES_CLASS_PROTECTION
        with ignoring(is_not_found):
            if needs_finalizer(attributes_class, finalizer):
                await self.client.update(VOLUME_ATTRIBUTES_CLASSES, with_finalizer(attributes_class, finalizer))
            elif is_deletion_candidate(attributes_class, finalizer) and not self._is_used(key):
                await self.client.update(VOLUME_ATTRIBUTES_CLASSES, without_finalizer(attributes_class, finalizer))

    def _is_used(self, name: str) -> bool:
        return bool(self._volumes.indexed(_BY_CLASS, name) or self._claims.indexed(_BY_CLASS, name))


def _classes_of_claim(claim: PersistentVolumeClaim) -> Iterable[str]:
    """Return the requested, the current and the target class of a claim."""
    modifying = claim.status.modify_volume_status
    names = (
        attributes_class_of(claim),
        claim.status.current_volume_attributes_class_name or "",
        "" if modifying is None else modifying.target_volume_attributes_class_name,
    )
    return {each for each in names if each}


def _classes_of_volume(volume: PersistentVolume) -> Iterable[str]:
    name = attributes_class_of(volume)
    return (name,) if name else ()
