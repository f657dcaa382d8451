"""Desired attachments, derived from the pods, claims and volumes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final

from steersman.api.core.v1 import Node, PersistentVolume, PersistentVolumeClaim, Pod
from steersman.api.storage.v1 import CSIDriver, VolumeAttachment
from steersman.client.informer import Informer, Informers, key_of
from steersman.client.resources import (
    CSI_DRIVERS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    VOLUME_ATTACHMENTS,
)
from steersman.controllers.volumes.pods import add_claim_index, pods_of_claim
from steersman.machinery.built_in.csi import is_attached_first
from steersman.machinery.built_in.volumes import CONTROLLER_ATTACHES, claim_names, is_terminated

_BY_VOLUME: Final = "volume"
_BY_NODE: Final = "node"
_SHARED: Final = ("ReadWriteMany", "ReadOnlyMany")


class AttachmentInformers:
    """Informers of pods, claims, volumes, nodes, drivers and attachments, with queries."""

    def __init__(self, informers: Informers) -> None:
        self.pods: Final[Informer[Pod]] = informers.for_resource(PODS)
        self.claims: Final[Informer[PersistentVolumeClaim]] = informers.for_resource(PERSISTENT_VOLUME_CLAIMS)
        self.volumes: Final[Informer[PersistentVolume]] = informers.for_resource(PERSISTENT_VOLUMES)
        self.nodes: Final[Informer[Node]] = informers.for_resource(NODES)
        self.drivers: Final[Informer[CSIDriver]] = informers.for_resource(CSI_DRIVERS)
        self.attachments: Final[Informer[VolumeAttachment]] = informers.for_resource(VOLUME_ATTACHMENTS)
        add_claim_index(self.pods)
        self.attachments.add_index(_BY_VOLUME, lambda each: (volume_of(each),))
        self.attachments.add_index(_BY_NODE, lambda each: (each.spec.node_name,))

    def attachments_of(self, volume: str) -> Sequence[VolumeAttachment]:
        """Return the attachments of a volume."""
        return self.attachments.indexed(_BY_VOLUME, volume)

    def attachments_on(self, node: str) -> Sequence[VolumeAttachment]:
        """Return the attachments to a node."""
        return self.attachments.indexed(_BY_NODE, node)

    def volumes_of(self, pod: Pod) -> Iterator[str]:
        """Yield the names of the volumes that a pod uses."""
        for name in claim_names(pod):
            claim = self.claims.get(pod.metadata.namespace, name)
            if claim is not None and claim.spec.volume_name:
                yield claim.spec.volume_name

    def desired_nodes(self, volume: PersistentVolume) -> dict[str, list[Pod]]:
        """Return the nodes to which a volume should be attached, each with the pods there that use it."""
        ref, csi = volume.spec.claim_ref, volume.spec.csi
        if ref is None or csi is None or not is_attached_first(self.drivers.get("", csi.driver)):
            return {}
        claim = self.claims.get(ref.namespace, ref.name)
        if claim is None or claim.status.phase != "Bound" or claim.metadata.uid != ref.uid:
            return {}
        nodes: dict[str, list[Pod]] = {}
        if claim.spec.volume_name != volume.metadata.name:
            return nodes
        for pod in pods_of_claim(self.pods, key_of(claim)):
            node = self.nodes.get("", pod.spec.node_name) if pod.spec.node_name else None
            if node is not None and CONTROLLER_ATTACHES in node.metadata.annotations and not is_terminated(pod):
                nodes.setdefault(node.metadata.name, []).append(pod)
        return nodes


def volume_of(attachment: VolumeAttachment) -> str:
    """Return the name of the attached volume; "" for an inline volume."""
    return attachment.spec.source.persistent_volume_name or ""


def attachment_name(volume: PersistentVolume, node: str) -> str:
    """Return the name of the attachment of a CSI volume to a node."""
    csi = volume.spec.csi
    assert csi is not None
    return f"csi-{sha256(f'{csi.volume_handle}{csi.driver}{node}'.encode()).hexdigest()}"


def may_be_shared(volume: PersistentVolume) -> bool:
    """Return True if a volume can be attached to several nodes at once (IsMultiAttachAllowed)."""
    modes = volume.spec.access_modes
    return not modes or any(each in _SHARED for each in modes)
