"""Recycler, which empties a volume by a pod so that another claim can use it (deprecated, as upstream)."""

from __future__ import annotations

from typing import Final

from steersman.api.core.v1 import (
    Container,
    HostPathVolumeSource,
    NFSVolumeSource,
    PersistentVolume,
    Pod,
    PodSpec,
    Volume,
    VolumeMount,
)
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.resources import PODS
from steersman.controllers.volumes.binder.plugins import NoPlugin, is_recyclable
from steersman.machinery.built_in.pod_state import is_terminal
from steersman.machinery.built_in.volumes import storage_of
from steersman.machinery.values.quantity import parse

NAMESPACE: Final = "default"
_PREFIX: Final = "recycler-for-"
_IMAGE: Final = "registry.k8s.io/build-image/debian-base:bookworm-v1.0.6"
_SCRIPT: Final = 'test -e /scrub && find /scrub -mindepth 1 -delete && test -z "$(ls -A /scrub)" || exit 1'
_LEAST_SECONDS: Final = {"host_path": 60, "nfs": 300}
_SECONDS_A_GI: Final = 30
_RUNS_FOR: Final = "simulation.steersman.dev/run-for"
"""Annotation for simulated nodes, which do not run the script: it sets the pod's run time."""


def recycled_by(pod: Pod) -> str:
    """Return the name of the volume that a recycler pod empties; "" for any other pod."""
    metadata = pod.metadata
    if metadata.namespace != NAMESPACE or not metadata.name.startswith(_PREFIX):
        return ""
    return metadata.name.removeprefix(_PREFIX)


class Recycler:
    """Creates recycler pods, checks their results, and deletes them. Its methods raise StatusError, Unreachable."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def recycle(self, volume: PersistentVolume) -> bool:
        """Return True if the volume has been emptied, False while a pod is at work. Call it again when the pod changes.

        Raises NoPlugin if no pod can empty the volume, or the pod has failed.
        """
        if not is_recyclable(volume):
            raise NoPlugin("No recycler plugin found for the volume!")
        name = _PREFIX + volume.metadata.name
        pod = await self._client.find(PODS, name, NAMESPACE)
        if pod is None:
            await self._client.create(PODS, _pod(name, volume))
            return False
        if not is_terminal(pod):
            return False
        await self._client.delete(PODS, name, NAMESPACE)
        if pod.status.phase == "Failed":
            text = pod.status.message or "pod failed, pod.Status.Message unknown"
            raise NoPlugin(f"Recycle failed: failed to recycle volume: {text}")
        return True


def _pod(name: str, volume: PersistentVolume) -> Pod:
    source, kind = Volume(name="vol"), "nfs"
    if volume.spec.host_path is not None:
        source.host_path, kind = HostPathVolumeSource(path=volume.spec.host_path.path), "host_path"
    elif volume.spec.nfs is not None:
        source.nfs = NFSVolumeSource(server=volume.spec.nfs.server, path=volume.spec.nfs.path)
    size = parse(storage_of(volume.spec.capacity)).as_int() >> 30
    container = Container(
        name="pv-recycler",
        image=_IMAGE,
        command=["/bin/sh"],
        args=["-c", _SCRIPT],
        volume_mounts=[VolumeMount(name="vol", mount_path="/scrub")],
    )
    return Pod(
        metadata=ObjectMeta(name=name, namespace=NAMESPACE, annotations={_RUNS_FOR: "1s"}),
        spec=PodSpec(
            active_deadline_seconds=max(size * _SECONDS_A_GI, _LEAST_SECONDS[kind]),
            restart_policy="Never",
            volumes=[source],
            containers=[container],
        ),
    )
