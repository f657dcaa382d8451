"""Pods that containers of another kubelet run, and about which nothing is to be done.

A cluster that is opened from a dump has thousands of them. Their syncs would compute a status that says the same.
"""

from __future__ import annotations

from typing import Final

from steersman.api.core.v1 import Container, ContainerStatus, Pod
from steersman.machinery.values import times
from steersman.nodes.behaviour import PREFIX
from steersman.nodes.container import probes
from steersman.nodes.container_status import is_of_other_kubelet
from steersman.nodes.context import PodContext
from steersman.nodes.resize import IN_PROGRESS, PENDING

_GOOD: Final = frozenset({"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"})
"""Conditions that are true while all containers are ready."""


def is_undisturbed(pod: Pod, context: PodContext, now: float) -> bool:
    """Return True if a sync of a pod at the time `now` would neither change anything nor ask for another one.

    False may be wrong: the sync finds out.
    """
    spec, status = pod.spec, pod.status
    containers = spec.containers or ()
    return (
        status.phase == "Running"
        and pod.metadata.deletion_timestamp is None
        and status.pod_ip == context.pod_ips[0]
        and not _is_disturbed_from_outside(pod, context)
        and not (spec.init_containers or spec.ephemeral_containers or spec.readiness_gates)
        and spec.active_deadline_seconds is None
        and spec.resources is None
        and not spec.set_hostname_as_fqdn
        and _is_good(pod)
        and len(containers) == len(status.container_statuses)
        and all(
            _goes_on(pod, container, each, now)
            for container, each in zip(containers, status.container_statuses, strict=True)
        )
    )


def _is_disturbed_from_outside(pod: Pod, context: PodContext) -> bool:
    return (
        not context.mounted
        or context.shared is not None
        or bool(context.exits or context.records or context.results or context.work_errors or context.eviction_message)
        or any(key.startswith(PREFIX) for key in pod.metadata.annotations)
    )


def _is_good(pod: Pod) -> bool:
    """Return True if all conditions of a ready pod are true, and none of a resize is there."""
    conditions = {each.type: each.status for each in pod.status.conditions}
    return (
        not (PENDING in conditions or IN_PROGRESS in conditions)
        and all(conditions.get(each) == "True" for each in _GOOD)
        and not pod.status.reason
    )


def _goes_on(pod: Pod, container: Container, status: ContainerStatus, now: float) -> bool:
    """Return True if a container runs and is ready, by its probes too, with the resources that it asks for."""
    running, has = status.state.running, status.resources
    return (
        status.name == container.name
        and running is not None
        and is_of_other_kubelet(pod, status)
        and status.ready
        and bool(status.started)
        and not container.restart_policy_rules
        and (has is None or (has.requests, has.limits) == (container.resources.requests, container.resources.limits))
        and _are_probed(container, float(times.unix(running.started_at or times.now())), now)
    )


def _are_probed(container: Container, started: float, now: float) -> bool:
    """Return True if every probe had its first attempt."""
    return all(
        probe is None or probes.attempt_at(probe, started, now) >= 0
        for probe in (probes.probe_of(container, kind) for kind in probes.KINDS)
    )
