"""What pods and volumes lead to, read out of what is stored of them: only the members that name other objects.

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
"""Kind and name of an object in the namespace of a pod."""


class PodReferences(NamedTuple):
    """The node of a pod, "" for none, and what the pod lets that node see, each once."""

    node: str
    references: tuple[Reference, ...]


class VolumeReferences(NamedTuple):
    """The claim that a volume is for, and the secrets that nodes need for it: each by namespace and name."""

    claim: tuple[str, str] | None
    secrets: tuple[tuple[str, str], ...]


class _Part(msgspec.Struct, rename="camel", gc=False):
    """Members of an object, those that are not named here are skipped."""


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
    """A claim of the pod's own."""


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
    node_name: str = ""
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


_DECODE_POD: Final = msgspec.json.Decoder(_Pod).decode


def pod_references(name: str, body: bytes) -> PodReferences:
    """What a stored pod leads to. A mirror pod leads to nothing: its node has made it. Raises msgspec.MsgspecError."""
    if b'"nodeName":"' not in body:
        return PodReferences("", ())
    pod = _DECODE_POD(body)
    node = intern(pod.spec.node_name)
    if not node or _MIRROR in pod.metadata.annotations:
        return PodReferences(node, ())
    found = {reference: None for reference in _of_pod(name, pod) if reference[1]}
    return PodReferences(node, tuple(found))


def _of_pod(pod_name: str, pod: _Pod) -> Iterator[Reference]:
    spec = pod.spec
    yield SERVICE_ACCOUNT, spec.service_account_name
    for pull in spec.image_pull_secrets:
        yield SECRET, pull.name
    for containers in (spec.init_containers, spec.containers or (), spec.ephemeral_containers):
        for container in containers:
            if container.env or container.env_from:
                yield from _of_container(container)
    for volume in spec.volumes:
        yield from _of_volume(pod_name, volume)
    yield from _of_claims(spec.resource_claims, pod.status)


def _of_container(container: _Container) -> Iterator[Reference]:
    for variable in container.env:
        if (value := variable.value_from) is not None:
            if value.secret_key_ref is not None:
                yield SECRET, value.secret_key_ref.name
            if value.config_map_key_ref is not None:
                yield CONFIG_MAP, value.config_map_key_ref.name
    for source in container.env_from:
        if source.secret_ref is not None:
            yield SECRET, source.secret_ref.name
        if source.config_map_ref is not None:
            yield CONFIG_MAP, source.config_map_ref.name


def _of_volume(pod_name: str, volume: _Volume) -> Iterator[Reference]:
    if volume.projected is not None:
        for source in volume.projected.sources or ():
            if source.secret is not None:
                yield SECRET, source.secret.name
            if source.config_map is not None:
                yield CONFIG_MAP, source.config_map.name
    elif volume.config_map is not None:
        yield CONFIG_MAP, volume.config_map.name
    elif volume.secret is not None:
        yield SECRET, volume.secret.secret_name
    elif volume.persistent_volume_claim is not None:
        yield CLAIM, volume.persistent_volume_claim.claim_name
    elif volume.ephemeral is not None:
        yield CLAIM, f"{pod_name}-{volume.name}"
    elif volume.azure_file is not None:
        yield SECRET, volume.azure_file.secret_name
    elif volume.csi is not None:
        if volume.csi.node_publish_secret_ref is not None:
            yield SECRET, volume.csi.node_publish_secret_ref.name
    else:
        drivers = (
            volume.cephfs, volume.cinder, volume.flex_volume, volume.rbd, volume.scale_io, volume.iscsi,
            volume.storageos,
        )  # fmt: skip
        for driver in drivers:
            if driver is not None and driver.secret_ref is not None:
                yield SECRET, driver.secret_ref.name


def _of_claims(claims: Iterable[_PodClaim], status: _PodStatus) -> Iterator[Reference]:
    """Claims of devices; those of templates are named by the status once they are made."""
    for claim in claims:
        if claim.resource_claim_name is not None:
            yield RESOURCE_CLAIM, claim.resource_claim_name
        elif claim.resource_claim_template_name is not None:
            made = next((each for each in status.resource_claim_statuses if each.name == claim.name), None)
            if made is not None and made.resource_claim_name is not None:
                yield RESOURCE_CLAIM, made.resource_claim_name
    if status.extended_resource_claim_status is not None:
        yield RESOURCE_CLAIM, status.extended_resource_claim_status.resource_claim_name


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
    """What a stored PersistentVolume leads to: nothing, unless it is for a claim. Raises msgspec.MsgspecError."""
    spec = _DECODE_VOLUME(body).spec
    claim = spec.claim_ref
    if claim is None:
        return VolumeReferences(None, ())
    found = {secret: None for secret in _secrets_of_volume(spec, claim.namespace) if secret[1]}
    return VolumeReferences((claim.namespace, claim.name), tuple(found))


def _secrets_of_volume(spec: _PersistentVolumeSpec, own: str) -> Iterator[tuple[str, str]]:
    """Without a namespace of their own most are in that of the claim (`own`)."""
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
    """The node that a stored VolumeAttachment or ResourceSlice is about, "" for none. Raises msgspec.MsgspecError."""
    return intern(_DECODE_OF_NODE(body).spec.node_name)
