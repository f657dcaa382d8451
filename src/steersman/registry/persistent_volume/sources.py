"""Validation of the sources of PersistentVolumes: the required fields of each storage system.

Most sources are those of pods; the sources here differ, as their secrets have a namespace (pkg/apis/core/validation).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from steersman.api.core import v1 as core
from steersman.machinery.errors.field import FieldError, Path, forbidden, invalid, not_supported, required
from steersman.machinery.go.strings import to_lower
from steersman.machinery.validation.formats import inclusive_range_error
from steersman.machinery.validation.leaves import validate_dns1123_label, validate_dns1123_subdomain, validate_name
from steersman.machinery.validation.object_meta import validate_namespace_name
from steersman.registry.pod_template.validation import volume_sources as shared
from steersman.registry.pod_template.validation.iscsi_names import is_iscsi_name
from steersman.registry.pod_template.validation.options import PodValidationOptions
from steersman.registry.pod_template.validation.paths import validate_no_backsteps
from steersman.registry.pod_template.validation.volumes import HOST_PATH_TYPES

_OPTIONS: Final = PodValidationOptions()
_LONGEST_ISCSI_NAME: Final = 64
_ISCSI_FORMAT: Final = "must be valid format"
_ISCSI_LENGTH: Final = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
    "if iscsi.initiatorName is specified."
)


def _required(source: Any, path: Path, /, **members: str) -> Iterator[FieldError]:
    """Yield errors for missing attributes; the values of `members` are their JSON names."""
    for attribute, name in members.items():
        if not getattr(source, attribute):
            yield required(path / name)


def _validate_host_path(source: core.HostPathVolumeSource, path: Path) -> Iterator[FieldError]:
    if not source.path:
        yield required(path / "path")
        return
    yield from validate_no_backsteps(source.path, path / "path")
    if source.type is not None and source.type not in HOST_PATH_TYPES:
        yield not_supported(path / "type", source.type, HOST_PATH_TYPES)


def _validate_glusterfs(source: core.GlusterfsPersistentVolumeSource, path: Path) -> Iterator[FieldError]:
    yield from _required(source, path, endpoints="endpoints", path="path")
    namespace = source.endpoints_namespace
    if namespace == "":
        detail = "if the endpointnamespace is set, it must be a valid namespace name"
        yield invalid(path / "endpointsNamespace", namespace, detail)
    elif namespace is not None:
        yield from validate_name(validate_namespace_name, namespace, path / "endpointsNamespace")


def _validate_rbd(source: core.RBDPersistentVolumeSource, path: Path) -> Iterator[FieldError]:
    yield from _required(source, path, monitors="monitors", image="image")


def _validate_cephfs(source: core.CephFSPersistentVolumeSource, path: Path) -> Iterator[FieldError]:
    yield from _required(source, path, monitors="monitors")


def _validate_iscsi(source: core.ISCSIPersistentVolumeSource, name: str, path: Path) -> Iterator[FieldError]:
    if not source.target_portal:
        yield required(path / "targetPortal")
    if source.initiator_name is not None and len(f"{name}:{source.target_portal}".encode()) > _LONGEST_ISCSI_NAME:
        yield invalid(path / "targetportal", source.target_portal, _ISCSI_LENGTH)
    if not source.iqn:
        yield required(path / "iqn")
    elif not is_iscsi_name(source.iqn):
        yield invalid(path / "iqn", source.iqn, _ISCSI_FORMAT)
    if not 0 <= source.lun <= 255:
        yield invalid(path / "lun", source.lun, inclusive_range_error(0, 255))
    secret = source.secret_ref
    if (source.chap_auth_discovery or source.chap_auth_session) and secret is None:
        yield required(path / "secretRef")
    if secret is not None and not secret.name:
        yield required(path.child("secretRef", "name"))
    if source.initiator_name is not None and not is_iscsi_name(source.initiator_name):
        yield invalid(path / "initiatorname", source.initiator_name, _ISCSI_FORMAT)


def _validate_secret(secret: core.SecretReference | core.ObjectReference | None, path: Path) -> Iterator[FieldError]:
    if secret is not None:
        yield from _required(secret, path / "secretRef", name="name", namespace="namespace")


def _validate_cinder(source: core.CinderPersistentVolumeSource, path: Path) -> Iterator[FieldError]:
    yield from _required(source, path, volume_id="volumeID")
    yield from _validate_secret(source.secret_ref, path)


def _validate_flex_volume(source: core.FlexPersistentVolumeSource, path: Path) -> Iterator[FieldError]:
    yield from _required(source, path, driver="driver")
    for key in source.options:
        domain = f".{to_lower(key.partition('/')[0])}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            yield invalid(path.child("options")[key], key, "kubernetes.io and k8s.io namespaces are reserved")


def _validate_azure_file(source: core.AzureFilePersistentVolumeSource, path: Path) -> Iterator[FieldError]:
    yield from _required(source, path, secret_name="secretName", share_name="shareName")
    if source.secret_namespace == "":
        yield required(path / "secretNamespace")


def _validate_scale_io(source: core.ScaleIOPersistentVolumeSource, path: Path) -> Iterator[FieldError]:
    yield from _required(source, path, gateway="gateway", system="system", volume_name="volumeName")


def _validate_local(source: core.LocalVolumeSource, path: Path) -> Iterator[FieldError]:
    if not source.path:
        yield required(path / "path")
    else:
        yield from validate_no_backsteps(source.path, path / "path")


def _validate_storageos(source: core.StorageOSPersistentVolumeSource, path: Path) -> Iterator[FieldError]:
    if not source.volume_name:
        yield required(path / "volumeName")
    else:
        yield from validate_dns1123_label(source.volume_name, path / "volumeName")
    if source.volume_namespace:
        yield from validate_dns1123_label(source.volume_namespace, path / "volumeNamespace")
    yield from _validate_secret(source.secret_ref, path)


def _validate_csi(source: core.CSIPersistentVolumeSource, path: Path) -> Iterator[FieldError]:
    yield from shared.validate_csi_driver_name(source.driver, path / "driver")
    yield from _required(source, path, volume_handle="volumeHandle")
    for secret, name in (
        (source.controller_publish_secret_ref, "controllerPublishSecretRef"),
        (source.controller_expand_secret_ref, "controllerExpandSecretRef"),
        (source.node_publish_secret_ref, "nodePublishSecretRef"),
        (source.node_expand_secret_ref, "nodeExpandSecretRef"),
    ):
        if secret is not None:
            yield from _validate_csi_secret(secret, path / name)


def _validate_csi_secret(secret: core.SecretReference, path: Path) -> Iterator[FieldError]:
    if not secret.name:
        yield required(path / "name")
    else:
        yield from validate_dns1123_subdomain(secret.name, path / "name")
    if not secret.namespace:
        yield required(path / "namespace")
    else:
        yield from validate_dns1123_label(secret.namespace, path / "namespace")


def _as_in_pods(check: Callable[..., Iterator[FieldError]]) -> Callable[[Any, Path], Iterator[FieldError]]:
    return lambda source, path: check(source, path, _OPTIONS)


_SOURCES: Final[tuple[tuple[str, str, str, Callable[[Any, Path], Iterator[FieldError]]], ...]] = (
    ("host_path", "hostPath", "hostPath", _validate_host_path),
    (
        "gce_persistent_disk",
        "gcePersistentDisk",
        "persistentDisk",
        _as_in_pods(shared.validate_gce_persistent_disk),
    ),
    (
        "aws_elastic_block_store",
        "awsElasticBlockStore",
        "awsElasticBlockStore",
        _as_in_pods(shared.validate_aws_elastic_block_store),
    ),
    ("glusterfs", "glusterfs", "glusterfs", _validate_glusterfs),
    ("flocker", "flocker", "flocker", _as_in_pods(shared.validate_flocker)),
    ("nfs", "nfs", "nfs", _as_in_pods(shared.validate_nfs)),
    ("rbd", "rbd", "rbd", _validate_rbd),
    ("quobyte", "quobyte", "quobyte", _as_in_pods(shared.validate_quobyte)),
    ("cephfs", "cephFS", "cephfs", _validate_cephfs),
    ("iscsi", "iscsi", "iscsi", lambda source, path: iter(())),
    ("cinder", "cinder", "cinder", _validate_cinder),
    ("fc", "fc", "fc", _as_in_pods(shared.validate_fc)),
    ("flex_volume", "", "flexVolume", _validate_flex_volume),
    ("azure_file", "azureFile", "azureFile", _validate_azure_file),
    ("vsphere_volume", "vsphereVolume", "vsphereVolume", _as_in_pods(shared.validate_vsphere_volume)),
    (
        "photon_persistent_disk",
        "photonPersistentDisk",
        "photonPersistentDisk",
        _as_in_pods(shared.validate_photon_persistent_disk),
    ),
    ("portworx_volume", "portworxVolume", "portworxVolume", _as_in_pods(shared.validate_portworx_volume)),
    ("azure_disk", "azureDisk", "azureDisk", _as_in_pods(shared.validate_azure_disk)),
    ("scale_io", "scaleIO", "scaleIO", _validate_scale_io),
    ("local", "local", "local", _validate_local),
    ("storageos", "storageos", "storageos", _validate_storageos),
    ("csi", "csi", "csi", _validate_csi),
)
"""Attribute, its name in the error about a second source, its name in other errors, and its rule; in upstream's order.
A flexVolume is never refused as a second source."""

SOURCE_ATTRIBUTES: Final = (
    "gce_persistent_disk",
    "aws_elastic_block_store",
    "host_path",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "flex_volume",
    "cinder",
    "cephfs",
    "fc",
    "flocker",
    "azure_file",
    "vsphere_volume",
    "azure_disk",
    "photon_persistent_disk",
    "portworx_volume",
    "scale_io",
    "local",
    "storageos",
    "csi",
)
"""The sources in the order of upstream's internal type, as messages print them."""


def validate_sources(
    spec: core.PersistentVolumeSpec, name: str, path: Path, *, has_node_affinity: bool
) -> Iterator[FieldError]:
    """Validate that the volume `name` has exactly one source, and validate the source."""
    found = False
    for attribute, refused_name, member, check in _SOURCES:
        source = getattr(spec, attribute)
        if source is None:
            continue
        if found and refused_name:
            yield forbidden(path / refused_name, "may not specify more than 1 volume type")
            continue
        found = True
        yield from check(source, path / member)
        if attribute == "iscsi":
            yield from _validate_iscsi(source, name, path / member)
        elif attribute == "local" and not has_node_affinity:
            yield required(path / "nodeAffinity", "Local volume requires node affinity")
    if not found:
        yield required(path, "must specify a volume type")
