"""Cached volumes and claims, with assumed versions until decided writes are done (assume caches)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from steersman.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from steersman.client.informer import Informer, Informers, Key
from steersman.client.resources import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
)
from steersman.machinery.built_in.classes import storage_class_of

_BY_CLASS = "storage class"
_BY_NODE = "node"


class VolumeStore:
    """Cached storage objects. An assumed object counts until the server reports a newer version."""

    def __init__(self, informers: Informers) -> None:
        self.volumes = informers.for_resource(PERSISTENT_VOLUMES)
        self.claims = informers.for_resource(PERSISTENT_VOLUME_CLAIMS)
        self.classes = informers.for_resource(STORAGE_CLASSES)
        self.csi_nodes = informers.for_resource(CSI_NODES)
        self.drivers = informers.for_resource(CSI_DRIVERS)
        self.capacities = informers.for_resource(CSI_STORAGE_CAPACITIES)
        self.attachments = informers.for_resource(VOLUME_ATTACHMENTS)
        self._volumes: dict[str, PersistentVolume] = {}
        self._claims: dict[Key, PersistentVolumeClaim] = {}
        self.volumes.add_index(_BY_CLASS, lambda volume: [storage_class_of(volume)])
        self.attachments.add_index(_BY_NODE, lambda attachment: [attachment.spec.node_name])
        self.volumes.on_change(self._volume_changed)
        self.claims.on_change(self._claim_changed)

        self.all: Final[Sequence[Informer[Any]]] = (
            self.volumes,
            self.claims,
            self.classes,
            self.csi_nodes,
            self.drivers,
            self.capacities,
            self.attachments,
        )

    async def synced(self) -> None:
        """Wait until all informers have synced."""
        for informer in self.all:
            await informer.wait_until_synced()

    def volume(self, name: str) -> PersistentVolume | None:
        """Return a volume by its name, or None."""
        return self._volumes.get(name) or self.volumes.get("", name)

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        """Return a claim by its namespace and name, or None."""
        return self._claims.get((namespace, name)) or self.claims.get(namespace, name)

    def volumes_of_class(self, name: str) -> Sequence[PersistentVolume]:
        """Return the volumes of a storage class."""
        return [self._volumes.get(each.metadata.name, each) for each in self.volumes.indexed(_BY_CLASS, name)]

    def attached(self, node_name: str) -> Iterator[tuple[str, str]]:
        """Yield driver and handle of the volumes that are attached to a node."""
        for each in self.attachments.indexed(_BY_NODE, node_name):
            name = each.spec.source.persistent_volume_name
            volume = None if name is None else self.volumes.get("", name)
            if volume is not None and volume.spec.csi is not None:
                yield each.spec.attacher, volume.spec.csi.volume_handle

    def assume_volume(self, volume: PersistentVolume) -> None:
        """Assume a version of a volume."""
        self._volumes[volume.metadata.name] = volume

    def assume_claim(self, claim: PersistentVolumeClaim) -> None:
        """Assume a version of a claim."""
        self._claims[claim.metadata.namespace, claim.metadata.name] = claim

    def restore_volume(self, name: str) -> None:
        """Drop the assumed version of a volume."""
        self._volumes.pop(name, None)

    def restore_claim(self, namespace: str, name: str) -> None:
        """Drop the assumed version of a claim."""
        self._claims.pop((namespace, name), None)

    def _volume_changed(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        changed = new or old
        if changed is not None and (new is None or _is_newer(new, self._volumes.get(new.metadata.name))):
            self._volumes.pop(changed.metadata.name, None)

    def _claim_changed(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        changed = new or old
        if changed is None:
            return
        key = changed.metadata.namespace, changed.metadata.name
        if new is None or _is_newer(new, self._claims.get(key)):
            self._claims.pop(key, None)


def _is_newer(
    new: PersistentVolume | PersistentVolumeClaim, assumed: PersistentVolume | PersistentVolumeClaim | None
) -> bool:
    return assumed is not None and int(new.metadata.resource_version) > int(assumed.metadata.resource_version)
