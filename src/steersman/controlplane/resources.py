"""All built-in resources, by group and by server of the delegation chain."""

from __future__ import annotations

from typing import Any, Final

from steersman.registry.admissionregistration.group import ADMISSION_REGISTRATION
from steersman.registry.api_group import APIGroup
from steersman.registry.apiextensions.group import API_EXTENSIONS as API_EXTENSIONS_GROUP
from steersman.registry.apiregistration.group import API_REGISTRATION
from steersman.registry.apiserverinternal.group import API_SERVER_INTERNAL
from steersman.registry.apps.group import APPS
from steersman.registry.authentication.group import AUTHENTICATION
from steersman.registry.authorization.group import AUTHORIZATION
from steersman.registry.autoscaling.group import AUTOSCALING
from steersman.registry.batch.group import BATCH
from steersman.registry.certificates.group import CERTIFICATES
from steersman.registry.coordination.group import COORDINATION
from steersman.registry.core.group import CORE, EVENTS_GROUP
from steersman.registry.discovery.group import DISCOVERY
from steersman.registry.flowcontrol.group import FLOW_CONTROL
from steersman.registry.networking.group import NETWORKING
from steersman.registry.node.group import NODE
from steersman.registry.policy.group import POLICY
from steersman.registry.rbac.group import RBAC
from steersman.registry.resource.group import RESOURCE
from steersman.registry.scheduling.group import SCHEDULING
from steersman.registry.services import Services
from steersman.registry.storage.group import STORAGE
from steersman.rest.resource import Resource

GROUPS: Final[tuple[APIGroup, ...]] = (
    CORE,
    API_REGISTRATION,
    APPS,
    EVENTS_GROUP,
    AUTHENTICATION,
    AUTHORIZATION,
    AUTOSCALING,
    BATCH,
    CERTIFICATES,
    NETWORKING,
    POLICY,
    RBAC,
    STORAGE,
    ADMISSION_REGISTRATION,
    API_EXTENSIONS_GROUP,
    SCHEDULING,
    COORDINATION,
    NODE,
    DISCOVERY,
    RESOURCE,
    FLOW_CONTROL,
    API_SERVER_INTERNAL,
)
"""All groups in the order in which they are listed."""

AGGREGATOR: Final[tuple[Resource[Any, Services], ...]] = API_REGISTRATION.resources
API_EXTENSIONS: Final[tuple[Resource[Any, Services], ...]] = API_EXTENSIONS_GROUP.resources
KUBE_API_GROUPS: Final = tuple(
    each for each in GROUPS if each is not API_REGISTRATION and each is not API_EXTENSIONS_GROUP
)
KUBE_API: Final[tuple[Resource[Any, Services], ...]] = tuple(
    resource for group in KUBE_API_GROUPS for resource in group.resources
)
