"""The core group: its resources and versions."""

from __future__ import annotations

from typing import Final

from steersman.registry.api_group import APIGroup, Version
from steersman.registry.core.bindings import BINDINGS
from steersman.registry.core.componentstatuses import COMPONENT_STATUSES
from steersman.registry.core.configmaps import CONFIG_MAPS
from steersman.registry.core.events import EVENTS
from steersman.registry.core.limitranges import LIMIT_RANGES
from steersman.registry.core.namespaces import NAMESPACES
from steersman.registry.core.nodes import NODES
from steersman.registry.core.pods.pods import PODS
from steersman.registry.core.pods.podtemplates import POD_TEMPLATES
from steersman.registry.core.replicationcontrollers import REPLICATION_CONTROLLERS
from steersman.registry.core.resourcequotas import RESOURCE_QUOTAS
from steersman.registry.core.secrets import SECRETS
from steersman.registry.core.serviceaccounts import SERVICE_ACCOUNTS
from steersman.registry.core.services.endpoints import ENDPOINTS
from steersman.registry.core.services.services import SERVICES
from steersman.registry.core.volumes.persistentvolumeclaims import PERSISTENT_VOLUME_CLAIMS
from steersman.registry.core.volumes.persistentvolumes import PERSISTENT_VOLUMES

CORE: Final = APIGroup(
    name="",
    priority=18000,
    versions=(Version("v1", 1),),
    resources=(
        BINDINGS,
        COMPONENT_STATUSES,
        CONFIG_MAPS,
        ENDPOINTS,
        EVENTS,
        LIMIT_RANGES,
        NAMESPACES,
        NODES,
        PERSISTENT_VOLUME_CLAIMS,
        PERSISTENT_VOLUMES,
        PODS,
        POD_TEMPLATES,
        REPLICATION_CONTROLLERS,
        RESOURCE_QUOTAS,
        SECRETS,
        SERVICE_ACCOUNTS,
        SERVICES,
    ),
)

EVENTS_GROUP: Final = APIGroup(
    name="events.k8s.io",
    priority=17750,
    versions=(Version("v1"),),
    empty_versions=("v1beta1",),
)
"""The events group, which serves the events of the core group in another version."""
