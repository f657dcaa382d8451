"""Statuses of containers, and questions that they answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final

from steersman.api.core.v1 import (
    ContainerState,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodStatus,
    VolumeMount,
    VolumeMountStatus,
)
from steersman.machinery.built_in.pod_resources import AnyContainer
from steersman.nodes.restart_all import RESTARTING

MOST_IMAGE: Final = 1024
"""Characters of an image's name; a longer name is invalid and is cut off here."""


def all_statuses(status: PodStatus) -> Iterator[ContainerStatus]:
    """Yield the statuses of a pod's containers in the order in which the containers start."""
    yield from status.init_container_statuses
    yield from status.container_statuses
    yield from status.ephemeral_container_statuses


def aligned(containers: Sequence[AnyContainer], statuses: Sequence[ContainerStatus]) -> list[ContainerStatus]:
    """Return one status for each container, in the order of the containers."""
    known = {each.name: each for each in statuses}
    return [
        known.get(each.name) or ContainerStatus(name=each.name, image=each.image[:MOST_IMAGE]) for each in containers
    ]


def never_started(status: ContainerStatus) -> bool:
    """Return True if a container has never started, or not since all containers of its pod were removed for
    a restart.
    """
    last = status.last_state.terminated
    begun = status.state.running is not None or status.state.terminated is not None
    return not begun and (last is None or last.reason == RESTARTING)


def mounted(mount: VolumeMount) -> VolumeMountStatus:
    """Return the status of a volume mount."""
    recursive = mount.recursive_read_only in ("Enabled", "IfPossible")
    return VolumeMountStatus(
        name=mount.name,
        mount_path=mount.mount_path,
        read_only=mount.read_only,
        recursive_read_only=("Enabled" if recursive else "Disabled") if mount.read_only else None,
    )


def wait(status: ContainerStatus, reason: str) -> None:
    """Set a container that has never started to waiting."""
    if never_started(status):
        status.state = ContainerState(waiting=ContainerStateWaiting(reason=reason))
        status.started = False


def image_name(image: str) -> str:
    """Return an image's full name, with registry and tag."""
    image = image[:MOST_IMAGE]
    first, slash, _ = image.partition("/")
    if not slash:
        image = f"docker.io/library/{image}"
    elif not ("." in first or ":" in first or first == "localhost"):
        image = f"docker.io/{image}"
    named = "@" in image or ":" in image.rpartition("/")[2]
    return image if named else f"{image}:latest"


def digest(*parts: str) -> str:
    """Return a name for an image or a container: 64 hexadecimal digits."""
    return sha256("\0".join(parts).encode()).hexdigest()


def container_id(uid: str, name: str, restarts: int) -> str:
    """Return the ID of a container of a pod after a number of restarts."""
    return f"containerd://{digest(uid, name, str(restarts))}"


def is_of_other_kubelet(pod: Pod, status: ContainerStatus) -> bool:
    """Return True for a running container that a kubelet of another cluster has started.

    Only its status tells what it does: it runs, whatever its command would do here.
    """
    return status.state.running is not None and status.container_id != container_id(
        pod.metadata.uid, status.name, status.restart_count
    )


def sandbox_id(uid: str) -> str:
    """Return the ID of a pod's sandbox in the container runtime."""
    return digest(uid, "sandbox")
