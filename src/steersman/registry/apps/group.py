"""apps: its resources and versions."""

from __future__ import annotations

from typing import Final

from steersman.registry.api_group import APIGroup, Version
from steersman.registry.apps.controllerrevisions import CONTROLLER_REVISIONS
from steersman.registry.apps.daemonsets import DAEMON_SETS
from steersman.registry.apps.deployments import DEPLOYMENTS
from steersman.registry.apps.replicasets import REPLICA_SETS
from steersman.registry.apps.statefulsets import STATEFUL_SETS

APPS: Final = APIGroup(
    name="apps",
    priority=17800,
    versions=(Version("v1"),),
    empty_versions=("v1beta1", "v1beta2"),
    resources=(
        CONTROLLER_REVISIONS,
        DAEMON_SETS,
        DEPLOYMENTS,
        REPLICA_SETS,
        STATEFUL_SETS,
    ),
)
