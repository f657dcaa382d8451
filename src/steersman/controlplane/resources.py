"""Every built-in resource, by server of the chain."""

from __future__ import annotations

from typing import Any, Final

from steersman.registry.admissionregistration.mutatingadmissionpolicies import MUTATING_ADMISSION_POLICIES
from steersman.registry.admissionregistration.mutatingadmissionpolicybindings import MUTATING_ADMISSION_POLICY_BINDINGS
from steersman.registry.admissionregistration.mutatingwebhookconfigurations import MUTATING_WEBHOOK_CONFIGURATIONS
from steersman.registry.admissionregistration.validatingadmissionpolicies import VALIDATING_ADMISSION_POLICIES
from steersman.registry.admissionregistration.validatingadmissionpolicybindings import (
    VALIDATING_ADMISSION_POLICY_BINDINGS,
)
from steersman.registry.admissionregistration.validatingwebhookconfigurations import VALIDATING_WEBHOOK_CONFIGURATIONS
from steersman.registry.apiextensions.customresourcedefinitions import CUSTOM_RESOURCE_DEFINITIONS
from steersman.registry.apiregistration.apiservices import API_SERVICES
from steersman.registry.apps.controllerrevisions import CONTROLLER_REVISIONS
from steersman.registry.apps.daemonsets import DAEMON_SETS
from steersman.registry.apps.deployments import DEPLOYMENTS
from steersman.registry.apps.replicasets import REPLICA_SETS
from steersman.registry.apps.statefulsets import STATEFUL_SETS
from steersman.registry.authentication.selfsubjectreviews import SELF_SUBJECT_REVIEWS
from steersman.registry.authentication.tokenreviews import TOKEN_REVIEWS
from steersman.registry.authorization.localsubjectaccessreviews import LOCAL_SUBJECT_ACCESS_REVIEWS
from steersman.registry.authorization.selfsubjectaccessreviews import SELF_SUBJECT_ACCESS_REVIEWS
from steersman.registry.authorization.selfsubjectrulesreviews import SELF_SUBJECT_RULES_REVIEWS
from steersman.registry.authorization.subjectaccessreviews import SUBJECT_ACCESS_REVIEWS
from steersman.registry.autoscaling.horizontalpodautoscalers import HORIZONTAL_POD_AUTOSCALERS
from steersman.registry.batch.cronjobs import CRON_JOBS
from steersman.registry.batch.jobs import JOBS
from steersman.registry.certificates.certificatesigningrequests import CERTIFICATE_SIGNING_REQUESTS
from steersman.registry.coordination.leases import LEASES
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
from steersman.registry.discovery.endpointslices import ENDPOINT_SLICES
from steersman.registry.flowcontrol.flowschemas import FLOW_SCHEMAS
from steersman.registry.flowcontrol.prioritylevelconfigurations import PRIORITY_LEVEL_CONFIGURATIONS
from steersman.registry.networking.ingressclasses import INGRESS_CLASSES
from steersman.registry.networking.ingresses import INGRESSES
from steersman.registry.networking.ipaddresses import IP_ADDRESSES
from steersman.registry.networking.networkpolicies import NETWORK_POLICIES
from steersman.registry.networking.servicecidrs import SERVICE_CIDRS
from steersman.registry.node.runtimeclasses import RUNTIME_CLASSES
from steersman.registry.policy.poddisruptionbudgets import POD_DISRUPTION_BUDGETS
from steersman.registry.rbac.clusterrolebindings import CLUSTER_ROLE_BINDINGS
from steersman.registry.rbac.clusterroles import CLUSTER_ROLES
from steersman.registry.rbac.rolebindings import ROLE_BINDINGS
from steersman.registry.rbac.roles import ROLES
from steersman.registry.resource.deviceclasses import DEVICE_CLASSES
from steersman.registry.resource.resourceclaims import RESOURCE_CLAIMS
from steersman.registry.resource.resourceclaimtemplates import RESOURCE_CLAIM_TEMPLATES
from steersman.registry.resource.resourceslices import RESOURCE_SLICES
from steersman.registry.scheduling.priorityclasses import PRIORITY_CLASSES
from steersman.registry.services import Services
from steersman.registry.storage.csidrivers import CSI_DRIVERS
from steersman.registry.storage.csinodes import CSI_NODES
from steersman.registry.storage.csistoragecapacities import CSI_STORAGE_CAPACITIES
from steersman.registry.storage.storageclasses import STORAGE_CLASSES
from steersman.registry.storage.volumeattachments import VOLUME_ATTACHMENTS
from steersman.registry.storage.volumeattributesclasses import VOLUME_ATTRIBUTES_CLASSES
from steersman.rest.resource import Resource

AGGREGATOR: Final[tuple[Resource[Any, Services], ...]] = (API_SERVICES,)
API_EXTENSIONS: Final[tuple[Resource[Any, Services], ...]] = (CUSTOM_RESOURCE_DEFINITIONS,)
KUBE_API: Final[tuple[Resource[Any, Services], ...]] = (
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
    CONTROLLER_REVISIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    REPLICA_SETS,
    STATEFUL_SETS,
    SELF_SUBJECT_REVIEWS,
    TOKEN_REVIEWS,
    LOCAL_SUBJECT_ACCESS_REVIEWS,
    SELF_SUBJECT_ACCESS_REVIEWS,
    SELF_SUBJECT_RULES_REVIEWS,
    SUBJECT_ACCESS_REVIEWS,
    HORIZONTAL_POD_AUTOSCALERS,
    CRON_JOBS,
    JOBS,
    CERTIFICATE_SIGNING_REQUESTS,
    INGRESS_CLASSES,
    INGRESSES,
    IP_ADDRESSES,
    NETWORK_POLICIES,
    SERVICE_CIDRS,
    POD_DISRUPTION_BUDGETS,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    VOLUME_ATTRIBUTES_CLASSES,
    MUTATING_ADMISSION_POLICIES,
    MUTATING_ADMISSION_POLICY_BINDINGS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    VALIDATING_ADMISSION_POLICIES,
    VALIDATING_ADMISSION_POLICY_BINDINGS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    PRIORITY_CLASSES,
    LEASES,
    RUNTIME_CLASSES,
    ENDPOINT_SLICES,
    DEVICE_CLASSES,
    RESOURCE_CLAIMS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_SLICES,
    FLOW_SCHEMAS,
    PRIORITY_LEVEL_CONFIGURATIONS,
)
