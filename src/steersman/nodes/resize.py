"""In-place resize: other resources for running containers.

Follows pkg/kubelet `allocation` and `kuberuntime` (computePodResizeAction), and the events of pkg/kubelet/events. A
resize is either allocated (`PodResizeInProgress` until it is in effect) or deferred (`PodResizePending`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from steersman.api.core.v1 import Container, ContainerStatus, Pod, PodCondition, PodStatus, ResourceRequirements
from steersman.machinery.built_in.pod_resources import pod_requests, requests_of_spec
from steersman.machinery.codec.serializer import deep_copy, to_plain
from steersman.machinery.values.conditions import without_conditions
from steersman.machinery.values.quantity import nanos
from steersman.nodes.pod_level import allocated_of, differs, limits_in, resources_of

PENDING: Final = "PodResizePending"
IN_PROGRESS: Final = "PodResizeInProgress"
_CHECKED: Final = (("cpu", 10**6), ("memory", 10**9))
"""Resources that a node may lack, and the billionths that make one unit of them in messages."""
_AGAIN: Final = 30.0
"""Seconds after which a deferred resize is tried again."""


class NodeCapacity(Struct, frozen=True):
    """Resources of a node, and the other pods on it."""

    allocatable: Mapping[str, str]
    others: Callable[[], Iterable[Pod]]


class ResizeStep(NamedTuple):
    """Result of one step of a resize: an event (type, reason, message), the names of containers to restart, and the
    seconds until the next step.
    """

    event: tuple[str, str, str] | None = None
    restart: frozenset[str] = frozenset()
    retry_after: float | None = None


def resize(pod: Pod, status: PodStatus, capacity: NodeCapacity | None, now: str) -> ResizeStep:
    """Advance a resize by one step, in `status`. `capacity` is the capacity of the node, None for unlimited.

    Does nothing while the pod and its containers have what they ask for.
    """
    changed = _changed(pod, status)
    conditions = {each.type: each for each in status.conditions}
    if not changed and not differs(pod, status):
        if PENDING in conditions or IN_PROGRESS in conditions:
            _put(status, PENDING, None)
            _put(status, IN_PROGRESS, None)
        return ResizeStep()
    generation = pod.metadata.generation
    progress = conditions.get(IN_PROGRESS)
    if progress is not None and progress.observed_generation == generation:
        return _actuated(pod, status, changed)
    lacking = None if capacity is None else _lacking(pod, capacity)
    if lacking is not None:
        before = conditions.get(PENDING)
        _put(status, PENDING, _condition(PENDING, "Deferred", lacking, generation, now, before))
        is_reported = before is not None and before.reason == "Deferred" and before.observed_generation == generation
        event = None if is_reported else ("Warning", "ResizeDeferred", _message("Pod resize Deferred", pod, lacking))
        return ResizeStep(event, retry_after=_AGAIN)
    _put(status, PENDING, None)
    _put(status, IN_PROGRESS, _condition(IN_PROGRESS, "", "", generation, now, None))
    for container, each in changed:
        each.allocated_resources = dict(container.resources.requests)
    status.allocated_resources = allocated_of(pod)
    return ResizeStep(("Normal", "ResizeStarted", _message("Pod resize started", pod, "")), retry_after=0.0)


def _actuated(pod: Pod, status: PodStatus, changed: Sequence[tuple[Container, ContainerStatus]]) -> ResizeStep:
    restart = frozenset(
        container.name for container, each in _running(pod, status) if _needs_restart(pod, status, container, each)
    )
    for container, each in changed:
        each.resources = deep_copy(container.resources)
    status.resources = resources_of(pod, status.phase)
    _put(status, IN_PROGRESS, None)
    return ResizeStep(("Normal", "ResizeCompleted", _message("Pod resize completed", pod, "")), restart)


def put_pod_resources(pod: Pod, status: PodStatus) -> None:
    """Put the resources of the pod as a whole into `status`, unless a resize is pending or in progress."""
    before = pod.status
    if (
        before.resources is not None
        and (status.phase, pod.metadata.generation) == (before.phase, before.observed_generation)
        and status.conditions == before.conditions
    ):
        return
    if not any(each.type in (PENDING, IN_PROGRESS) for each in status.conditions):
        status.allocated_resources, status.resources = allocated_of(pod), resources_of(pod, status.phase)


def _changed(pod: Pod, status: PodStatus) -> list[tuple[Container, ContainerStatus]]:
    """Return the running containers whose resources differ from the spec."""
    changed = []
    for container, each in _running(pod, status):
        has, wants = each.resources or ResourceRequirements(), container.resources
        if not (_same(has.requests, wants.requests) and _same(has.limits, wants.limits)):
            changed.append((container, each))
    return changed


def _running(pod: Pod, status: PodStatus) -> Iterator[tuple[Container, ContainerStatus]]:
    """Yield the running containers that can be resized."""
    known = {each.name: each for each in (*status.init_container_statuses, *status.container_statuses)}
    for container in (*pod.spec.init_containers, *(pod.spec.containers or ())):
        each = known.get(container.name)
        if each is not None and each.state.running is not None and each.resources is not None:
            yield container, each


def _same(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    return one == other or (one.keys() == other.keys() and all(nanos(one[name]) == nanos(other[name]) for name in one))


def _needs_restart(pod: Pod, status: PodStatus, container: Container, one: ContainerStatus) -> bool:
    """Return True if the container's resize policy wants a restart for a resource that changes."""
    has, wants = one.resources or ResourceRequirements(), container.resources
    pairs = ((has.requests, wants.requests), (limits_in(status.resources, has), limits_in(pod.spec.resources, wants)))
    if pod.spec.resources is None:
        pairs = (has.requests, wants.requests), (has.limits, wants.limits)
    return any(
        each.restart_policy == "RestartContainer"
        and any(
            nanos(before.get(each.resource_name, "0")) != nanos(after.get(each.resource_name, "0"))
            for before, after in pairs
        )
        for each in container.resize_policy
    )


