"""Validation of the sources of PersistentVolumes: the required fields of each storage system.

Most sources are those of pods; the sources here differ, as their secrets have a namespace (pkg/apis/core/validation).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.core import v1 as core
from steersman.machinery.errors.field import FieldError, Path, forbidden, invalid, required
from steersman.machinery.validation.formats import inclusive_range_error, is_dns1123_label, is_dns1123_subdomain
from steersman.machinery.validation.leaves import (
    validate_dns1123_label,
    validate_name,
    validate_required,
)
from steersman.machinery.validation.object_meta import validate_namespace_name
from steersman.registry.pod_template.validation.iscsi_names import (
    INTERFACE_TOO_LONG,
    is_interface_too_long,
    is_iscsi_name,
)
from steersman.registry.pod_template.validation.options import PodValidationOptions
from steersman.registry.pod_template.validation.paths import validate_no_backsteps
from steersman.registry.pod_template.validation.volume_sources import (
    RULES,
    Rule,
    requires,
    validate_csi_driver_name,
)
from steersman.registry.pod_template.validation.volumes import validate_host_path

_OPTIONS: Final = PodValidationOptions()
_ISCSI_FORMAT: Final = "must be valid format"


def _validate_glusterfs(
    source: core.GlusterfsPersistentVolumeSource, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    namespace = source.endpoints_namespace
    if namespace == "":
        detail = "if the endpointnamespace is set, it must be a valid namespace name"
        yield invalid(path / "endpointsNamespace", namespace, detail)
    elif namespace is not None:
        yield from validate_name(validate_namespace_name, namespace, path / "endpointsNamespace")


def _validate_iscsi(source: core.ISCSIPersistentVolumeSource, name: str, path: Path) -> Iterator[FieldError]:
    if not source.target_portal:
        yield required(path / "targetPortal")
    if source.initiator_name is not None and is_interface_too_long(name, source.target_portal):
        yield invalid(path / "targetportal", source.target_portal, INTERFACE_TOO_LONG)
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


_validate_reference: Final = requires(name="name", namespace="namespace")


def _validate_secret_of(
    source: core.CinderPersistentVolumeSource | core.StorageOSPersistentVolumeSource,
    path: Path,
    options: PodValidationOptions,
) -> Iterator[FieldError]:
    if source.secret_ref is not None:
        yield from _validate_reference(source.secret_ref, path / "secretRef", options)


def _validate_azure_file(
    source: core.AzureFilePersistentVolumeSource, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    if source.secret_namespace == "":
        yield required(path / "secretNamespace")


def _validate_local(source: core.LocalVolumeSource, path: Path, options: PodValidationOptions) -> Iterator[FieldError]:
    if not source.path:
        yield required(path / "path")
    else:
        yield from validate_no_backsteps(source.path, path / "path")


def _validate_storageos(
    source: core.StorageOSPersistentVolumeSource, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    yield from validate_required(is_dns1123_label, source.volume_name, path / "volumeName")
    if source.volume_namespace:
        yield from validate_dns1123_label(source.volume_namespace, path / "volumeNamespace")
    yield from _validate_secret_of(source, path, options)


def _validate_csi(
    source: core.CSIPersistentVolumeSource, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    yield from validate_csi_driver_name(source.driver, path / "driver")
    if not source.volume_handle:
        yield required(path / "volumeHandle")
    for secret, name in (
        (source.controller_publish_secret_ref, "controllerPublishSecretRef"),
        (source.controller_expand_secret_ref, "controllerExpandSecretRef"),
        (source.node_publish_secret_ref, "nodePublishSecretRef"),
        (source.node_expand_secret_ref, "nodeExpandSecretRef"),
    ):
        if secret is not None:
            yield from _validate_csi_secret(secret, path / name)


def _validate_csi_secret(secret: core.SecretReference, path: Path) -> Iterator[FieldError]:
    yield from validate_required(is_dns1123_subdomain, secret.name, path / "name")
    yield from validate_required(is_dns1123_label, secret.namespace, path / "namespace")


_RULES: Final[dict[str, Rule]] = {
    **RULES,
    "azure_file": requires(_validate_azure_file, secret_name="secretName", share_name="shareName"),
    "cinder": requires(_validate_secret_of, volume_id="volumeID"),
    "csi": _validate_csi,
    "glusterfs": requires(_validate_glusterfs, endpoints="endpoints", path="path"),
    "host_path": validate_host_path,
    "iscsi": lambda source, path, options: iter(()),  # _validate_iscsi needs the name
    "local": _validate_local,
    "storageos": _validate_storageos,
}
_ORDER: Final = (
    "host_path",
    "gce_persistent_disk",
    "aws_elastic_block_store",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flex_volume",
    "azure_file",
    "vsphere_volume",
    "photon_persistent_disk",
    "portworx_volume",
    "azure_disk",
    "scale_io",
    "local",
    "storageos",
    "csi",
)
"""Attributes of a PersistentVolumeSpec with a source, in the order in which upstream validates them."""
_NAMES: Final = dict(
    zip(core.PersistentVolumeSpec.__struct_fields__, core.PersistentVolumeSpec.__struct_encode_fields__, strict=True)
)
_MISNAMED: Final = {"gce_persistent_disk": "persistentDisk"}
"""Names in the paths of errors that differ from the JSON names, as upstream's do."""
_MISNAMED_IF_SECOND: Final = {"cephfs": "cephFS", "flex_volume": ""}
"""Names in the error about a second source that differ from the JSON names; a flexVolume is never refused."""

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
    for attribute in _ORDER:
        source = getattr(spec, attribute)
        if source is None:
            continue
        refused_name = _MISNAMED_IF_SECOND.get(attribute, _NAMES[attribute])
        here = path / _MISNAMED.get(attribute, _NAMES[attribute])
        if found and refused_name:
            yield forbidden(path / refused_name, "may not specify more than 1 volume type")
            continue
        found = True
        yield from _RULES[attribute](source, here, _OPTIONS)
        if attribute == "iscsi":
            yield from _validate_iscsi(source, name, here)
        elif attribute == "local" and not has_node_affinity:
            yield required(path / "nodeAffinity", "Local volume requires node affinity")
    if not found:
        yield required(path, "must specify a volume type")
