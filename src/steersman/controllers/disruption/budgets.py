"""Computation of a budget's status: healthy pods, required pods, allowed disruptions (pkg/controller/disruption)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec import Struct, field

from steersman.api.core.v1 import Pod
from steersman.api.meta.v1 import Condition, LabelSelector
from steersman.api.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetStatus
from steersman.controllers.workloads.int_or_percent import scaled
from steersman.machinery.built_in.pod_state import is_ready
from steersman.machinery.values import times
from steersman.machinery.values.conditions import with_condition

DELETION_TIMEOUT: Final = 120.0
"""Seconds within which an evicted pod must be marked for deletion."""
_ALLOWED: Final = "DisruptionAllowed"


class PodCounts(Struct):
    """Counts of a budget's pods."""

    healthy: int = 0
    disrupted: dict[str, str] = field(default_factory=dict)
    """Evicted pods that still exist, with the times of their eviction."""
    late: list[Pod] = field(default_factory=list)
    """Evicted pods that were not deleted in time."""
    next_timeout: float | None = None
    """Seconds until the first evicted pod is late."""

    def add(self, pod: Pod, disrupted: Mapping[str, str], now: float) -> None:
        """Count a pod; `disrupted` is from the current status, `now` is in seconds since 1970."""
        if pod.metadata.deletion_timestamp:
            return
        since = disrupted.get(pod.metadata.name)
        if since is not None:
            left = times.parse(since).timestamp() + DELETION_TIMEOUT - now
            if left >= 0:
                self.disrupted[pod.metadata.name] = since
                self.next_timeout = left if self.next_timeout is None else min(left, self.next_timeout)
                if left > 0:
                    return
            else:
                self.late.append(pod)
        self.healthy += is_ready(pod)


def needs_scale(budget: PodDisruptionBudget) -> bool:
    """Return True if the budget depends on the number of pods that the pods' owners request."""
    spec = budget.spec
    return spec.max_unavailable is not None or isinstance(spec.min_available, str)


def desired_healthy(budget: PodDisruptionBudget, expected: int) -> int:
    """Return the number of expected pods that must be healthy."""
    spec = budget.spec
    if spec.max_unavailable is not None:
        return max(expected - scaled(spec.max_unavailable, expected, round_up=True), 0)
    return scaled(spec.min_available, expected, round_up=True)


def new_status(
    budget: PodDisruptionBudget, counted: PodCounts, desired: int, expected: int
) -> PodDisruptionBudgetStatus | None:
    """Return the new status of a budget; None if it has not changed."""
    allowed = max(counted.healthy - desired, 0) if expected > 0 else 0
    status = PodDisruptionBudgetStatus(
        observed_generation=budget.metadata.generation,
        disrupted_pods=counted.disrupted,
        disruptions_allowed=allowed,
        current_healthy=counted.healthy,
        desired_healthy=desired,
        expected_pods=expected,
        conditions=list(budget.status.conditions),
    )
    if status == budget.status and _is_up_to_date(status):
        return None
    says = ("True", "SufficientPods") if allowed > 0 else ("False", "InsufficientPods")
    set_condition(status, *says)
    return status


def set_condition(status: PodDisruptionBudgetStatus, value: str, reason: str, message: str = "") -> None:
    """Set the condition DisruptionAllowed."""
    new = Condition(
        type=_ALLOWED,
        status=value,
        reason=reason,
        message=message,
        observed_generation=status.observed_generation,
    )
    status.conditions = with_condition(status.conditions, new)


def failed_status(budget: PodDisruptionBudget, error: str) -> PodDisruptionBudgetStatus:
    """Return the status after an error: no pod may be evicted."""
    status = msgspec.structs.replace(budget.status, disruptions_allowed=0, conditions=list(budget.status.conditions))
    set_condition(status, "False", "SyncFailed", error)
    return status


def unmanaged_message(selector: LabelSelector | None) -> str:
    """Return the event message about pods without a controller."""
    return (
        f"Pods selected by this PodDisruptionBudget (selector: {_printed_selector(selector)}) were found to be unmanaged. As a "
        "result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To "
        'account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.'
    )


def _is_up_to_date(status: PodDisruptionBudgetStatus) -> bool:
    outcome = ("True", "SufficientPods") if status.disruptions_allowed > 0 else ("False", "InsufficientPods")
    return any(each.type == _ALLOWED and (each.status, each.reason) == outcome for each in status.conditions)


def _printed_selector(selector: LabelSelector | None) -> str:
    """Return a selector as Go prints it."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {selector.match_labels[key]}," for key in sorted(selector.match_labels))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{each.key},Operator:{each.operator},Values:{_values(each.values)},}},"
        for each in selector.match_expressions
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def _values(values: Iterable[str]) -> str:
    return f"[{' '.join(values)}]"
