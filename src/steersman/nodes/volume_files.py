"""File properties in a container's volumes, from its pod's spec: folders with content, modes, file systems.

Follows the volume plugins of pkg/volume (configmap, secret, downwardapi, projected, emptydir) and `volume_linux.go`
(the effect of a pod's `fsGroup`). The content of the files is read in `initial_world`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator
from typing import Final

from steersman.api.core.v1 import Pod, Volume, VolumeMount
from steersman.machinery.built_in.pod_resources import AnyContainer

_MODE: Final = 0o644
"""Mode of files in volumes without a default mode of their own."""
_EMPTY_DIR: Final = 0o777
_OF_TOKEN: Final = 0o600
"""Mode of a token's file, if the pod has a user or a group of its own."""
_GROUP_READS: Final = 0o440
"""Permission bits that `fsGroup` adds to files of read-only volumes."""


def folders_with_contents(pod: Pod, container: AnyContainer) -> tuple[str, ...]:
    """Return the folders with files from ConfigMaps, Secrets, projections or the downward API."""
    return tuple(mount.mount_path.rstrip("/") for mount, volume in _mounted(pod, container) if _has_contents(volume))


def file_systems(pod: Pod, container: AnyContainer) -> dict[str, str]:
    """Return the file system types of a container's volumes by mount folder: tmpfs for volumes in memory, otherwise
    ext4.
    """
    return {
        mount.mount_path.rstrip("/") or "/": "tmpfs" if _is_in_memory(volume) else "ext4"
        for mount, volume in _mounted(pod, container)
    }


def modes(pod: Pod, container: AnyContainer, paths: Collection[str]) -> dict[str, int]:
    """Return the permission bits of those of `paths` that are in the container's volumes, and of emptyDir folders."""
    modes: dict[str, int] = {}
    security = pod.spec.security_context
    group = security.fs_group if security is not None else None
    user = security.run_as_user if security is not None else None
    for mount, volume in _mounted(pod, container):
        at = mount.mount_path.rstrip("/")
        if volume.empty_dir is not None:
            modes[at or "/"] = _EMPTY_DIR
        if not _has_contents(volume):
            continue
        default, special = _modes_of(volume, is_owned=group is not None or user is not None)
        for path in paths:
            if path == at or path.startswith(f"{at}/"):
                inside = posixpath.join(mount.sub_path, path[len(at) + 1 :]).rstrip("/")
                modes[path] = special.get(inside, default) | (_GROUP_READS if group is not None else 0)
    return modes


def _mounted(pod: Pod, container: AnyContainer) -> Iterator[tuple[VolumeMount, Volume]]:
    if not container.volume_mounts:
        return
    volumes = {each.name: each for each in pod.spec.volumes}
    for mount in container.volume_mounts:
        if mount.name in volumes:
            yield mount, volumes[mount.name]


def _has_contents(volume: Volume) -> bool:
    return bool(volume.config_map or volume.secret or volume.downward_api or volume.projected)


def _is_in_memory(volume: Volume) -> bool:
    if volume.empty_dir is not None:
        return volume.empty_dir.medium == "Memory"
    return bool(volume.secret or volume.projected or volume.downward_api)


def _modes_of(volume: Volume, *, is_owned: bool) -> tuple[int, dict[str, int]]:
    """Return the default mode of a volume's files, and the modes of files with their own, by path in the volume."""
    special: dict[str, int] = {}
    default: int | None = None
    sources = []
    for one in (volume.config_map, volume.secret, volume.downward_api, volume.projected):
        if one is not None:
            default = one.default_mode
    if volume.projected is not None:
        for each in volume.projected.sources or ():
            sources += [each.config_map, each.secret, each.downward_api]
            if each.service_account_token is not None and is_owned:
                special[each.service_account_token.path] = _OF_TOKEN
    for source in (volume.config_map, volume.secret, volume.downward_api, *sources):
        for item in source.items if source is not None else ():
            if item.mode is not None:
                special[item.path] = item.mode
    return _MODE if default is None else default, special
