"""References of stored pods and volumes to other objects. Decodes only the members that hold references.

Follows kubernetes `pkg/api/v1/pod` (VisitPodSecretNames, VisitPodConfigmapNames) and `pkg/api/v1/persistentvolume`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from sys import intern
from typing import Final, NamedTuple

import msgspec

SECRET: Final = "secret"
CONFIG_MAP: Final = "configmap"
CLAIM: Final = "pvc"
SERVICE_ACCOUNT: Final = "serviceAccount"
RESOURCE_CLAIM: Final = "resourceclaim"

_MIRROR: Final = "kubernetes.io/config.mirror"

Reference = tuple[str, str]
"""Kind and name of an object in the pod's namespace."""


class PodReferences(NamedTuple):
    """The node of a pod ("" for none), and the distinct objects that this node may read because of the pod."""

    node: str
    references: tuple[Reference, ...]
    final_uid: str = ""
    """The pod's uid if its references can no longer change; otherwise ""."""


class VolumeReferences(NamedTuple):
    """The claim of a volume, and the secrets that nodes need for the volume; all as (namespace, name)."""

    claim: tuple[str, str] | None
    secrets: tuple[tuple[str, str], ...]


class _Part(msgspec.Struct, rename="camel", gc=False):
    """Part of an object; decoding skips all other members."""


class _Named(_Part):
    name: str = ""


class _WithSecret(_Part):
    secret_ref: _Named | None = None


class _EnvFrom(_WithSecret):
    config_map_ref: _Named | None = None


class _ValueFrom(_Part):
    secret_key_ref: _Named | None = None
    config_map_key_ref: _Named | None = None


class _Env(_Part):
    value_from: _ValueFrom | None = None


class _Container(_Part):
    env: list[_Env] = []
    env_from: list[_EnvFrom] = []


class _SecretVolume(_Part):
    secret_name: str = ""


class _Source(_Part):
    secret: _Named | None = None
    config_map: _Named | None = None


class _Projected(_Part):
    sources: list[_Source] | None = None


class _Ephemeral(_Part):
    """Ephemeral volume; its claim is named after the pod and the volume."""


class _ClaimVolume(_Part):
    claim_name: str = ""


class _CSIVolume(_Part):
    node_publish_secret_ref: _Named | None = None


class _Volume(_Part):
    name: str = ""
    secret: _SecretVolume | None = None
    config_map: _Named | None = None
    projected: _Projected | None = None
    persistent_volume_claim: _ClaimVolume | None = None
    ephemeral: _Ephemeral | None = None
    csi: _CSIVolume | None = None
    azure_file: _SecretVolume | None = None
    cephfs: _WithSecret | None = None
    cinder: _WithSecret | None = None
    flex_volume: _WithSecret | None = None
    rbd: _WithSecret | None = None
    scale_io: _WithSecret | None = msgspec.field(name="scaleIO", default=None)
    iscsi: _WithSecret | None = None
    storageos: _WithSecret | None = None


class _PodClaim(_Part):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class _PodSpec(_Part):
    service_account_name: str = ""
    image_pull_secrets: list[_Named] = []
    containers: list[_Container] | None = None
    init_containers: list[_Container] = []
    ephemeral_containers: list[_Container] = []
    volumes: list[_Volume] = []
    resource_claims: list[_PodClaim] = []


class _Extended(_Part):
    resource_claim_name: str = ""


class _PodStatus(_Part):
    resource_claim_statuses: list[_PodClaim] = []
    extended_resource_claim_status: _Extended | None = None


class _Metadata(_Part):
    annotations: dict[str, msgspec.Raw] = {}


class _Pod(_Part):
    metadata: _Metadata
    spec: _PodSpec
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


class _Identity(_Part):
    uid: str = ""


class _Growing(_Part):
    """The node of a pod, and the members of its spec that can get new references after the pod has a node."""

    node_name: str = ""
    ephemeral_containers: list[msgspec.Raw] = []


