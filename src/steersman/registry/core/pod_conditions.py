"""Conditions in the status of a pod."""

from __future__ import annotations

from datetime import UTC, datetime

from steersman.api.core import v1 as core


def timestamp() -> str:
    """Now, as a meta/v1 Time."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def set_condition(status: core.PodStatus, condition: core.PodCondition) -> None:
    """Puts `condition` in the place of the one of its type, or at the end. The transition time is now, unless the
    condition had the same status before."""
    condition.last_transition_time = timestamp()
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
