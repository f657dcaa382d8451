"""Images on nodes, and pulls of them (pkg/kubelet/images).

Pulls of some images fail, because of an annotation of the pod or of their names. Failed attempts are counted in memory
only, as in a kubelet.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from steersman.machinery.errors.field import quote
from steersman.machinery.values.durations import format_duration
from steersman.net.ascii import lower
from steersman.nodes.container_status import MOST_IMAGE, digest, image_name
from steersman.work.backoff import Backoff
from steersman.work.patterns import late_pattern

BACKOFF: Final = Backoff(10.0, 300.0)
"""Seconds between two attempts to pull an image."""
_SHOWN: Final = 1.0
"""Seconds that a failed pull is shown as failed, before its back-off is shown."""
_IDENTIFIER: Final = late_pattern("[a-f0-9]{64}")
_HOST: Final = r"(?:\[[a-fA-F0-9:]+\]|[A-Za-z0-9](?:[-A-Za-z0-9.]*[A-Za-z0-9])?)(?::[0-9]+)?"
_PART: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_NAME: Final = late_pattern(
    rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::[A-Za-z0-9_][-A-Za-z0-9_.]{{0,127}})?"
    r"(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?"
)

_MOST_PATH: Final = 255
_TOO_LONG: Final = f"repository name must not be more than {_MOST_PATH} characters"


class Pulls(NamedTuple):
    """Failed attempts to pull an image: their number and the time of the last."""

    failures: int
    at: float

    @property
    def next(self) -> float:
        """Time of the next attempt."""
        return self.at + BACKOFF.wait(self.failures - 1)


class ImageState(NamedTuple):
    """State of a container's image: present (no `reason`, no `next_sync`), being pulled (`next_sync` only), or failed
    (`reason`).
    """

    reason: str = ""
    message: str = ""
    events: tuple[tuple[str, str, str], ...] = ()
    """Events: type, reason and message."""
    pulls: Pulls | None = None
    pulling_since: float | None = None
    next_sync: float | None = None
    """Time of the next sync; None with a reason means the usual wait after a failed start."""


def is_missing(image: str, patterns: Sequence[str]) -> bool:
    """Return True if a pattern of missing images matches the image's full name or the name in the pod."""
    full_name, reference = image_name(image), image[:MOST_IMAGE]
    return any(fnmatchcase(full_name, each) or fnmatchcase(reference, each) for each in patterns)


def pull_error_text(full_name: str, said: str) -> str:
    """Return the error of a pull: the annotation's text `said`, or containerd's for an image that does not exist."""
    if said not in ("", "true"):
        return said
    return (
        f'rpc error: code = NotFound desc = failed to pull and unpack image "{full_name}": failed to resolve reference '
        f'"{full_name}": {full_name}: not found'
    )


def name_error(image: str) -> str:
    """Return the error in an image's name; "" for a valid one (distribution/reference, ParseNormalizedNamed)."""
    if len(image) > MOST_IMAGE:
        return _TOO_LONG
    if _IDENTIFIER.fullmatch(image):
        return f"invalid repository name ({image}), cannot specify 64-byte hexadecimal strings"
    first, slash, rest = image.partition("/")
    has_host = slash and ("." in first or ":" in first or first == "localhost" or first != lower(first))
    remote = (rest if has_host else image).partition(":")[0]
    if not has_host and "/" not in image:
        remote = f"library/{remote}"
    if remote != lower(remote):
        return f"invalid reference format: repository name ({remote}) must be lowercase"
    if not _NAME.fullmatch(image):
        return "invalid reference format"
    return _TOO_LONG if len(remote.partition("@")[0]) > _MOST_PATH else ""


def permanent_error(image: str, policy: str, error: str) -> tuple[str, str, str]:
    """Return waiting reason, message and event reason of an image that is never pulled; empty strings for others.

    An image is never pulled if its name is invalid, or if the pull policy is Never and it is missing.
    """
    if why := name_error(image):
        image = image[:MOST_IMAGE]
        text = f"Failed to apply default image tag {quote(image)}: couldn't parse image name {quote(image)}: {why}"
        return "InvalidImageName", text, "InspectFailed"
    if policy == "Never" and error:
        text = f"Container image {quote(image)} is not present with pull policy of Never"
        return "ErrImageNeverPull", text, "ErrImageNeverPull"
    return "", "", ""


def ensure_image(
    image: str,
    policy: str,
    *,
    error: str,
    is_present: bool,
    takes: float,
    before: Pulls | None,
    since: float | None,
    reason: str,
    now: float,
) -> ImageState:
    """Get an image by its pull policy and return its state.

    Args:
        error: Error of pulls of the image, "" if they succeed.
        takes: Duration of a pull in seconds.
        before: Failed attempts so far.
        since: Start of the pull that is under way.
        reason: Reason for which the container waits now.
    """
    why, message, event = permanent_error(image, policy, error)
    if why:
        return ImageState(why, message, (("Warning", event, message), ("Warning", "Failed", f"Error: {why}")))
    if not error and (policy == "Never" or (policy != "Always" and is_present)):
        text = f"Container image {quote(image)} already present on machine and can be accessed by the pod"
        return ImageState(events=(("Normal", "Pulled", text),))
    if error:
        return _failed_pull(image, error, before, reason, now)
    events: tuple[tuple[str, str, str], ...] = ()
    if since is None:
        since, events = now, (_pulling(image),)
    due = since + (0.0 if is_present else takes)
    if due > now:
        return ImageState(events=events, pulling_since=since, next_sync=due)
    took = format_duration(int((due - since) * 1000) * 1_000_000)
    text = (
        f"Successfully pulled image {quote(image)} in {took} ({took} including waiting). "
        f"Image size: {size_of(image_name(image))} bytes."
    )
    return ImageState(events=(*events, ("Normal", "Pulled", text)))


def size_of(full_name: str) -> int:
    """Return the size of an image in bytes, which depends on its name: between 4 and 260 MB."""
    return 4_000_000 + int(digest(full_name)[:7], 16)


def _pulling(image: str) -> tuple[str, str, str]:
    return "Normal", "Pulling", f"Pulling image {quote(image)}"


def _failed_pull(image: str, error: str, before: Pulls | None, reason: str, now: float) -> ImageState:
    if before is None or now >= before.next:
        pulls = Pulls(1 if before is None else before.failures + 1, now)
        events = (
            _pulling(image),
            ("Warning", "Failed", f"Failed to pull image {quote(image)}: {error}"),
            ("Warning", "Failed", "Error: ErrImagePull"),
        )
        return ImageState("ErrImagePull", error, events, pulls, next_sync=now + _SHOWN)
    text = f"Back-off pulling image {quote(image)}"
    earlier_events: tuple[tuple[str, str, str], ...] = ()
    if reason != "ImagePullBackOff":
        earlier_events = (("Normal", "BackOff", text), ("Warning", "Failed", "Error: ImagePullBackOff"))
    return ImageState(
        "ImagePullBackOff", f"{text}: ErrImagePull: {error}", earlier_events, before, next_sync=before.next
    )