def _lacking(pod: Pod, capacity: NodeCapacity) -> str | None:
    """Return the node's message if it lacks a resource for the pod; None if it does not."""
    wants = requests_of_spec(pod.spec)
    others = [pod_requests(each) for each in capacity.others() if each.metadata.uid != pod.metadata.uid]
    for name, unit in _CHECKED:
        if name not in wants:
            continue
        used = sum(nanos(str(each[name])) for each in others if name in each)
        requested, total = nanos(str(wants[name])), nanos(capacity.allocatable.get(name, "0"))
        if requested + used > total:
            return (
                f"Node didn't have enough resource: {name}, requested: {requested // unit}, used: {used // unit}, "
                f"capacity: {total // unit}"
            )
    return None


def _condition(
    type_: str, reason: str, message: str, generation: int, now: str, before: PodCondition | None
) -> PodCondition:
    since = now if before is None else before.last_transition_time
    return PodCondition(
        type=type_,
        status="True",
        reason=reason,
        message=message,
        observed_generation=generation,
        last_probe_time=now,
        last_transition_time=since,
    )


def _put(status: PodStatus, type_: str, condition: PodCondition | None) -> None:
    others = without_conditions(status.conditions, type_)
    status.conditions = others if condition is None else [condition, *others]


def _message(prefix: str, pod: Pod, error: str) -> str:
    summary: dict[str, object] = {}
    for name, containers in (("initContainers", pod.spec.init_containers), ("containers", pod.spec.containers or ())):
        if containers:
            summary[name] = [{"name": each.name, "resources": to_plain(each.resources)} for each in containers]
    summary["generation"] = pod.metadata.generation
    if error:
        summary["error"] = error
    return f"{prefix}: {msgspec.json.encode(summary).decode()}"
