"""Status of a Deployment (pkg/controller/deployment sync.go, progress.go)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from steersman.api.apps.v1 import Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet
from steersman.controllers.deployment.fence_posts import has_progress_deadline, max_unavailable, replicas_of
from steersman.machinery.values import times
from steersman.machinery.values.conditions import find_condition, time_condition, without_conditions

PROGRESSING: Final = "Progressing"
AVAILABLE: Final = "Available"
REPLICA_FAILURE: Final = "ReplicaFailure"
NEW_AVAILABLE: Final = "NewReplicaSetAvailable"
TIMED_OUT: Final = "ProgressDeadlineExceeded"

Conditions = Sequence[DeploymentCondition]


def progressing(status: str, reason: str, message: str) -> DeploymentCondition:
    """Return a condition Progressing with the current time."""
    return _condition(PROGRESSING, status, reason, message)


def _condition(type_: str, status: str, reason: str, message: str) -> DeploymentCondition:
    now = times.now()
    return DeploymentCondition(
        type=type_, status=status, reason=reason, message=message, last_update_time=now, last_transition_time=now
    )


def with_condition_changed(conditions: Conditions, new: DeploymentCondition) -> list[DeploymentCondition]:
    """Return the conditions with `new` at the end, unchanged if its status and reason are the same already."""
    old = find_condition(conditions, new.type)
    if old is not None and (old.status, old.reason) == (new.status, new.reason):
        return list(conditions)
    return [*without_conditions(conditions, new.type), time_condition(new, conditions)]


def status_of(deployment: Deployment, new: ReplicaSet | None, everything: Sequence[ReplicaSet]) -> DeploymentStatus:
    """Return the status computed from the ReplicaSets; of the conditions, only Available is updated."""
    available = sum(each.status.available_replicas for each in everything)
    if available >= replicas_of(deployment) - max_unavailable(deployment):
        condition = _condition(AVAILABLE, "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        condition = _condition(
            AVAILABLE, "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
        )
    return DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        replicas=sum(each.status.replicas for each in everything),
        updated_replicas=new.status.replicas if new else 0,
        ready_replicas=sum(each.status.ready_replicas for each in everything),
        available_replicas=available,
        unavailable_replicas=max(sum(map(replicas_of, everything)) - available, 0),
        terminating_replicas=_terminating(everything),
        collision_count=deployment.status.collision_count,
        conditions=with_condition_changed(deployment.status.conditions, condition),
    )


def _terminating(everything: Sequence[ReplicaSet]) -> int | None:
    """Return the number of terminating pods; None while a ReplicaSet does not report its number."""
    total = 0
    for each in everything:
        if each.status.terminating_replicas is None:
            if each.status.observed_generation:
                return None
        else:
            total += each.status.terminating_replicas
    return total


def rollout_status(
    deployment: Deployment, new: ReplicaSet | None, everything: Sequence[ReplicaSet]
) -> DeploymentStatus:
    """Return the status with the conditions about progress and failures too."""
    status = status_of(deployment, new, everything)
    conditions: Conditions = status.conditions
    if not has_progress_deadline(deployment):
        conditions = without_conditions(conditions, PROGRESSING)
    else:
        conditions = _with_progress(deployment, status, new)
    failure = _failure(new, everything)
    status.conditions = (
        with_condition_changed(conditions, failure) if failure else without_conditions(conditions, REPLICA_FAILURE)
    )
    return status


def _with_progress(deployment: Deployment, status: DeploymentStatus, new: ReplicaSet | None) -> Conditions:
    conditions = status.conditions
    current = find_condition(deployment.status.conditions, PROGRESSING)
    if current is not None and current.reason == NEW_AVAILABLE and status.replicas == status.updated_replicas:
        return conditions
    name = f'ReplicaSet "{new.metadata.name}"' if new else f'Deployment "{deployment.metadata.name}"'
    if is_complete(deployment, status):
        condition = progressing("True", NEW_AVAILABLE, f"{name} has successfully progressed.")
        return with_condition_changed(conditions, condition)
    if _has_progressed(deployment.status, status):
        condition = progressing("True", "ReplicaSetUpdated", f"{name} is progressing.")
        if current is not None:
            if current.status == "True":
                condition.last_transition_time = current.last_transition_time
            # Without the old condition, the new one gets the current time as its update time.
            conditions = without_conditions(conditions, PROGRESSING)
        return with_condition_changed(conditions, condition)
    if _has_timed_out(deployment, status):
        condition = progressing("False", TIMED_OUT, f"{name} has timed out progressing.")
        return with_condition_changed(conditions, condition)
    return conditions


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Return True if all desired pods are new and available, and no other pods are left."""
    desired = replicas_of(deployment)
    return (
        status.updated_replicas == desired
        and status.replicas == desired
        and status.available_replicas == desired
        and status.observed_generation >= deployment.metadata.generation
    )


def _has_progressed(old: DeploymentStatus, new: DeploymentStatus) -> bool:
    return (
        new.updated_replicas > old.updated_replicas
        or new.replicas - new.updated_replicas < old.replicas - old.updated_replicas
        or new.ready_replicas > old.ready_replicas
        or new.available_replicas > old.available_replicas
    )


def _has_timed_out(deployment: Deployment, status: DeploymentStatus) -> bool:
    condition = find_condition(status.conditions, PROGRESSING)
    if condition is None or condition.reason == NEW_AVAILABLE:
        return False
    return condition.reason == TIMED_OUT or seconds_left(deployment, condition) < 0


def seconds_left(deployment: Deployment, condition: DeploymentCondition) -> int:
    """Return the seconds until the progress deadline."""
    since = times.unix(condition.last_update_time or times.now())
    return since + (deployment.spec.progress_deadline_seconds or 0) - times.unix(times.now())


def _failure(new: ReplicaSet | None, everything: Sequence[ReplicaSet]) -> DeploymentCondition | None:
    """Return the ReplicaFailure condition of a ReplicaSet, the new one first."""
    for each in (*((new,) if new else ()), *everything):
        for condition in each.status.conditions:
            if condition.type == REPLICA_FAILURE:
                return DeploymentCondition(
                    type=condition.type,
                    status=condition.status,
                    reason=condition.reason,
                    message=condition.message,
                    last_transition_time=condition.last_transition_time,
                    last_update_time=condition.last_transition_time,
                )
    return None
