"""What a pod's status says of it (pkg/api/v1/pod, pkg/controller controller_utils)."""

from __future__ import annotations

from collections.abc import Iterable

from steersman.api.core.v1 import Pod, PodCondition
from steersman.machinery.values import times


def condition_of(pod: Pod, type_: str) -> PodCondition | None:
    """The condition of that type."""
    for each in pod.status.conditions:
        if each.type == type_:
            return each
    return None


def is_terminal(pod: Pod) -> bool:
    """Whether its containers have ended and will not run again."""
    return pod.status.phase in ("Succeeded", "Failed")


def is_active(pod: Pod) -> bool:
    """Whether it has not ended and is not being deleted."""
    return pod.metadata.deletion_timestamp is None and pod.status.phase not in ("Succeeded", "Failed")


def is_terminating(pod: Pod) -> bool:
    """Whether it is being deleted and has not ended."""
    return pod.metadata.deletion_timestamp is not None and pod.status.phase not in ("Succeeded", "Failed")


def is_ready(pod: Pod) -> bool:
    """Whether it serves."""
    for each in pod.status.conditions:
        if each.type == "Ready":
            return each.status == "True"
    return False


def is_available(pod: Pod, min_ready_seconds: int, now: int) -> bool:
    """Whether it has served for so many seconds; `now` is in seconds since 1970."""
    if not is_ready(pod):
        return False
    if min_ready_seconds == 0:
        return True
    since = _ready_since(pod)
    return since is not None and since + min_ready_seconds <= now


def next_availability(pods: Iterable[Pod], min_ready_seconds: int, now: int) -> int | None:
    """In how many seconds the next of them will have served long enough; None if none will."""
    if min_ready_seconds <= 0:
        return None
    waits = (
        since + min_ready_seconds - now for pod in pods if is_ready(pod) and (since := _ready_since(pod)) is not None
    )
    return min((wait for wait in waits if wait > 0), default=None)


def _ready_since(pod: Pod) -> int | None:
    found = condition_of(pod, "Ready")
    return None if found is None or not found.last_transition_time else times.unix(found.last_transition_time)
