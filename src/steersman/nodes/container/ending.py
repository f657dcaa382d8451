"""Termination of a container: its preStop hook and its grace period (pkg/kubelet `kuberuntime`, killContainer)."""

from __future__ import annotations

from typing import Final

from steersman.api.core.v1 import (
    ContainerState,
    ContainerStateTerminated,
)
from steersman.machinery.values import times
from steersman.nodes.container import hooks
from steersman.nodes.container.sync import ContainerSync, fractional, status_time
from steersman.nodes.context import PRE_STOP, Termination

KILLED: Final = 137
"""Exit code of a container that was killed (128 + SIGKILL)."""
_GRACE_OF_EVICTED: Final = 1.0
"""Seconds of grace for a container of an evicted pod."""
_LEAST_GRACE: Final = 2.0
"""Seconds of grace that a container has after its hook at least."""

_SECOND: Final = 1.0
"""Seconds added to a deletion timestamp, which lacks its fraction, so that no grace period is cut short."""
_COUNTED: Final = 86400.0 * 365
"""Seconds of grace up to which a deletion timestamp is used: later times may exceed what a timestamp can express."""


def begin_pod_termination(one: ContainerSync) -> Termination:
    """Begin the termination of a container because its pod ends, with the grace period of the pod. Return it."""
    sync = one.sync
    metadata = sync.pod.metadata
    at = sync.now
    if metadata.deletion_timestamp is not None:
        grace = float(metadata.deletion_grace_period_seconds or 0)
        if grace < _COUNTED:
            at = min(at, times.unix(metadata.deletion_timestamp) - grace + _SECOND)
    elif sync.context.eviction_message:
        grace = _GRACE_OF_EVICTED
    else:
        grace = float(sync.pod.spec.termination_grace_period_seconds or 0)
    return begin_termination(
        one, Termination(one.status.container_id, at, grace), f"Stopping container {one.container.name}"
    )


def has_shorter_grace(one: ContainerSync, termination: Termination) -> bool:
    """Return True if the pod is deleted with a shorter grace period than the container's termination began with.

    The termination then begins again with the shorter period.
    """
    metadata = one.sync.pod.metadata
    return metadata.deletion_timestamp is not None and (metadata.deletion_grace_period_seconds or 0) < termination.grace


def begin_termination(one: ContainerSync, termination: Termination, text: str) -> Termination:
    """Record the termination of a container, with the `Killing` event `text`. Return `termination`."""
    one.record_event("Normal", "Killing", text)
    one.update_record(termination=termination)
    return termination


def end_time_of(one: ContainerSync, termination: Termination) -> tuple[float | None, bool]:
    """Return the time at which a terminating container ends, and True if it has to be killed then.

    The time is None while the command of its preStop hook still has to be run.
    """
    sync, lifecycle = one.sync, one.container.lifecycle
    hook = None if lifecycle is None or termination.grace <= 0 else lifecycle.pre_stop
    ran = termination.hook or one.result_of(PRE_STOP, termination.container_id)
    seconds = hooks.seconds_of(hook, ran)
    if seconds is None:
        sync.resync_at(sync.now)
        return None, False
    failed = hook is not None and ran is not None and ran.exit_code != 0 and seconds <= termination.grace
    if failed and not termination.hook_event_recorded and sync.is_due(termination.at + seconds):
        one.record_event("Warning", "FailedPreStopHook", "PreStopHook failed")
        termination = termination._replace(hook_event_recorded=True)
    one.update_record(termination=termination._replace(hook=ran))
    taken = min(seconds, termination.grace)
    left = max(termination.grace - taken, _LEAST_GRACE if hook is not None else 0.0)
    stops_after = one.behaves.stops_after
    return termination.at + taken + min(stops_after, left), stops_after > left


def terminate(one: ContainerSync, code: int, reason: str, at: float, message: str = "") -> None:
    """Set the status of a container to terminated, with `code`, `reason` and termination `message`, at the time `at`.

    An empty `reason` becomes `Completed` or `Error`, by the code.
    """
    status = one.status
    running = status.state.running
    status.state = ContainerState(
        terminated=ContainerStateTerminated(
            exit_code=code,
            reason=reason or ("Error" if code else "Completed"),
            started_at=None if running is None else running.started_at,
            finished_at=status_time(at),
            container_id=status.container_id,
            message=message,
        )
    )
    status.ready = status.started = False
    one.update_record(ended_at=fractional(at))
    if one.sync.context.shared is not None:
        one.sync.context.shared.end_container(status.container_id, at)
