"""Conditions in the status of a pod."""

from __future__ import annotations

from steersman.api.core import v1 as core
from steersman.machinery.values import times


def set_condition(status: core.PodStatus, condition: core.PodCondition) -> None:
    """Puts `condition` in the place of the one of its type, or at the end. The transition time is now, unless the
    condition had the same status before."""
    condition.last_transition_time = times.now()
    for index, before in enumerate(status.conditions):
        if before.type == condition.type:
            if before.status == condition.status:
                condition.last_transition_time = before.last_transition_time
            status.conditions[index] = condition
            return
    status.conditions = [*status.conditions, condition]


def is_ready(status: core.PodStatus) -> bool:
    """Whether the pod takes traffic."""
    return any(c.type == "Ready" and c.status == "True" for c in status.conditions)
