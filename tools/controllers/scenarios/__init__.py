"""The scenarios, by name, and the controllers that play in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tools.controllers.scenarios import (
    autoscalers,
    cron_jobs,
    daemon_sets,
    deployments,
    jobs,
    replica_sets,
    stateful_sets,
)
from tools.controllers.world import World

CONTROLLERS: Final = (
    "replicaset-controller", "replicationcontroller-controller", "deployment-controller", "job-controller",
    "ttl-after-finished-controller",
    "cronjob-controller", "daemonset-controller", "statefulset-controller",
    "horizontal-pod-autoscaler-controller",
)  # fmt: skip
SCENARIOS: Final[dict[str, Callable[[World], None]]] = {
    **replica_sets.SCENARIOS, **deployments.SCENARIOS, **jobs.SCENARIOS, **cron_jobs.SCENARIOS, **daemon_sets.SCENARIOS,
    **stateful_sets.SCENARIOS, **autoscalers.SCENARIOS,
}  # fmt: skip
