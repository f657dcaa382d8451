"""The scenarios, by name, and the controllers that play in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tools.controllers.scenarios import (
    attachments,
    autoscalers,
    budgets,
    certificates,
    cron_jobs,
    daemon_sets,
    deployments,
    jobs,
    nodes,
    protection,
    quotas,
    replica_sets,
    resource_claims,
    services,
    stateful_sets,
    tokens,
    volumes,
)
from tools.controllers.world import World

CONTROLLERS: Final = (
    "replicaset-controller",
    "replicationcontroller-controller",
    "deployment-controller",
    "job-controller",
    "ttl-after-finished-controller",
    "cronjob-controller",
    "daemonset-controller",
    "statefulset-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "endpointslice-mirroring-controller",
    "disruption-controller",
    "resourcequota-controller",
    "serviceaccount-token-controller",
    "token-cleaner-controller",
    "bootstrap-signer-controller",
    "certificatesigningrequest-approving-controller",
    "certificatesigningrequest-signing-controller",
    "ttl-controller",
    "node-ipam-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-attach-detach-controller",
    "persistentvolume-expander-controller",
    "ephemeral-volume-controller",
    "persistentvolumeclaim-protection-controller",
    "persistentvolume-protection-controller",
    "volumeattributesclass-protection-controller",
    "resourceclaim-controller",
    "device-taint-eviction-controller",
    "horizontal-pod-autoscaler-controller",
)
SCENARIOS: Final[dict[str, Callable[[World], None]]] = {
    **replica_sets.SCENARIOS,
    **deployments.SCENARIOS,
    **jobs.SCENARIOS,
    **cron_jobs.SCENARIOS,
    **daemon_sets.SCENARIOS,
    **stateful_sets.SCENARIOS,
    **services.SCENARIOS,
    **budgets.SCENARIOS,
    **quotas.SCENARIOS,
    **tokens.SCENARIOS,
    **certificates.SCENARIOS,
    **nodes.SCENARIOS,
    **volumes.SCENARIOS,
    **protection.SCENARIOS,
    **attachments.SCENARIOS,
    **resource_claims.SCENARIOS,
    **autoscalers.SCENARIOS,
}