class _GrowingStatus(_Part):
    resource_claim_statuses: list[msgspec.Raw] = []
    extended_resource_claim_status: _Part | None = None


class _Outline(_Part):
    metadata: _Identity
    spec: _Growing
    status: _GrowingStatus = msgspec.field(default_factory=_GrowingStatus)

    @property
    def is_settled(self) -> bool:
        status = self.status
        grows = self.spec.ephemeral_containers or status.resource_claim_statuses
        return not grows and status.extended_resource_claim_status is None


_DECODE_POD: Final = msgspec.json.Decoder(_Pod).decode
_DECODE_OUTLINE: Final = msgspec.json.Decoder(_Outline).decode
_NOTHING: Final = PodReferences("", ())


def pod_references(name: str, body: bytes, before: PodReferences | None = None) -> PodReferences:
    """Return the references of a stored pod.

    `before` are the references of an earlier version. They are returned unchanged for a pod without ephemeral
    containers and device claims, whose references cannot change. A mirror pod has no references, since its node made
    it. Raises msgspec.MsgspecError.
    """
    outline = _DECODE_OUTLINE(body)
    node = outline.spec.node_name
    if not node:
        return _NOTHING
    uid = outline.metadata.uid if outline.is_settled else ""
    if before is not None and uid and before.final_uid == uid and before.node == node:
        return before
    return PodReferences(intern(node), _references(name, _DECODE_POD(body)), uid)


def _references(name: str, pod: _Pod) -> tuple[Reference, ...]:
    spec = pod.spec
    if _MIRROR in pod.metadata.annotations:
        return ()
    found: dict[Reference, None] = {(SERVICE_ACCOUNT, spec.service_account_name): None}
    for pull in spec.image_pull_secrets:
        found[SECRET, pull.name] = None
    for container in (*spec.init_containers, *(spec.containers or ()), *spec.ephemeral_containers):
        _add_of_container(found, container)
    for volume in spec.volumes:
        _add_of_volume(found, name, volume)
    if spec.resource_claims or pod.status.extended_resource_claim_status is not None:
        _add_of_claims(found, spec.resource_claims, pod.status)
    return tuple([reference for reference in found if reference[1]])


def _add_of_container(found: dict[Reference, None], container: _Container) -> None:
    for variable in container.env:
        value = variable.value_from
        if value is not None:
            if value.secret_key_ref is not None:
                found[SECRET, value.secret_key_ref.name] = None
            if value.config_map_key_ref is not None:
                found[CONFIG_MAP, value.config_map_key_ref.name] = None
    for source in container.env_from:
        if source.secret_ref is not None:
            found[SECRET, source.secret_ref.name] = None
        if source.config_map_ref is not None:
            found[CONFIG_MAP, source.config_map_ref.name] = None


def _add_of_volume(found: dict[Reference, None], pod_name: str, volume: _Volume) -> None:
    if volume.projected is not None:
        for source in volume.projected.sources or ():
            if source.secret is not None:
                found[SECRET, source.secret.name] = None
            if source.config_map is not None:
                found[CONFIG_MAP, source.config_map.name] = None
    elif volume.config_map is not None:
        found[CONFIG_MAP, volume.config_map.name] = None
    elif volume.secret is not None:
        found[SECRET, volume.secret.secret_name] = None
    elif volume.persistent_volume_claim is not None:
        found[CLAIM, volume.persistent_volume_claim.claim_name] = None
    elif volume.ephemeral is not None:
        found[CLAIM, f"{pod_name}-{volume.name}"] = None
    elif volume.azure_file is not None:
        found[SECRET, volume.azure_file.secret_name] = None
    elif volume.csi is not None:
        if volume.csi.node_publish_secret_ref is not None:
            found[SECRET, volume.csi.node_publish_secret_ref.name] = None
    else:
        drivers = (
            volume.cephfs,
            volume.cinder,
            volume.flex_volume,
            volume.rbd,
            volume.scale_io,
            volume.iscsi,
            volume.storageos,
        )
        for driver in drivers:
            if driver is not None and driver.secret_ref is not None:
                found[SECRET, driver.secret_ref.name] = None


