"""The state of a pod according to its status (pkg/api/v1/pod, pkg/controller controller_utils)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from steersman.api.core.v1 import Pod
from steersman.machinery.values import times
from steersman.machinery.values.conditions import find_condition, is_condition_true

TERMINAL_PHASES: Final = frozenset({"Succeeded", "Failed"})


def is_terminal(pod: Pod) -> bool:
    """Return True if the containers of a pod have ended and will not run again."""
    return pod.status.phase in TERMINAL_PHASES


def is_active(pod: Pod) -> bool:
    """Return True if a pod has not ended and is not being deleted."""
    return pod.metadata.deletion_timestamp is None and not is_terminal(pod)


def is_terminating(pod: Pod) -> bool:
    """Return True if a pod is being deleted and has not ended."""
    return pod.metadata.deletion_timestamp is not None and not is_terminal(pod)


def is_ready(pod: Pod) -> bool:
    """Return True if the pod has the condition Ready."""
    return is_condition_true(pod.status.conditions, "Ready")


def is_available(pod: Pod, min_ready_seconds: int, now: int) -> bool:
    """Return True if a pod has been ready for `min_ready_seconds`; `now` is in seconds since 1970."""
    if not is_ready(pod):
        return False
    if min_ready_seconds == 0:
        return True
    since = _ready_since(pod)
    return since is not None and since + min_ready_seconds <= now


def next_availability(pods: Iterable[Pod], min_ready_seconds: int, now: int) -> int | None:
    """Return the seconds until the next of these pods has been ready for long enough; None if none will be."""
    if min_ready_seconds <= 0:
        return None
    waits = (
        since + min_ready_seconds - now for pod in pods if is_ready(pod) and (since := _ready_since(pod)) is not None
    )
    return min((wait for wait in waits if wait > 0), default=None)


def _ready_since(pod: Pod) -> int | None:
    condition = find_condition(pod.status.conditions, "Ready")
    return (
        None if condition is None or not condition.last_transition_time else times.unix(condition.last_transition_time)
    )
