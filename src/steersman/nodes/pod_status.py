"""Phase and conditions of a pod, computed from its containers (pkg/kubelet `kubelet_pods.go`, `status`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from steersman.api.core.v1 import (
    Container,
    ContainerStateTerminated,
    ContainerStatus,
    Pod,
    PodCondition,
    PodStatus,
)
from steersman.machinery.built_in.pod_resources import is_sidecar
from steersman.machinery.built_in.pod_state import TERMINAL_PHASES
from steersman.machinery.values.conditions import time_condition, without_conditions
from steersman.nodes import restart_all
from steersman.nodes.container.restarts import should_restart
from steersman.nodes.container_status import never_started


def phase_of(pod: Pod, status: PodStatus, *, terminal: bool) -> str:
    """Return the phase of a pod. `terminal` says that no container runs or will be restarted."""
    initial, failed = _initialization_of(pod, status)
    if failed:
        return "Failed"
    whole = _counts_of(pod, status)
    begun = not all(map(never_started, status.container_statuses))
    if initial or (whole.sidecars_pending and not begun) or whole.waiting:
        is_cut_off = terminal and any(map(_has_started, (*status.init_container_statuses, *status.container_statuses)))
        return "Failed" if is_cut_off else "Pending"
    if whole.running:
        return "Running"
    if not whole.stopped:
        return "Pending"
    if whole.restarting and not terminal:
        return "Running"
    return "Succeeded" if whole.stopped == whole.succeeded else "Failed"


class _Counts(NamedTuple):
    """Numbers of sidecars and containers by state."""

    running: int
    waiting: int
    """Not started yet."""
    stopped: int
    """Ended containers, without sidecars."""
    succeeded: int
    restarting: int
    """Ended containers that will be restarted."""
    sidecars_pending: int
    """Sidecars that are not started."""


def _initialization_of(pod: Pod, status: PodStatus) -> tuple[int, int]:
    """Return the number of init containers that have not ended and the number that failed for good, without
    sidecars.
    """
    pending = failed = 0
    for container, each in _pairs(pod.spec.init_containers, status.init_container_statuses):
        if is_sidecar(container):
            continue
        last = _end_of(each)
        if last is None:
            pending += 1
        elif last.exit_code:
            failed += not _restarts(pod, container, last)
    return pending, failed


def _counts_of(pod: Pod, status: PodStatus) -> _Counts:
    sidecars = [
        each
        for container, each in _pairs(pod.spec.init_containers, status.init_container_statuses)
        if is_sidecar(container)
    ]
    running = sum(each.state.running is not None for each in (*sidecars, *status.container_statuses))
    new = sum(_end_of(each) is None and each.state.running is None for each in sidecars)
    waiting, stopped, succeeded, restarting = new, 0, 0, 0
    for container, each in _pairs(pod.spec.containers or (), status.container_statuses):
        last = _end_of(each)
        if each.state.running is not None:
            continue
        if last is None:
            waiting += 1
            continue
        stopped += 1
        succeeded += each.state.terminated is not None and not last.exit_code
        restarting += _restarts(pod, container, last)
    pending = new + sum(each.state.running is not None and not each.started for each in sidecars)
    return _Counts(running, waiting, stopped, succeeded, restarting, pending)


def _end_of(status: ContainerStatus) -> ContainerStateTerminated | None:
    """Return the last termination of a container that does not run; None if there is none."""
    if status.state.running is not None:
        return None
    return status.state.terminated or status.last_state.terminated


def _restarts(pod: Pod, container: Container, last: ContainerStateTerminated) -> bool:
    return last.reason == restart_all.RESTARTING or should_restart(pod, container, last.exit_code)


def _has_started(status: ContainerStatus) -> bool:
    return any(
        each is not None for each in (status.state.running, status.state.terminated, status.last_state.terminated)
    )


def _pairs(
    containers: Sequence[Container], statuses: Sequence[ContainerStatus]
) -> Iterator[tuple[Container, ContainerStatus]]:
    yield from zip(containers, statuses, strict=True)


def put_conditions(pod: Pod, status: PodStatus, now: str, *, restarting: bool = False) -> None:
    """Set the conditions that the kubelet owns; others stay.

    `restarting` says that all containers are being restarted.
    """
    conditions = list(_conditions(pod, status))
    if (of_all := restart_all.condition(pod, status, restarting=restarting)) is not None:
        conditions.append(of_all)
    for condition in conditions:
        condition.last_transition_time, condition.observed_generation = now, pod.metadata.generation
        time_condition(condition, status.conditions)
    others = without_conditions(status.conditions, *(each.type for each in conditions))
    status.conditions = [*others, *conditions]


def put_disruption(pod: Pod, status: PodStatus, message: str, now: str) -> None:
    """Set the DisruptionTarget condition of a pod that the kubelet has evicted."""
    others = without_conditions(status.conditions, "DisruptionTarget")
    disruption = _condition("DisruptionTarget", good=True, reason="TerminationByKubelet", message=message)
    disruption.last_transition_time, disruption.observed_generation = now, pod.metadata.generation
    status.conditions = [disruption, *others]


def rejected(pod: Pod, reason: str, message: str, now: str) -> PodStatus:
    """Return the status of a pod that its node rejects."""
    return PodStatus(
        phase="Failed",
        reason=reason,
        message=f"Pod was rejected: {message}",
        start_time=now,
        qos_class=pod.status.qos_class,
        observed_generation=pod.metadata.generation,
    )


def _conditions(pod: Pod, status: PodStatus) -> Iterator[PodCondition]:
    over = status.phase in TERMINAL_PHASES
    yield _condition("PodReadyToStartContainers", good=bool(status.pod_ip) and not over)
    yield _initialized(pod, status)
    containers_ready = _containers_ready(pod, status)
    yield _ready(pod, status, containers_ready)
    yield containers_ready
    yield _condition("PodScheduled", good=True)


def _condition(type_: str, *, good: bool, reason: str = "", message: str = "") -> PodCondition:
    return PodCondition(type=type_, status="True" if good else "False", reason=reason, message=message)


def _initialized(pod: Pod, status: PodStatus) -> PodCondition:
    if status.phase == "Succeeded":
        return _condition("Initialized", good=True, reason="PodCompleted")
    started = any(
        each.state.running is not None or each.state.terminated is not None or each.last_state.terminated is not None
        for each in status.container_statuses
    )
    pairs = zip(pod.spec.init_containers, status.init_container_statuses, strict=True)
    incomplete = [each.name for container, each in pairs if not (each.started if is_sidecar(container) else each.ready)]
    if started or not incomplete:
        return _condition("Initialized", good=True)
    text = f"containers with incomplete status: {_listed(incomplete)}"
    return _condition("Initialized", good=False, reason="ContainersNotInitialized", message=text)


def _containers_ready(pod: Pod, status: PodStatus) -> PodCondition:
    if status.phase in TERMINAL_PHASES:
        reason = "PodCompleted" if status.phase == "Succeeded" else "PodFailed"
        return _condition("ContainersReady", good=False, reason=reason)
    sidecars = [
        each
        for container, each in zip(pod.spec.init_containers, status.init_container_statuses, strict=True)
        if is_sidecar(container)
    ]
    unready = [each.name for each in (*sidecars, *status.container_statuses) if not each.ready]
    if not unready:
        return _condition("ContainersReady", good=True)
    text = f"containers with unready status: {_listed(unready)}"
    return _condition("ContainersReady", good=False, reason="ContainersNotReady", message=text)


def _ready(pod: Pod, status: PodStatus, containers_ready: PodCondition) -> PodCondition:
    if containers_ready.status != "True":
        return _condition("Ready", good=False, reason=containers_ready.reason, message=containers_ready.message)
    conditions = {each.type: each.status for each in status.conditions}
    missing = []
    for gate in pod.spec.readiness_gates:
        name = gate.condition_type
        if name not in conditions:
            missing.append(f'corresponding condition of pod readiness gate "{name}" does not exist.')
        elif conditions[name] != "True":
            missing.append(f'the status of pod readiness gate "{name}" is not "True", but {conditions[name]}')
    if missing:
        return _condition("Ready", good=False, reason="ReadinessGatesNotReady", message=", ".join(missing))
    return _condition("Ready", good=True)


def _listed(names: Sequence[str]) -> str:
    return f"[{' '.join(names)}]"
