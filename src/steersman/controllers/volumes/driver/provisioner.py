"""Provisioner of the driver: it creates volumes for claims, and deletes released ones (the task of
external-provisioner).
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from steersman.api.core.v1 import (
    CSIPersistentVolumeSource,
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    VolumeNodeAffinity,
)
from steersman.api.meta.v1 import ObjectMeta
from steersman.api.storage.v1 import StorageClass, VolumeAttachment
from steersman.client.errors import ignoring, is_already_exists, is_not_found
from steersman.client.events import reference
from steersman.client.informer import Key as ObjectKey
from steersman.client.informer import key_of
from steersman.client.resources import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
)
from steersman.controllers.controller import ControllerDependencies
from steersman.controllers.volumes.driver.component import DriverComponent
from steersman.controllers.volumes.driver.objects import DRIVER
from steersman.machinery.built_in.classes import storage_class_of
from steersman.machinery.built_in.volumes import (
    PROVISIONED_BY,
    PROVISIONER_FINALIZER,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    WAIT_FOR_FIRST_CONSUMER,
    mode_of,
    reference_to,
    storage_of,
)

_IDENTITY: Final = "storage.kubernetes.io/csiProvisionerIdentity"
_DELETION_SECRET: Final = "volume.kubernetes.io/provisioner-deletion-secret-"
_BY_VOLUME: Final = "volume"
Key = tuple[Literal["claim", "volume"], ObjectKey]


class Provisioner(DriverComponent[Key]):
    """Creates and deletes volumes. A key is a claim that may need a volume, or a volume that may have to be deleted."""

    name = "volume-driver-provisioner"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._claims = self.informers.for_resource(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = self.informers.for_resource(PERSISTENT_VOLUMES)
        self._classes = self.informers.for_resource(STORAGE_CLASSES)
        self._nodes = self.informers.for_resource(NODES)
        self._attachments = self.informers.for_resource(VOLUME_ATTACHMENTS)
        self._attachments.add_index(_BY_VOLUME, lambda each: (each.spec.source.persistent_volume_name or "",))
        self._claims.on_change(self._claim_changed)
        self._volumes.on_change(self._volume_changed)
        self._attachments.on_change(self._attachment_changed)

    def _claim_changed(self, _: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        if new is not None and not new.spec.volume_name and _is_for_driver(new):
            self.queue.add(("claim", key_of(new)))

    def _volume_changed(self, _: PersistentVolume | None, new: PersistentVolume | None) -> None:
        if new is not None and _is_deletable(new):
            self.queue.add(("volume", key_of(new)))

    def _attachment_changed(self, old: VolumeAttachment | None, new: VolumeAttachment | None) -> None:
        if new is None and old is not None and old.spec.source.persistent_volume_name:
            self.queue.add(("volume", ("", old.spec.source.persistent_volume_name)))

    async def sync(self, key: Key) -> None:
        kind, (namespace, name) = key
        if kind == "claim":
            claim = self._claims.get(namespace, name)
            if claim is not None and not claim.spec.volume_name and not claim.metadata.deletion_timestamp:
                await self._provide(claim)
            return
        volume = self._volumes.get("", name)
        if volume is not None and _is_deletable(volume):
            await self._delete(volume)

    async def _provide(self, claim: PersistentVolumeClaim) -> None:
        storage_class = self._classes.get("", storage_class_of(claim))
        if storage_class is None or storage_class.provisioner != DRIVER:
            return
        selected = claim.metadata.annotations.get(SELECTED_NODE)
        if selected is None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
            return
        if self._volumes.get("", _name(claim)) is not None:
            return
        about = reference(PERSISTENT_VOLUME_CLAIMS, claim)
        whose = f'"{claim.metadata.namespace}/{claim.metadata.name}"'
        text = f"External provisioner is provisioning volume for claim {whose}"
        self.recorder.event(about, "Normal", "Provisioning", text)
        node = None if selected is None else self._nodes.get("", selected)
        with ignoring(is_already_exists):
            await self.client.create(PERSISTENT_VOLUMES, _volume(claim, storage_class, node))
        text = f"Successfully provisioned volume {_name(claim)}"
        self.recorder.event(about, "Normal", "ProvisioningSucceeded", text)

    async def _delete(self, volume: PersistentVolume) -> None:
        name = volume.metadata.name
        if self._attachments.indexed(_BY_VOLUME, name):
            return
        with ignoring(is_not_found):
            if not volume.metadata.deletion_timestamp:
                await self.client.delete(PERSISTENT_VOLUMES, name)
                return  # the change of the deleted volume queues it again, to remove the finalizer
            finalizers = [each for each in volume.metadata.finalizers if each != PROVISIONER_FINALIZER]
            metadata = msgspec.structs.replace(volume.metadata, finalizers=finalizers)
            await self.client.update(PERSISTENT_VOLUMES, msgspec.structs.replace(volume, metadata=metadata))


def _is_for_driver(claim: PersistentVolumeClaim) -> bool:
    return claim.metadata.annotations.get(STORAGE_PROVISIONER) == DRIVER


def _is_deletable(volume: PersistentVolume) -> bool:
    """Return True if a volume of the driver is to be deleted, or is being deleted and has only the driver's finalizer."""
    if volume.metadata.annotations.get(PROVISIONED_BY) != DRIVER:
        return False
    if volume.metadata.deletion_timestamp:
        return volume.status.phase != "Bound" and PROVISIONER_FINALIZER in volume.metadata.finalizers
    return volume.status.phase == "Released" and volume.spec.persistent_volume_reclaim_policy == "Delete"


