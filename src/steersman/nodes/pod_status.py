"""What a pod's containers say of the pod: its phase and its conditions (pkg/kubelet `kubelet_pods.go`, `status`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steersman.api.core.v1 import ContainerStatus, Pod, PodCondition, PodStatus
from steersman.machinery.built_in.pod_resources import is_sidecar
from steersman.nodes import restart_all

OF_KUBELET = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
"""The conditions that a node puts, in its order."""


def phase_of(pod: Pod, status: PodStatus, *, initialized: bool, stopping: bool) -> str:
    """The phase that the containers' states come to."""
    never = pod.spec.restart_policy == "Never"
    if not initialized:
        failed = any(_failed(each) for each in status.init_container_statuses)
        return "Failed" if (failed and never) or (stopping and _any_started(status)) else "Pending"
    states = status.container_statuses
    if any(each.state.running is not None for each in states):
        return "Running"
    if any(each.state.waiting is not None and each.last_state.terminated is None for each in states):
        return "Failed" if stopping and _any_started(status) else "Pending"
    ended = [each for each in states if each.state.terminated is not None]
    if len(ended) < len(states):
        return "Running" if not stopping else "Failed"
    if pod.spec.restart_policy == "Always" and not stopping:
        return "Running"
    if all(not _failed(each) for each in states):
        return "Succeeded"
    if pod.spec.restart_policy == "OnFailure" and not stopping:
        return "Running"
    return "Failed"


def _any_started(status: PodStatus) -> bool:
    started = (*status.init_container_statuses, *status.container_statuses)
    return any(each.state.terminated is not None or each.state.running is not None for each in started)


def _failed(status: ContainerStatus) -> bool:
    last = status.state.terminated or status.last_state.terminated
    return last is not None and last.exit_code != 0 and last.reason != restart_all.RESTARTING


def put_conditions(pod: Pod, status: PodStatus, now: str, *, restarting: bool = False) -> None:
    """Makes the conditions say how it is; those of others stay. `restarting` is whether all containers start anew."""
    wanted = {each.type: each for each in _conditions(pod, status)}
    if (of_all := restart_all.condition(pod, status, restarting=restarting)) is not None:
        wanted[of_all.type] = of_all
    old = {each.type: each for each in status.conditions}
    for type_, condition in wanted.items():
        before = old.get(type_)
        same = before is not None and before.status == condition.status
        condition.last_transition_time = before.last_transition_time if before is not None and same else now
        condition.observed_generation = pod.metadata.generation
    others = [each for each in status.conditions if each.type not in wanted]
    status.conditions = [*others, *wanted.values()]


def put_disruption(pod: Pod, status: PodStatus, message: str, now: str) -> None:
    """Says that the pod has ended since its node had to be rid of it."""
    others = [each for each in status.conditions if each.type != "DisruptionTarget"]
    disruption = _condition("DisruptionTarget", good=True, reason="TerminationByKubelet", message=message)
    disruption.last_transition_time, disruption.observed_generation = now, pod.metadata.generation
    status.conditions = [disruption, *others]


def rejected(pod: Pod, reason: str, message: str, now: str) -> PodStatus:
    """The status of a pod that its node does not take."""
    return PodStatus(
        phase="Failed", reason=reason, message=f"Pod was rejected: {message}", start_time=now,
        qos_class=pod.status.qos_class, observed_generation=pod.metadata.generation,
    )  # fmt: skip


def _conditions(pod: Pod, status: PodStatus) -> Iterator[PodCondition]:
    over = status.phase in ("Succeeded", "Failed")
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
    if status.phase in ("Succeeded", "Failed"):
        reason = "PodCompleted" if status.phase == "Succeeded" else "PodFailed"
        return _condition("ContainersReady", good=False, reason=reason)
    sidecars = [
        each for container, each in zip(pod.spec.init_containers, status.init_container_statuses, strict=True)
        if is_sidecar(container)
    ]  # fmt: skip
    unready = [each.name for each in (*sidecars, *status.container_statuses) if not each.ready]
    if not unready:
        return _condition("ContainersReady", good=True)
    text = f"containers with unready status: {_listed(unready)}"
    return _condition("ContainersReady", good=False, reason="ContainersNotReady", message=text)


def _ready(pod: Pod, status: PodStatus, containers_ready: PodCondition) -> PodCondition:
    if containers_ready.status != "True":
        return _condition("Ready", good=False, reason=containers_ready.reason, message=containers_ready.message)
    found = {each.type: each.status for each in status.conditions}
    missing = []
    for gate in pod.spec.readiness_gates:
        name = gate.condition_type
        if name not in found:
            missing.append(f'corresponding condition of pod readiness gate "{name}" does not exist.')
        elif found[name] != "True":
            missing.append(f'the status of pod readiness gate "{name}" is not "True", but {found[name]}')
    if missing:
        return _condition("Ready", good=False, reason="ReadinessGatesNotReady", message=", ".join(missing))
    return _condition("Ready", good=True)


def _listed(names: Sequence[str]) -> str:
    return f"[{' '.join(names)}]"
