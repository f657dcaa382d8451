"""Validation of volume mounts and block devices of containers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.core import v1 as core
from steersman.machinery.built_in.pod_resources import AnyContainer
from steersman.machinery.errors.field import FieldError, Path, forbidden, invalid, not_found, not_supported, required
from steersman.machinery.validation.leaves import validate_supported
from steersman.registry.pod_template.validation.paths import validate_descending_path
from steersman.registry.pod_template.validation.volumes import Volumes

PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")
RECURSIVE_READ_ONLY: Final = ("Disabled", "Enabled", "IfPossible")


def validate_volume_mounts(container: AnyContainer, volumes: Volumes, path: Path) -> Iterator[FieldError]:
    """Validate the mounts of a container; upstream reports some errors at the path of the list instead of the item."""
    devices = {device.name: device.device_path for device in container.volume_devices}
    device_paths = set(devices.values())
    mounted: set[str] = set()
    for index, mount in enumerate(container.volume_mounts):
        if not devices and _is_plain(mount, volumes) and mount.mount_path not in mounted:
            mounted.add(mount.mount_path)
            continue
        here = path[index]
        if not mount.name:
            yield required(here / "name")
        if mount.name not in volumes:
            yield not_found(here / "name", mount.name)
        if not mount.mount_path:
            yield required(here / "mountPath")
        if mount.mount_path in mounted:
            yield invalid(here / "mountPath", mount.mount_path, "must be unique")
        mounted.add(mount.mount_path)
        if mount.name in devices:
            yield invalid(here / "name", mount.name, "must not already exist in volumeDevices")
        if mount.mount_path in device_paths:
            text = "must not already exist as a path in volumeDevices"
            yield invalid(here / "mountPath", mount.mount_path, text)
        if mount.sub_path:
            yield from validate_descending_path(mount.sub_path, path / "subPath")
        if mount.sub_path_expr:
            if mount.sub_path:
                text = "subPathExpr and subPath are mutually exclusive"
                yield invalid(here / "subPathExpr", mount.sub_path_expr, text)
            yield from validate_descending_path(mount.sub_path_expr, path / "subPathExpr")
        if mount.mount_propagation is not None:
            yield from _validate_propagation(mount.mount_propagation, container, path / "mountPropagation")
        if mount.recursive_read_only is not None:
            yield from _validate_recursive_read_only(mount, path / "recursiveReadOnly")


def _is_plain(mount: core.VolumeMount, volumes: Volumes) -> bool:
    """Return True if a mount cannot be invalid on its own."""
    return (
        mount.name in volumes
        and mount.mount_path != ""
        and not mount.sub_path
        and not mount.sub_path_expr
        and mount.mount_propagation is None
        and mount.recursive_read_only is None
    )


def _validate_propagation(propagation: str, container: AnyContainer, path: Path) -> Iterator[FieldError]:
    yield from validate_supported(propagation, PROPAGATIONS, path)
    context = container.security_context
    if propagation == "Bidirectional" and not (context is not None and context.privileged):
        yield forbidden(path, "Bidirectional mount propagation is available only to privileged containers")


def _validate_recursive_read_only(mount: core.VolumeMount, path: Path) -> Iterator[FieldError]:
    if mount.recursive_read_only == "Disabled":
        return
    if mount.recursive_read_only not in RECURSIVE_READ_ONLY:
        yield not_supported(path, mount.recursive_read_only, RECURSIVE_READ_ONLY)
        return
    if not mount.read_only:
        yield forbidden(path, "may only be specified when readOnly is true")
    if mount.mount_propagation not in (None, "None"):
        yield forbidden(path, "may only be specified when mountPropagation is None or not specified")


def validate_volume_devices(container: AnyContainer, volumes: Volumes, path: Path) -> Iterator[FieldError]:
    """Validate the block devices of a container."""
    mounts = {mount.name: mount.mount_path for mount in container.volume_mounts}
    mount_paths = set(mounts.values())
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in enumerate(container.volume_devices):
        here = path[index]
        volume = volumes.get(device.name)
        if not device.name:
            yield required(here / "name")
        if device.name in names:
            yield invalid(here / "name", device.name, "must be unique")
        if volume is None:
            yield not_found(here / "name", device.name)
        elif volume.persistent_volume_claim is None and volume.ephemeral is None:
            text = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield invalid(here / "name", device.name, text)
        if not device.device_path:
            yield required(here / "devicePath")
        if device.device_path in paths:
            yield invalid(here / "devicePath", device.device_path, "must be unique")
        if ".." in device.device_path.split("/"):
            yield invalid(here / "devicePath", device.device_path, "can not contain backsteps ('..')")
        else:
            paths.add(device.device_path)
        if device.name in mounts:
            yield invalid(here / "name", device.name, "must not already exist in volumeMounts")
        if device.device_path in mount_paths:
            text = "must not already exist as a path in volumeMounts"
            yield invalid(here / "devicePath", device.device_path, text)
        if device.name:
            names.add(device.name)
