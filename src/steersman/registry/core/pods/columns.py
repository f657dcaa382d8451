"""Cells of pods and pod templates in Tables, as `kubectl get pods` shows them."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from steersman.api.core import v1 as core
from steersman.machinery.values import times
from steersman.rest.resource import AGE, Column

NONE: Final = "<none>"

_SCHEDULING_GATED: Final = "SchedulingGated"
_NODE_LOST: Final = "NodeLost"
"""The status reason that the node lifecycle controller sets on pods of an unreachable node."""


class PodSummary(Struct):
    """The data of the Ready, Status and Restarts cells. `last_restart` is a time or ""."""

    reason: str
    ready: int
    containers: int
    restarts: int = 0
    last_restart: str = ""


class _Restarts(Struct):
    count: int = 0
    last: str = ""

    def add(self, status: core.ContainerStatus) -> None:
        self.count += status.restart_count
        last = status.last_state.terminated
        # All times are UTC in text of one width, so the later time is the greater text.
        if last is not None and last.finished_at is not None and last.finished_at > self.last:
            self.last = last.finished_at


def summarize(pod: core.Pod) -> PodSummary:
    """Return the data of a pod's cells, with kubectl's order of precedence for the Status cell."""
    spec, status = pod.spec, pod.status
    sidecars = {c.name for c in spec.init_containers if c.restart_policy == "Always"}
    summary = PodSummary(
        reason=status.reason or status.phase, ready=0, containers=len(spec.containers or ()) + _sidecar_count(spec)
    )
    if any(c.type == "PodScheduled" and c.reason == _SCHEDULING_GATED for c in status.conditions):
        summary.reason = _SCHEDULING_GATED
    sidecar_restarts, initializing = _summarize_init_containers(pod, sidecars, summary)
    if not initializing or _condition(status, "Initialized"):
        _summarize_containers(status, sidecar_restarts, summary)
    if pod.metadata.deletion_timestamp is not None:
        if status.reason == _NODE_LOST:
            summary.reason = "Unknown"
        elif status.phase not in ("Failed", "Succeeded"):
            summary.reason = "Terminating"
    return summary


def _sidecar_count(spec: core.PodSpec) -> int:
    return sum(1 for c in spec.init_containers if c.restart_policy == "Always")


def _summarize_init_containers(pod: core.Pod, sidecars: set[str], summary: PodSummary) -> tuple[_Restarts, bool]:
    """Add the state of the init containers to `summary`.

    Returns the restarts of the sidecars, and True if initialization is still going on.
    """
    everything, of_sidecars = _Restarts(), _Restarts()
    initializing = False
    for index, status in enumerate(pod.status.init_container_statuses):
        everything.add(status)
        is_sidecar = status.name in sidecars
        if is_sidecar:
            of_sidecars.add(status)
        terminated, waiting = status.state.terminated, status.state.waiting
        if terminated is not None and terminated.exit_code == 0:
            continue
        if is_sidecar and status.started:
            summary.ready += status.ready
            continue
        if terminated is not None:
            summary.reason = "Init:" + _termination(terminated)
        elif waiting is not None and waiting.reason and waiting.reason != "PodInitializing":
            summary.reason = "Init:" + waiting.reason
        else:
            summary.reason = f"Init:{index}/{len(pod.spec.init_containers)}"
        initializing = True
        break
    summary.restarts, summary.last_restart = everything.count, everything.last
    return of_sidecars, initializing


def _summarize_containers(status: core.PodStatus, restarts: _Restarts, summary: PodSummary) -> None:
    running = False
    failure = ""
    for container in reversed(status.container_statuses):
        restarts.add(container)
        state = container.state
        if state.waiting is not None and state.waiting.reason:
            summary.reason = state.waiting.reason
        elif state.terminated is not None:
            summary.reason = _termination(state.terminated)
            if state.terminated.exit_code != 0:
                failure = summary.reason
        elif container.ready and state.running is not None:
            running = True
            summary.ready += 1
    if summary.reason == "Completed":
        if running and _condition(status, "Ready"):
            summary.reason = "Running"
        elif failure:
            summary.reason = failure
        elif running:
            summary.reason = "NotReady"
    summary.restarts, summary.last_restart = restarts.count, restarts.last


def _termination(state: core.ContainerStateTerminated) -> str:
    if state.reason:
        return state.reason
    return f"Signal:{state.signal}" if state.signal else f"ExitCode:{state.exit_code}"


def _condition(status: core.PodStatus, type_: str) -> bool:
    return any(c.type == type_ and c.status == "True" for c in status.conditions)


def ready(pod: core.Pod) -> str:
    """Return the number of ready containers and of all containers, e.g. "1/2"."""
    summary = summarize(pod)
    return f"{summary.ready}/{summary.containers}"


def restarts(pod: core.Pod) -> str:
    """Return the number of container restarts and the age of the last restart: "3 (5m ago)"."""
    summary = summarize(pod)
    if summary.restarts and summary.last_restart:
        return f"{summary.restarts} ({times.age(summary.last_restart, times.unix_now())} ago)"
    return str(summary.restarts)


def pod_ip(pod: core.Pod) -> str:
    """Return the pod's first address, or `<none>`."""
    return (pod.status.pod_ips[0].ip if pod.status.pod_ips else "") or NONE


def readiness_gates(pod: core.Pod) -> str:
    """Return the number of readiness gates whose condition is true, and of all readiness gates: "1/2"."""
    gates = pod.spec.readiness_gates
    if not gates:
        return NONE
    first: dict[str, str] = {}
    for condition in pod.status.conditions:
        first.setdefault(condition.type, condition.status)
    passed = sum(first.get(gate.condition_type) == "True" for gate in gates)
    return f"{passed}/{len(gates)}"


_ENDED: Final = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}


def row_conditions(pod: core.Pod) -> list[dict[str, Any]]:
    """Return a condition that marks the row of a finished pod, so that clients can hide the row."""
    phase = pod.status.phase
    if phase not in _ENDED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _ENDED[phase]}]


POD_COLUMNS: Final = (
    Column("Ready", ready, description="The aggregate readiness state of this pod for accepting traffic."),
    Column("Status", lambda p: summarize(p).reason, description="The aggregate status of the containers in this pod."),
    Column(
        "Restarts",
        restarts,
        description="The number of times the containers in this pod have been restarted and when the last container "
        "in this pod has restarted.",
    ),
    AGE,
    Column("IP", pod_ip, priority=1),
    Column("Node", lambda p: p.spec.node_name or NONE, priority=1),
    Column("Nominated Node", lambda p: p.status.nominated_node_name or NONE, priority=1),
    Column("Readiness Gates", readiness_gates, priority=1),
)

POD_TEMPLATE_COLUMNS: Final = (
    Column(
        "Containers",
        lambda t: ",".join(c.name for c in t.template.spec.containers or ()),
        description="Names of each container in the template.",
    ),
    Column(
        "Images",
        lambda t: ",".join(c.image for c in t.template.spec.containers or ()),
        description="Images referenced by each container in the template.",
    ),
    Column(
        "Pod Labels",
        lambda t: ",".join(f"{k}={v}" for k, v in sorted(t.template.metadata.labels.items())) or NONE,
        description="The labels for the pod template.",
    ),
)
