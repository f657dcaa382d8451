"""The explainer of pods."""

from __future__ import annotations

from typing import Final

from steersman.api.core import v1 as core
from steersman.client.resources import PODS
from steersman.explain.explainer import Explainer
from steersman.explain.pods.containers import check_containers, check_readiness_gates, check_references
from steersman.explain.pods.ending import check_deletion_of_pod, check_failure
from steersman.explain.pods.placement import check_placement, check_scores
from steersman.machinery.built_in.pod_state import is_terminal


def summarize(pod: core.Pod) -> str:
    """Return phase, readiness, restarts and node of a pod in one line."""
    status = pod.status
    phase = status.phase or "Pending"
    if pod.metadata.deletion_timestamp and not is_terminal(pod):
        phase = "Terminating"
    parts = [phase if not status.reason else f"{phase} ({status.reason})"]
    statuses = status.container_statuses
    if statuses and not is_terminal(pod):
        parts.append(f"{sum(each.ready for each in statuses)} of {len(statuses)} containers are ready")
    restarts = sum(each.restart_count for each in statuses)
    if restarts:
        parts.append(f"{restarts} restarts")
    parts.append(f"on node {pod.spec.node_name}" if pod.spec.node_name else "without a node")
    return ", ".join(parts)


POD: Final = Explainer(
    PODS,
    summarize,
    (
        check_placement,
        check_failure,
        check_references,
        check_containers,
        check_readiness_gates,
        check_deletion_of_pod,
        check_scores,
    ),
)
