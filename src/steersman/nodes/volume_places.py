"""Location of the files of pods' volumes: by pod, by persistent volume, or by node and path."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import Final, NamedTuple

from steersman.api.core.v1 import PersistentVolume, Pod, Volume
from steersman.client.informer import Key
from steersman.machinery.built_in.volumes import claim_name
from steersman.nodes.volume_store import VolumeKey

SERVER: Final = "server"
"""Kind of the keys of NFS servers."""
VolumeOf = Callable[[Key], PersistentVolume | None]
"""Returns the persistent volume that a claim is bound to, or None."""


class VolumePlace(NamedTuple):
    """A stored volume, and the path in it that is the root of a pod's volume."""

    key: VolumeKey
    inside: str = ""


def place_of(pod: Pod, volume: Volume, volume_of: VolumeOf) -> VolumePlace | None:
    """Return the location of a volume that containers write into; None for a volume of any other kind."""
    if volume.empty_dir is not None:
        return VolumePlace(of_pod(pod, volume))
    if volume.host_path is not None:
        return _on_node(pod, volume.host_path.path)
    if volume.nfs is not None:
        return VolumePlace(VolumeKey(SERVER, volume.nfs.server), _relative(volume.nfs.path))
    if claim := claim_name(pod, volume):
        stored_volume = volume_of((pod.metadata.namespace, claim))
        return None if stored_volume is None else _of_persistent(pod, stored_volume)
    return None if _is_read_only(volume) else VolumePlace(of_pod(pod, volume))


def _is_read_only(volume: Volume) -> bool:
    """Return True for volumes whose content comes from objects or an image."""
    return any((volume.config_map, volume.secret, volume.downward_api, volume.projected, volume.image))


def of_pod(pod: Pod, volume: Volume) -> VolumeKey:
    """Return the key of a volume that lives as long as its pod."""
    return VolumeKey("pod", pod.metadata.uid, volume.name)


def of_persistent(volume: PersistentVolume) -> VolumeKey:
    """Return the key of a persistent volume that is not on a node."""
    return VolumeKey("persistent", volume.metadata.uid)


def of_node(name: str) -> VolumeKey:
    """Return the key of the files of a node."""
    return VolumeKey("node", name)


def _of_persistent(pod: Pod, volume: PersistentVolume) -> VolumePlace:
    spec = volume.spec
    if spec.host_path is not None:
        return _on_node(pod, spec.host_path.path)
    if spec.local is not None:
        return _on_node(pod, spec.local.path)
    if spec.nfs is not None:
        return VolumePlace(VolumeKey(SERVER, spec.nfs.server), _relative(spec.nfs.path))
    return VolumePlace(of_persistent(volume))


def _on_node(pod: Pod, path: str) -> VolumePlace:
    return VolumePlace(of_node(pod.spec.node_name), _relative(path))


def _relative(path: str) -> str:
    relative = posixpath.normpath(path).strip("/")
    return "" if relative == "." else relative