def _add_of_claims(found: dict[Reference, None], claims: Iterable[_PodClaim], status: _PodStatus) -> None:
    """Add the device claims. For claims made from templates the status has the names, once they exist."""
    made = {each.name: each.resource_claim_name for each in reversed(status.resource_claim_statuses)}
    for claim in claims:
        name = claim.resource_claim_name
        if name is None and claim.resource_claim_template_name is not None:
            name = made.get(claim.name)
        if name is not None:
            found[RESOURCE_CLAIM, name] = None
    if status.extended_resource_claim_status is not None:
        found[RESOURCE_CLAIM, status.extended_resource_claim_status.resource_claim_name] = None


class _SecretReference(_Part):
    name: str = ""
    namespace: str = ""


class _VolumeWithSecret(_Part):
    secret_ref: _SecretReference | None = None


class _AzureFile(_Part):
    secret_name: str = ""
    secret_namespace: str | None = None


class _CSI(_Part):
    node_publish_secret_ref: _SecretReference | None = None
    node_stage_secret_ref: _SecretReference | None = None
    node_expand_secret_ref: _SecretReference | None = None


class _PersistentVolumeSpec(_Part):
    claim_ref: _SecretReference | None = None
    azure_file: _AzureFile | None = None
    cephfs: _VolumeWithSecret | None = None
    cinder: _VolumeWithSecret | None = None
    flex_volume: _VolumeWithSecret | None = None
    rbd: _VolumeWithSecret | None = None
    scale_io: _VolumeWithSecret | None = msgspec.field(name="scaleIO", default=None)
    iscsi: _VolumeWithSecret | None = None
    storageos: _VolumeWithSecret | None = None
    csi: _CSI | None = None


class _PersistentVolume(_Part):
    spec: _PersistentVolumeSpec


_DECODE_VOLUME: Final = msgspec.json.Decoder(_PersistentVolume).decode


def volume_references(body: bytes) -> VolumeReferences:
    """Return the references of a stored PersistentVolume; none if it has no claim. Raises msgspec.MsgspecError."""
    spec = _DECODE_VOLUME(body).spec
    claim = spec.claim_ref
    if claim is None:
        return VolumeReferences(None, ())
    found = {secret: None for secret in _secrets_of_volume(spec, claim.namespace) if secret[1]}
    return VolumeReferences((claim.namespace, claim.name), tuple(found))


def _secrets_of_volume(spec: _PersistentVolumeSpec, own: str) -> Iterator[tuple[str, str]]:
    """Yield (namespace, name) of the secrets. Most are in the claim's namespace `own` if they name no other."""
    if spec.azure_file is not None:
        yield spec.azure_file.secret_namespace or own, spec.azure_file.secret_name
    for driver in (spec.cephfs, spec.flex_volume, spec.rbd, spec.scale_io, spec.iscsi):
        if driver is not None and driver.secret_ref is not None:
            yield driver.secret_ref.namespace or own, driver.secret_ref.name
    for driver in (spec.cinder, spec.storageos):
        if driver is not None and driver.secret_ref is not None:
            yield driver.secret_ref.namespace, driver.secret_ref.name
    if (csi := spec.csi) is not None:
        for secret in (csi.node_publish_secret_ref, csi.node_stage_secret_ref, csi.node_expand_secret_ref):
            if secret is not None:
                yield secret.namespace, secret.name


class _OfNode(_Part):
    node_name: str = ""


class _NodeObject(_Part):
    spec: _OfNode


_DECODE_OF_NODE: Final = msgspec.json.Decoder(_NodeObject).decode


def node_of(body: bytes) -> str:
    """Return the node of a stored VolumeAttachment or ResourceSlice, or "". Raises msgspec.MsgspecError."""
    return intern(_DECODE_OF_NODE(body).spec.node_name)
