"""Restart of all containers of a pod, init containers first, after one of them has ended (RestartAllContainers).

Follows pkg/kubelet `kubelet_pods.go`, `status` (GenerateAllContainersRestartingCondition) and `kuberuntime`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.core.v1 import (
    Container,
    ContainerRestartRule,
    ContainerState,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodCondition,
    PodStatus,
)
from steersman.machinery.built_in.pod_resources import AnyContainer
from steersman.machinery.built_in.pod_state import TERMINAL_PHASES

CONDITION: Final = "AllContainersRestarting"
RESTARTING: Final = "RestartingAllContainers"
"""Reason of a container's last termination, until it has started again."""
_ACTION: Final = "RestartAllContainers"
_REMOVED: Final = "The container is removed because RestartAllContainers in place"
_KILLED: Final = 137


def matching_rule(container: AnyContainer, code: int) -> ContainerRestartRule | None:
    """Return the first restart rule of a container that matches an exit code, or None."""
    for rule in container.restart_policy_rules:
        codes = rule.exit_codes
        if codes is not None and ((code in codes.values) == (codes.operator == "In")):
            return rule
    return None


def is_restart_due(pod: Pod, status: PodStatus) -> bool:
    """Return True if a container has ended in a way that restarts all containers."""
    for container, each in _pairs(pod, status):
        ended = each.state.terminated
        rule = None if ended is None else matching_rule(container, ended.exit_code)
        if rule is not None and rule.action == _ACTION:
            return True
    return False


def reset(pod: Pod, status: PodStatus) -> list[str]:
    """Reset the statuses of all containers that have started.

    Return the names of the containers that were killed for it.
    """
    killed: list[str] = []
    for container, each in _pairs(pod, status):
        if each.state.running is not None:
            killed.append(container.name)
        elif each.state.terminated is None:
            continue
        each.state = ContainerState(waiting=ContainerStateWaiting(reason=RESTARTING, message=_REMOVED))
        each.last_state = ContainerState(
            terminated=ContainerStateTerminated(exit_code=_KILLED, reason=RESTARTING, message=_REMOVED)
        )
        each.restart_count += 1
        each.ready = each.started = False
    return killed


def condition(pod: Pod, status: PodStatus, *, restarting: bool) -> PodCondition | None:
    """Return the AllContainersRestarting condition; None if no container has a rule for it."""
    containers = (*pod.spec.init_containers, *(pod.spec.containers or ()))
    if not any(rule.action == _ACTION for each in containers for rule in each.restart_policy_rules):
        return None
    if status.phase in TERMINAL_PHASES:
        reason = "PodCompleted" if status.phase == "Succeeded" else "PodFailed"
        return PodCondition(type=CONDITION, status="False", reason=reason)
    if not restarting:
        return PodCondition(type=CONDITION, status="False")
    return PodCondition(
        type=CONDITION,
        status="True",
        reason="RestartAllContainersStarted",
        message="container exited with restart policy rule",
    )


def _pairs(pod: Pod, status: PodStatus) -> Iterator[tuple[Container, ContainerStatus]]:
    yield from zip(pod.spec.init_containers, status.init_container_statuses, strict=True)
    yield from zip(pod.spec.containers or (), status.container_statuses, strict=True)
