"""Statuses of containers: made for each container, and what they say of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final

from steersman.api.core.v1 import (
    ContainerState,
    ContainerStateWaiting,
    ContainerStatus,
    PodStatus,
    VolumeMount,
    VolumeMountStatus,
)
from steersman.machinery.built_in.pod_resources import AnyContainer
from steersman.nodes.restart_all import RESTARTING

MOST_IMAGE: Final = 1024
"""Characters of the name of an image; a longer one is none, and is shown up to here."""


def all_statuses(status: PodStatus) -> Iterator[ContainerStatus]:
    """Those of a pod, in the order in which its containers begin."""
    yield from status.init_container_statuses
    yield from status.container_statuses
    yield from status.ephemeral_container_statuses


def aligned(containers: Sequence[AnyContainer], statuses: Sequence[ContainerStatus]) -> list[ContainerStatus]:
    """A status for each container, in the order of the containers."""
    known = {each.name: each for each in statuses}
    return [
        known.get(each.name) or ContainerStatus(name=each.name, image=each.image[:MOST_IMAGE]) for each in containers
    ]


def never_started(status: ContainerStatus) -> bool:
    """Whether the container has not begun yet, or not since all of them were taken away."""
    last = status.last_state.terminated
    begun = status.state.running is not None or status.state.terminated is not None
    return not begun and (last is None or last.reason == RESTARTING)


def mounted(mount: VolumeMount) -> VolumeMountStatus:
    """What its status says of a volume that a container has."""
    recursive = mount.recursive_read_only in ("Enabled", "IfPossible")
    return VolumeMountStatus(
        name=mount.name,
        mount_path=mount.mount_path,
        read_only=mount.read_only,
        recursive_read_only=("Enabled" if recursive else "Disabled") if mount.read_only else None,
    )


def wait(status: ContainerStatus, reason: str) -> None:
    """A container that has not begun waits for something."""
    if never_started(status):
        status.state = ContainerState(waiting=ContainerStateWaiting(reason=reason))
        status.started = False


def image_name(image: str) -> str:
    """An image's name in full: with its registry and its tag."""
    image = image[:MOST_IMAGE]
    first, slash, _ = image.partition("/")
    if not slash:
        image = f"docker.io/library/{image}"
    elif not ("." in first or ":" in first or first == "localhost"):
        image = f"docker.io/{image}"
    named = "@" in image or ":" in image.rpartition("/")[2]
    return image if named else f"{image}:latest"


def digest(*parts: str) -> str:
    """A name for an image or a container: 64 hexadecimal digits."""
    return sha256("\0".join(parts).encode()).hexdigest()


def sandbox_id(uid: str) -> str:
    """Return the name of a pod's sandbox, as a container runtime has it."""
    return digest(uid, "sandbox")
