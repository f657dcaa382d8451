"""Restarts of ended containers, with the restart back-off (pkg/kubelet `kuberuntime`, doBackOff)."""

from __future__ import annotations

from typing import Final

from steersman.api.core.v1 import (
    ContainerState,
    ContainerStateWaiting,
    ContainerStatus,
    EphemeralContainer,
    Pod,
)
from steersman.machinery.built_in.pod_resources import AnyContainer, is_sidecar
from steersman.machinery.values import times
from steersman.machinery.values.durations import format_duration
from steersman.nodes import restart_all
from steersman.nodes.container.sync import ContainerSync, full_name
from steersman.nodes.context import exact_time
from steersman.work.backoff import Backoff

BACKOFF: Final = Backoff(10.0, 300.0)
"""Seconds before an ended container is restarted."""
_BACKOFF_RESET: Final = 600.0
"""Seconds of running after which the next restart has no back-off."""


def is_restarted(pod: Pod, container: AnyContainer, status: ContainerStatus) -> bool:
    """Return True if an ended container is to be restarted."""
    last = status.state.terminated or status.last_state.terminated
    code = last.exit_code if last is not None else 0
    if isinstance(container, EphemeralContainer):
        return False
    if (rule := restart_all.matching_rule(container, code)) is not None:
        return rule.action == "Restart"
    if is_init_container(pod, container) and not is_sidecar(container) and code == 0:
        return False
    return should_restart(pod, container, code)


def should_restart(pod: Pod, container: AnyContainer, code: int) -> bool:
    """Return True if the restart rules and policy of a container restart it after it has ended with `code`."""
    if restart_all.matching_rule(container, code) is not None:
        return True
    policy = container.restart_policy or pod.spec.restart_policy
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def is_backoff_over(one: ContainerSync) -> bool:
    """Return True if the restart back-off of an ended container is over; otherwise set its status to waiting."""
    sync, status, last = one.sync, one.status, one.last_end
    assert last is not None
    finished = exact_time(last.finished_at, one.record.ended_at)
    ran = finished - times.unix(last.started_at or last.finished_at or times.now())
    failures = 0 if ran >= _BACKOFF_RESET else status.restart_count
    seconds = 0.0 if failures == 0 else BACKOFF.wait(failures - 1)
    if finished + seconds <= sync.now or _is_due_since_before(one, seconds):
        return True
    sync.resync_at(finished + seconds)
    if status.state.waiting is None:
        name, pod = one.container.name, full_name(sync.pod)
        text = f"back-off {format_duration(int(seconds) * 10**9)} restarting failed container={name} pod={pod}"
        status.last_state = ContainerState(terminated=last)
        status.state = ContainerState(waiting=ContainerStateWaiting(reason="CrashLoopBackOff", message=text))
        one.record_event("Warning", "BackOff", f"Back-off restarting failed container {name} in pod {pod}")
    return False


def _is_due_since_before(one: ContainerSync, seconds: float) -> bool:
    """Return True if a container that was ended for a probe restarts at once.

    Its back-off, halved, counts from the termination before the last.
    """
    before = one.status.last_state.terminated
    if one.container.name not in one.sync.ended_for_probes:
        return False
    if before is None or before.finished_at is None or seconds <= BACKOFF.first:
        return True
    return times.unix(before.finished_at) + seconds / 2 <= one.sync.now


def is_init_container(pod: Pod, container: AnyContainer) -> bool:
    """Return True if a container is one of the pod's init containers."""
    return any(each is container for each in pod.spec.init_containers)
