"""What kube-controller-manager's volume plugins would do of themselves: who provisions, who deletes, who recycles.

Plugins that were moved to CSI drivers have these do their work; what is left in kube-controller-manager is hostPath,
NFS, Fibre Channel, iSCSI and CSI, of which hostPath alone can delete volumes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from steersman.api.core.v1 import PersistentVolume
from steersman.machinery.built_in.volumes import PROVISIONED_BY

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
_DELETABLE_PATH: Final = re.compile(r"/tmp/.+")


class NoPlugin(Exception):
    """No plugin can do it; the text is that of events."""


def driver_of(provisioner: str) -> str:
    """The CSI driver that does the work of a plugin now; "" for what is no such plugin."""
    return _DRIVERS.get(provisioner, "")


def provisioner_for(provisioner: str) -> str:
    """Who is to make the volumes of a class. Raises NoPlugin where a plugin should, and none can."""
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
    """Why a plugin of kube-controller-manager makes no volumes, though it could; "" for who may make them."""
    if provisioner != _HOST_PATH:
        return ""
    return f'Failed to create provisioner: provisioning in volume plugin "{_HOST_PATH}" is disabled'


def migrate(annotations: dict[str, str], provisioner: str | None) -> dict[str, str]:
    """Annotations that say to which driver the work of an object's plugin was moved."""
    if provisioner is None:
        return annotations
    driver = driver_of(provisioner)
    if annotations.get(MIGRATED_TO, "") == driver:
        return annotations
    others = {key: value for key, value in annotations.items() if key != MIGRATED_TO}
    return {**others, MIGRATED_TO: driver} if driver else others


def is_deleted_here(volume: PersistentVolume) -> bool:
    """Whether this controller deletes what a volume stands for, else a driver does. Raises NoPlugin."""
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
    known = (spec.nfs, spec.fc, spec.iscsi)
    kind = "deletable volume" if any(each is not None for each in known) else "volume"
    raise NoPlugin(f'error getting deleter volume plugin for volume "{volume.metadata.name}": no {kind} plugin matched')


def check_deletable(volume: PersistentVolume) -> None:
    """Raises NoPlugin for a path that is not to be deleted."""
    path = "" if volume.spec.host_path is None else volume.spec.host_path.path
    if _DELETABLE_PATH.search(path) is None:
        raise NoPlugin(f"host_path deleter only supports /tmp/.+ but received provided {path}")


def is_recyclable(volume: PersistentVolume) -> bool:
    """Whether a pod can empty a volume."""
    return volume.spec.host_path is not None or volume.spec.nfs is not None
