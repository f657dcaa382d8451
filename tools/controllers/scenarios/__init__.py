"""The scenarios, by name, and the controllers that play in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tools.controllers.scenarios import (
    attachments,
    cron_jobs,
    daemon_sets,
    deployments,
    jobs,
    protection,
    replica_sets,
    resource_claims,
    stateful_sets,
    volumes,
)
from tools.controllers.world import World

CONTROLLERS: Final = (
    "replicaset-controller", "replicationcontroller-controller", "deployment-controller", "job-controller",
    "ttl-after-finished-controller",
    "cronjob-controller", "daemonset-controller", "statefulset-controller",
    "persistentvolume-binder-controller", "persistentvolume-attach-detach-controller",
    "persistentvolume-expander-controller", "ephemeral-volume-controller",
    "persistentvolumeclaim-protection-controller", "persistentvolume-protection-controller",
    "volumeattributesclass-protection-controller", "resourceclaim-controller",
    "device-taint-eviction-controller",
)  # fmt: skip
SCENARIOS: Final[dict[str, Callable[[World], None]]] = {
    **replica_sets.SCENARIOS, **deployments.SCENARIOS, **jobs.SCENARIOS, **cron_jobs.SCENARIOS, **daemon_sets.SCENARIOS,
    **stateful_sets.SCENARIOS, **volumes.SCENARIOS, **protection.SCENARIOS, **attachments.SCENARIOS,
    **resource_claims.SCENARIOS,
}  # fmt: skip
