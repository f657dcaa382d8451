"""Validation of volume sources that are storage systems: the required fields of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from steersman.api.core import v1 as core
from steersman.machinery.errors.field import FieldError, Path, invalid, not_supported, required, too_long
from steersman.machinery.go.strings import to_lower
from steersman.machinery.validation.formats import inclusive_range_error, is_dns1123_label, is_dns1123_subdomain
from steersman.machinery.validation.leaves import (
    validate_dns1123_label,
    validate_name,
    validate_required,
    validate_supported,
)
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.pod_template.validation.iscsi_names import (
    FORMATS,
    INTERFACE_TOO_LONG,
    is_interface_too_long,
    is_iscsi_name,
)
from steersman.registry.pod_template.validation.options import PodValidationOptions

_LUN_ERROR: Final = inclusive_range_error(0, 255)
_PARTITION_ERROR: Final = inclusive_range_error(1, 255)
_LONGEST_DRIVER_NAME: Final = 63
_HOST_PORT: Final = "must be a host:port pair or multiple pairs separated by commas"
_CACHING_MODES: Final = ("None", "ReadOnly", "ReadWrite")
_DISK_KINDS: Final = ("Dedicated", "Managed", "Shared")
_MANAGED_DISK: Final = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB_DISK: Final = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"


Rule = Callable[[Any, Path, PodValidationOptions], Iterator[FieldError]]
"""A validator of one source at a path."""


def requires(further: Rule | None = None, /, **members: str) -> Rule:
    """Return a rule by which some members are required, and then a `further` rule holds.

    `members` are JSON names by attribute.
    """

    def validate(source: Any, path: Path, options: PodValidationOptions) -> Iterator[FieldError]:
        for attribute, name in members.items():
            if not getattr(source, attribute):
                yield required(path / name)
        if further is not None:
            yield from further(source, path, options)

    return validate


def _validate_secret(
    source: core.CinderVolumeSource | core.StorageOSVolumeSource, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    if source.secret_ref is not None and not source.secret_ref.name:
        yield required(path.child("secretRef", "name"))


def _validate_partition(
    source: core.GCEPersistentDiskVolumeSource | core.AWSElasticBlockStoreVolumeSource,
    path: Path,
    options: PodValidationOptions,
) -> Iterator[FieldError]:
    if not 0 <= source.partition <= 255:
        yield invalid(path / "partition", source.partition, _PARTITION_ERROR)


def _validate_nfs(source: core.NFSVolumeSource, path: Path, options: PodValidationOptions) -> Iterator[FieldError]:
    if not source.path.startswith("/"):
        yield invalid(path / "path", source.path, "must be an absolute path")


def _validate_iscsi(source: core.ISCSIVolumeSource, path: Path, options: PodValidationOptions) -> Iterator[FieldError]:
    """Validate an iSCSI disk; names follow RFC 3720 section 3.2.6."""
    if not source.target_portal:
        yield required(path / "targetPortal")
    if not source.iqn:
        yield required(path / "iqn")
    else:
        yield from _validate_iscsi_name(source.iqn, path / "iqn")
    if not 0 <= source.lun <= 255:
        yield invalid(path / "lun", source.lun, _LUN_ERROR)
    if (source.chap_auth_discovery or source.chap_auth_session) and source.secret_ref is None:
        yield required(path / "secretRef")
    if source.initiator_name is not None:
        yield from _validate_iscsi_name(source.initiator_name, path / "initiatorname")


def _validate_iscsi_name(name: str, path: Path) -> Iterator[FieldError]:
    if name[:3] not in FORMATS:
        yield invalid(path, name, "must be valid format starting with iqn, eui, or naa")
    elif not is_iscsi_name(name):
        yield invalid(path, name, "must be valid format")


def validate_iscsi_name_length(name: str, source: core.ISCSIVolumeSource, path: Path) -> Iterator[FieldError]:
    """Validate the length of the interface name for an initiator, which consists of volume and portal."""
    if is_interface_too_long(name, source.target_portal):
        yield invalid(path / "name", name, INTERFACE_TOO_LONG)


def _validate_fc(source: core.FCVolumeSource, path: Path, options: PodValidationOptions) -> Iterator[FieldError]:
    here = path / "targetWWNs"
    if not source.target_wwns and not source.wwids:
        yield required(here, "must specify either targetWWNs or wwids, but not both")
    if source.target_wwns and source.wwids:
        yield invalid(here, source.target_wwns, "targetWWNs and wwids can not be specified simultaneously")
    if source.target_wwns:
        if source.lun is None:
            yield required(path / "lun", "lun is required if targetWWNs is specified")
        elif not 0 <= source.lun <= 255:
            yield invalid(path / "lun", source.lun, _LUN_ERROR)


def _validate_flocker(
    source: core.FlockerVolumeSource, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    if not source.dataset_name and not source.dataset_uuid:
        yield required(path, "one of datasetName and datasetUUID is required")
    if source.dataset_name and source.dataset_uuid:
        yield invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously")
    if "/" in source.dataset_name:
        yield invalid(path / "datasetName", source.dataset_name, "must not contain '/'")


def _validate_quobyte(
    source: core.QuobyteVolumeSource, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    if not source.registry:
        yield required(path / "registry", _HOST_PORT)
    elif len(source.tenant.encode()) >= 65:
        yield required(path / "tenant", "must be a UUID and may not exceed a length of 64 characters")
    else:
        for pair in source.registry.split(","):
            if not _is_host_port(pair):
                yield invalid(path / "registry", source.registry, _HOST_PORT)
    if not source.volume:
        yield required(path / "volume")


def _is_host_port(text: str) -> bool:
    """Return True if Go's net.SplitHostPort accepts `text`: one colon outside brackets, or `[host]:port`."""
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        return bool(bracket) and rest.startswith(":") and not set(rest[1:]) & set(":[]") and "[" not in host
    return text.count(":") == 1 and not set(text) & set("[]")


