"""Limits of a kubelet's writes to pods: mirrors of its own static pods, and the status of pods on its node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from steersman.api.core.v1 import Pod, PodExtendedResourceClaimStatus, Volume, VolumeProjection
from steersman.machinery.built_in.pod_resources import all_containers
from steersman.machinery.built_in.pod_secrets import secret_names
from steersman.machinery.errors.field import quote

_MIRROR: Final = "kubernetes.io/config.mirror"
_HARMLESS: Final = (
    "aws_elastic_block_store",
    "azure_disk",
    "cephfs",
    "cinder",
    "downward_api",
    "empty_dir",
    "fc",
    "flex_volume",
    "flocker",
    "gce_persistent_disk",
    "git_repo",
    "host_path",
    "image",
    "iscsi",
    "nfs",
    "photon_persistent_disk",
    "portworx_volume",
    "quobyte",
    "rbd",
    "scale_io",
    "storageos",
    "vsphere_volume",
)
"""Volume sources that refer to no API objects."""
_NAMING: Final = (
    ("config_map", "configmaps (via configmap volumes)"),
    ("secret", "secrets (via secret volumes)"),
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistent_volume_claim", "persistentvolumeclaims"),
    ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
    ("azure_file", "secrets (via azureFile volumes)"),
)
_PROJECTED: Final = (
    ("config_map", "configmaps (via projected volumes)"),
    ("secret", "secrets (via projected volumes)"),
    ("service_account_token", "serviceaccounts (via projected volumes)"),
    ("cluster_trust_bundle", "clustertrustbundles"),
    ("pod_certificate", "podcertificates"),
)


class HostedPod(NamedTuple):
    """The uid of a pod and the name of its node."""

    uid: str
    node: str


def hosted_pod(pod: Any) -> HostedPod:
    """Return a pod's uid and node."""
    return HostedPod(pod.metadata.uid, pod.spec.node_name)


def forbidden_in_mirror_pod(node: str, pod: Pod, uid_of: Callable[[str], str]) -> str:
    """Return the reason why a node may not create this pod; "" if it may.

    `uid_of` returns the uid of a Node, and may raise StatusError.
    """
    shown = quote(node)
    if _MIRROR not in pod.metadata.annotations:
        return f"pod does not have {quote(_MIRROR)} annotation, node {shown} can only create mirror pods"
    if pod.spec.node_name != node:
        return f"node {shown} can only create pods with spec.nodeName set to itself"
    owners = pod.metadata.owner_references
    if len(owners) > 1:
        return f"node {shown} can only create pods with a single owner reference set to itself"
    owner = owners[0] if owners else None
    if owner is None or (owner.api_version, owner.kind, owner.name) != ("v1", "Node", node):
        return f"node {shown} can only create pods with an owner reference set to itself"
    if not owner.controller:
        return f"node {shown} can only create pods with a controller owner reference set to itself"
    if owner.block_owner_deletion:
        return f"node {shown} must not set blockOwnerDeletion on an owner reference"
    uid = uid_of(node)
    if owner.uid != uid:
        return f"node {node} UID mismatch: expected {owner.uid} got {uid}"
    return ""


def forbidden_in_spec_of_mirror_pod(node: str, pod: Pod) -> str:
    """Return the reason why a node may not create a pod with this spec; "" if it may. The time grows with the pod's
    size.
    """
    try:
        named = _named_objects(pod)
    except ValueError as error:
        return f"error checking mirror pod for API references: {error}"
    return f"node {quote(node)} can not create pods that reference {named}" if named else ""


def forbidden_in_status(node: str, old: Pod, new: Pod) -> str:
    """Return the reason why a node may not make this update of a pod's status; "" if it may."""
    shown = quote(node)
    if old.spec.node_name != node:
        return f"node {shown} can only update pod status for pods with spec.nodeName set to itself"
    if old.metadata.labels != new.metadata.labels:
        return f"node {shown} cannot update labels through pod status"
    before, after = (
        [(each.name, each.resource_claim_name) for each in pod.status.resource_claim_statuses] for pod in (old, new)
    )
    if before != after:
        return f"node {shown} cannot update resource claim statues"
    extended = old.status.extended_resource_claim_status, new.status.extended_resource_claim_status
    if _comparable_status(extended[0]) != _comparable_status(extended[1]):
        return f"node {shown} cannot update extended resource claim status"
    return ""


def _comparable_status(status: PodExtendedResourceClaimStatus | None) -> object:
    return None if status is None else (status.resource_claim_name, status.request_mappings or [])


def _named_objects(pod: Pod) -> str:
    """Return the kind of API objects that a pod refers to; "" for none. Raises ValueError for an unknown volume type."""
    spec = pod.spec
    if spec.service_account_name:
        return "serviceaccounts"
    if any(secret_names(spec)):
        return "secrets"
    if any(
        each.config_map_ref is not None and each.config_map_ref.name
        for container in all_containers(spec)
        for each in container.env_from
    ) or any(
        variable.value_from is not None
        and variable.value_from.config_map_key_ref is not None
        and variable.value_from.config_map_key_ref.name
        for container in all_containers(spec)
        for variable in container.env
    ):
        return "configmaps"
    if any(_config_map_names(volume) for volume in spec.volumes):
        return "configmaps"
    if spec.resource_claims:
        return "resourceclaims"
    return next(filter(None, map(_named_by_volume, spec.volumes)), "")


def _config_map_names(volume: Volume) -> bool:
    if volume.projected is not None:
        return any(each.config_map is not None and each.config_map.name for each in volume.projected.sources or ())
    return volume.config_map is not None and bool(volume.config_map.name)


def _named_by_volume(volume: Volume) -> str:
    if any(getattr(volume, each) is not None for each in _HARMLESS):
        return ""
    for source, what in _NAMING:
        if getattr(volume, source) is not None:
            return what
    if volume.projected is None:
        raise ValueError(f"unknown volume type for volume  {quote(volume.name)}")
    return next(filter(None, (_named_by_source(volume, each) for each in volume.projected.sources or ())), "")


def _named_by_source(volume: Volume, source: VolumeProjection) -> str:
    for member, what in _PROJECTED:
        if getattr(source, member) is not None:
            return what
    if source.downward_api is None:
        raise ValueError(f"unknown source for projected volume {quote(volume.name)}")
    return ""
