"""Decisions of kube-controller-manager's volume plugins: provisioning, deletion and recycling of volumes.

CSI drivers have replaced most plugins. The remaining ones are hostPath, NFS, Fibre Channel, iSCSI and CSI, of which
only hostPath can delete volumes.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from steersman.api.core.v1 import PersistentVolume
from steersman.machinery.built_in.volumes import PROVISIONED_BY
from steersman.work.patterns import late_pattern

MIGRATED_TO: Final = "pv.kubernetes.io/migrated-to"
_DRIVERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
        "kubernetes.io/azure-disk": "disk.csi.azure.com",
        "kubernetes.io/azure-file": "file.csi.azure.com",
        "kubernetes.io/cinder": "cinder.csi.openstack.org",
        "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
        "kubernetes.io/portworx-volume": "pxd.portworx.com",
        "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
    }
)
_BUILT_IN: Final = "kubernetes.io/"
_HOST_PATH: Final = "kubernetes.io/host-path"
_PLUGINS: Final = frozenset({_HOST_PATH, "kubernetes.io/nfs", "kubernetes.io/fc", "kubernetes.io/iscsi"})
_CSI: Final = "kubernetes.io/csi"
_DELETABLE_PATH: Final = late_pattern(r"/tmp/.+")


class NoPlugin(Exception):
    """No plugin supports the operation. The text is that of events."""


def driver_of(provisioner: str) -> str:
    """Return the CSI driver that replaces a plugin; "" if none does."""
    return _DRIVERS.get(provisioner, "")


def provisioner_for(provisioner: str) -> str:
    """Return the provisioner for the volumes of a class. Raises NoPlugin if the class names a plugin that cannot
    provision.
    """
    if provisioner in _DRIVERS:
        return _DRIVERS[provisioner]
    if not provisioner.startswith(_BUILT_IN):
        return provisioner
    if provisioner == _HOST_PATH:
        return provisioner
    if provisioner in _PLUGINS or provisioner == _CSI:
        raise NoPlugin("no provisionable volume plugin matched")
    raise NoPlugin(f"no volume plugin matched name: {provisioner}")


def refusal_of(provisioner: str) -> str:
    """Return the reason why a plugin that could provision is disabled; "" for an enabled provisioner."""
    if provisioner != _HOST_PATH:
        return ""
    return f'Failed to create provisioner: provisioning in volume plugin "{_HOST_PATH}" is disabled'


def migrate(annotations: dict[str, str], provisioner: str | None) -> dict[str, str]:
    """Return annotations that name the CSI driver which replaces the object's plugin, the same object if they do
    already.
    """
    if provisioner is None:
        return annotations
    driver = driver_of(provisioner)
    if annotations.get(MIGRATED_TO, "") == driver:
        return annotations
    others = {key: value for key, value in annotations.items() if key != MIGRATED_TO}
    return {**others, MIGRATED_TO: driver} if driver else others


def is_deleted_here(volume: PersistentVolume) -> bool:
    """Return True if this controller deletes the storage of a volume, False if a driver does. Raises NoPlugin."""
    provisioner = volume.metadata.annotations.get(PROVISIONED_BY, "")
    if provisioner:
        if provisioner == _HOST_PATH:
            return True
        if not provisioner.startswith(_BUILT_IN):
            return False
        if provisioner in _PLUGINS or provisioner == _CSI:
            raise NoPlugin("no deletable volume plugin matched")
        raise NoPlugin(f"no volume plugin matched name: {provisioner}")
    if MIGRATED_TO in volume.metadata.annotations or volume.spec.csi is not None:
        return False
    spec = volume.spec
    if spec.host_path is not None:
        return True
    supported = (spec.nfs, spec.fc, spec.iscsi)
    kind = "deletable volume" if any(each is not None for each in supported) else "volume"
    raise NoPlugin(f'error getting deleter volume plugin for volume "{volume.metadata.name}": no {kind} plugin matched')


def check_deletable(volume: PersistentVolume) -> None:
    """Raise NoPlugin for a path that must not be deleted."""
    path = "" if volume.spec.host_path is None else volume.spec.host_path.path
    if _DELETABLE_PATH.search(path) is None:
        raise NoPlugin(f"host_path deleter only supports /tmp/.+ but received provided {path}")


def is_recyclable(volume: PersistentVolume) -> bool:
    """Return True if a pod can empty the volume."""
    return volume.spec.host_path is not None or volume.spec.nfs is not None