def _validate_flex_volume(
    source: core.FlexVolumeSource, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    for key in source.options:
        namespace = "." + to_lower(key.partition("/")[0])
        if namespace.endswith((".kubernetes.io", ".k8s.io")):
            yield invalid((path / "options")[key], key, "kubernetes.io and k8s.io namespaces are reserved")


def _validate_azure_disk(
    source: core.AzureDiskVolumeSource, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    if source.caching_mode is not None and source.caching_mode not in _CACHING_MODES:
        yield not_supported(path / "cachingMode", source.caching_mode, _CACHING_MODES)
    if source.kind is None:
        return
    yield from validate_supported(source.kind, _DISK_KINDS, path / "kind")
    if source.kind == "Managed":
        if not source.disk_uri.startswith("/subscriptions/"):
            yield not_supported(path / "diskURI", source.disk_uri, (_MANAGED_DISK,))
    elif not source.disk_uri.startswith("https://"):
        yield not_supported(path / "diskURI", source.disk_uri, (_BLOB_DISK,))


def _validate_storageos(
    source: core.StorageOSVolumeSource, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    yield from validate_required(is_dns1123_label, source.volume_name, path / "volumeName")
    if source.volume_namespace:
        yield from validate_dns1123_label(source.volume_namespace, path / "volumeNamespace")
    yield from _validate_secret(source, path, options)


def _validate_csi(source: core.CSIVolumeSource, path: Path, options: PodValidationOptions) -> Iterator[FieldError]:
    yield from validate_csi_driver_name(source.driver, path / "driver")
    if (secret := source.node_publish_secret_ref) is not None:
        if not secret.name:
            yield required(path.child("nodePublishSecretRef", "name"))
        else:
            yield from validate_name(name_is_dns_subdomain, secret.name, path / "name")


def validate_csi_driver_name(name: str, path: Path) -> Iterator[FieldError]:
    """Validate a DNS name in any case, of at most 63 bytes."""
    if not name:
        yield required(path)
        return
    if len(name.encode()) > _LONGEST_DRIVER_NAME:
        yield too_long(path, _LONGEST_DRIVER_NAME)
    for message in is_dns1123_subdomain(to_lower(name)):
        yield invalid(path, name, message)


RULES: Final[dict[str, Rule]] = {
    "aws_elastic_block_store": requires(_validate_partition, volume_id="volumeID"),
    "azure_disk": requires(_validate_azure_disk, disk_name="diskName", disk_uri="diskURI"),
    "azure_file": requires(secret_name="secretName", share_name="shareName"),
    "cephfs": requires(monitors="monitors"),
    "cinder": requires(_validate_secret, volume_id="volumeID"),
    "csi": _validate_csi,
    "fc": _validate_fc,
    "flex_volume": requires(_validate_flex_volume, driver="driver"),
    "flocker": _validate_flocker,
    "gce_persistent_disk": requires(_validate_partition, pd_name="pdName"),
    "glusterfs": requires(endpoints="endpoints", path="path"),
    "iscsi": _validate_iscsi,
    "nfs": requires(_validate_nfs, server="server", path="path"),
    "photon_persistent_disk": requires(pd_id="pdID"),
    "portworx_volume": requires(volume_id="volumeID"),
    "quobyte": _validate_quobyte,
    "rbd": requires(monitors="monitors", image="image"),
    "scale_io": requires(gateway="gateway", system="system", volume_name="volumeName"),
    "storageos": _validate_storageos,
    "vsphere_volume": requires(volume_path="volumePath"),
}
"""Rules of the sources by their attribute of a Volume."""