def _name(claim: PersistentVolumeClaim) -> str:
    return f"pvc-{claim.metadata.uid}"


def _volume(claim: PersistentVolumeClaim, storage_class: StorageClass, node: Node | None) -> PersistentVolume:
    """Return the volume for a claim, accessible from `node` if the claim's pod is scheduled already."""
    name, mode = _name(claim), mode_of(claim)
    return PersistentVolume(
        metadata=ObjectMeta(
            name=name,
            finalizers=[PROVISIONER_FINALIZER],
            annotations={PROVISIONED_BY: DRIVER, f"{_DELETION_SECRET}name": "", f"{_DELETION_SECRET}namespace": ""},
        ),
        spec=PersistentVolumeSpec(
            access_modes=list(claim.spec.access_modes),
            capacity={"storage": storage_of(claim.spec.resources.requests)},
            claim_ref=reference_to(claim),
            csi=CSIPersistentVolumeSource(
                driver=DRIVER,
                volume_handle=name,
                fs_type="ext4" if mode == "Filesystem" else "",
                volume_attributes={_IDENTITY: DRIVER, **storage_class.parameters},
            ),
            mount_options=list(storage_class.mount_options),
            node_affinity=_affinity(storage_class, node),
            persistent_volume_reclaim_policy=storage_class.reclaim_policy or "Delete",
            storage_class_name=storage_class.metadata.name,
            volume_attributes_class_name=claim.spec.volume_attributes_class_name,
            volume_mode=mode,
        ),
    )


def _affinity(storage_class: StorageClass, node: Node | None) -> VolumeNodeAffinity | None:
    """Return the topology of a volume: that of the node, or without a node the first allowed one; None without
    topologies.
    """
    if not storage_class.allowed_topologies:
        return None
    labels = {} if node is None else node.metadata.labels
    for term in storage_class.allowed_topologies:
        expressions = term.match_label_expressions
        chosen = {
            each.key: labels.get(each.key, "") if node is not None else (each.values or [""])[0] for each in expressions
        }
        if all(chosen[each.key] in (each.values or ()) for each in expressions):
            requirements = [
                NodeSelectorRequirement(key=key, operator="In", values=[chosen[key]]) for key in sorted(chosen)
            ]
            terms = [NodeSelectorTerm(match_expressions=requirements)]
            return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))
    return None
