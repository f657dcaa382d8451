"""Images that cannot be pulled, by annotation of the pod or by their names (pkg/kubelet/images).

How often it was tried is known to this process alone, as it is to a kubelet.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from steersman.nodes.container_status import image_name

FIRST_WAIT: Final = 10.0
LONGEST_WAIT: Final = 300.0
"""Seconds between two tries: doubled each time."""


class Pulls(NamedTuple):
    """How often an image was tried in vain, and when last."""

    failures: int
    at: float

    @property
    def next(self) -> float:
        """When it is tried again."""
        return self.at + min(FIRST_WAIT * 2.0 ** min(self.failures - 1, 10), LONGEST_WAIT)


class Waiting(NamedTuple):
    """What the container says while it has no image, with what has happened (type, reason, message)."""

    reason: str
    message: str
    happened: tuple[tuple[str, str, str], ...]
    pulls: Pulls


def is_missing(image: str, patterns: Sequence[str]) -> bool:
    """Whether an image is one of those that nobody has; a pattern has the full name, or what the pod says."""
    full_name = image_name(image)
    return any(fnmatchcase(full_name, each) or fnmatchcase(image, each) for each in patterns)


def refused(full_name: str, said: str) -> str:
    """Why the image cannot be pulled: what the annotation says, or what containerd says of one that is not there."""
    if said not in ("", "true"):
        return said
    return (
        f'rpc error: code = NotFound desc = failed to pull and unpack image "{full_name}": failed to resolve reference '
        f'"{full_name}": {full_name}: not found'
    )


def waiting(image: str, error: str, before: Pulls | None, reason: str, now: float) -> Waiting:
    """The next state of a container whose image is not to be had; `reason` is what it waits for now."""
    if before is None or now >= before.next:
        failures = 1 if before is None else before.failures + 1
        happened = (
            ("Normal", "Pulling", f'Pulling image "{image}"'),
            ("Warning", "Failed", f'Failed to pull image "{image}": {error}'),
            ("Warning", "Failed", "Error: ErrImagePull"),
        )
        return Waiting("ErrImagePull", error, happened, Pulls(failures, now))
    text = f'Back-off pulling image "{image}"'
    told: tuple[tuple[str, str, str], ...] = ()
    if reason != "ImagePullBackOff":
        told = (("Normal", "BackOff", text), ("Warning", "Failed", "Error: ImagePullBackOff"))
    return Waiting("ImagePullBackOff", f"{text}: ErrImagePull: {error}", told, before)
