"""Volumes, claims and pods: their bindings, and the annotations and finalizers that components share.

Follows k8s.io/component-helpers `storage`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.core import v1 as core
from steersman.machinery.built_in.node_affinity import node_selector
from steersman.machinery.built_in.pod_state import is_terminal
from steersman.machinery.selectors.labels import Labels

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
STORAGE_PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER: Final = "volume.beta.kubernetes.io/storage-provisioner"
PRE_RESIZE_CAPACITY: Final = "volume.alpha.kubernetes.io/pre-resize-capacity"
"""The annotation with a volume's capacity before its expansion, until the node has expanded the file system."""
CONTROLLER_ATTACHES: Final = "volumes.kubernetes.io/controller-managed-attach-detach"
"""The annotation of nodes whose volumes the attach-detach controller attaches."""

CLAIM_PROTECTION: Final = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION: Final = "kubernetes.io/pv-protection"
ATTRIBUTES_CLASS_PROTECTION: Final = "kubernetes.io/vac-protection"
PROVISIONER_FINALIZER: Final = "external-provisioner.volume.kubernetes.io/finalizer"

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
_FILE_SYSTEM: Final = "Filesystem"


def claim_name(pod: core.Pod, volume: core.Volume) -> str:
    """Return the name of the claim of a pod's volume, "" if the volume has none."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else ""


def claim_names(pod: core.Pod) -> Iterator[str]:
    """Yield the names of the claims of a pod, in the order of its volumes."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None or volume.ephemeral is not None:
            yield claim_name(pod, volume)


def is_made_for(claim: core.PersistentVolumeClaim, pod: core.Pod) -> bool:
    """Return True if a claim was created for an ephemeral volume of this pod."""
    return any(each.controller and each.uid == pod.metadata.uid for each in claim.metadata.owner_references)


def is_bound_to(volume: core.PersistentVolume, claim: core.PersistentVolumeClaim) -> bool:
    """Return True if a volume's claimRef is this claim, whoever set it."""
    ref = volume.spec.claim_ref
    if ref is None or (ref.namespace, ref.name) != (claim.metadata.namespace, claim.metadata.name):
        return False
    return not ref.uid or ref.uid == claim.metadata.uid


def is_fully_bound(claim: core.PersistentVolumeClaim) -> bool:
    """Return True if a claim and its volume refer to each other."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def reference_to(claim: core.PersistentVolumeClaim) -> core.ObjectReference:
    """Return the claimRef of a volume bound to a claim."""
    metadata = claim.metadata
    return core.ObjectReference(
        kind="PersistentVolumeClaim",
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        api_version="v1",
        resource_version=metadata.resource_version,
    )


def mode_of(obj: core.PersistentVolume | core.PersistentVolumeClaim) -> str:
    """Return the volume mode: Filesystem or Block."""
    return obj.spec.volume_mode or _FILE_SYSTEM


def attributes_class_of(obj: core.PersistentVolume | core.PersistentVolumeClaim) -> str:
    """Return the VolumeAttributesClass of a claim or volume, "" if it names none."""
    return obj.spec.volume_attributes_class_name or ""


def allows(volume: core.PersistentVolume, node_name: str, labels: Labels) -> bool:
    """Return True if a volume's node affinity allows a node."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return node_selector(affinity.required)(node_name, labels)


def storage_of(amounts: dict[str, str]) -> str:
    """Return the storage in a list of resources, "0" if it has none."""
    return amounts.get("storage", "0")


def is_terminated(pod: core.Pod) -> bool:
    """Return True if no container of a pod runs any more (pkg/volume/util IsPodTerminated)."""
    status = pod.status
    if is_terminal(pod):
        return True
    return pod.metadata.deletion_timestamp is not None and not any(
        each.state.terminated is None and each.state.waiting is None
        for each in (*status.init_container_statuses, *status.container_statuses, *status.ephemeral_container_statuses)
    )
