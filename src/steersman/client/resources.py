"""Built-in resources that clients use, as constants, ordered by group and kind."""

from __future__ import annotations

from typing import Final, TypeVar

from steersman.api.admissionregistration import v1 as admissionregistration
from steersman.api.apiextensions import v1 as apiextensions
from steersman.api.apiregistration import v1 as apiregistration
from steersman.api.apps import v1 as apps
from steersman.api.authentication import v1 as authentication
from steersman.api.authorization import v1 as authorization
from steersman.api.autoscaling import v1 as autoscaling
from steersman.api.autoscaling import v2 as autoscaling_v2
from steersman.api.batch import v1 as batch
from steersman.api.certificates import v1 as certificates
from steersman.api.coordination import v1 as coordination
from steersman.api.core import v1 as core
from steersman.api.discovery import v1 as discovery
from steersman.api.events import v1 as events
from steersman.api.networking import v1 as networking
from steersman.api.policy import v1 as policy
from steersman.api.rbac import v1 as rbac
from steersman.api.resource import v1 as resource
from steersman.api.scheduling import v1 as scheduling
from steersman.api.storage import v1 as storage
from steersman.client.api_resource import APIResource

T = TypeVar("T")


def _core(plural: str, cls: type[T], *, namespaced: bool = True) -> APIResource[T]:
    return APIResource("", "v1", plural, cls.__name__, cls, namespaced)


def _of(group: str, plural: str, cls: type[T], *, namespaced: bool = True, version: str = "v1") -> APIResource[T]:
    return APIResource(group, version, plural, cls.__name__, cls, namespaced)


BINDINGS: Final = _core("bindings", core.Binding)
CONFIG_MAPS: Final = _core("configmaps", core.ConfigMap)
ENDPOINTS: Final = _core("endpoints", core.Endpoints)
EVENTS: Final = _core("events", core.Event)
NAMESPACES: Final = _core("namespaces", core.Namespace, namespaced=False)
NODES: Final = _core("nodes", core.Node, namespaced=False)
PERSISTENT_VOLUME_CLAIMS: Final = _core("persistentvolumeclaims", core.PersistentVolumeClaim)
PERSISTENT_VOLUMES: Final = _core("persistentvolumes", core.PersistentVolume, namespaced=False)
PODS: Final = _core("pods", core.Pod)
REPLICATION_CONTROLLERS: Final = _core("replicationcontrollers", core.ReplicationController)
RESOURCE_QUOTAS: Final = _core("resourcequotas", core.ResourceQuota)
SECRETS: Final = _core("secrets", core.Secret)
SERVICE_ACCOUNTS: Final = _core("serviceaccounts", core.ServiceAccount)
SERVICES: Final = _core("services", core.Service)
MUTATING_WEBHOOK_CONFIGURATIONS: Final = _of(
    "admissionregistration.k8s.io",
    "mutatingwebhookconfigurations",
    admissionregistration.MutatingWebhookConfiguration,
    namespaced=False,
)
VALIDATING_WEBHOOK_CONFIGURATIONS: Final = _of(
    "admissionregistration.k8s.io",
    "validatingwebhookconfigurations",
    admissionregistration.ValidatingWebhookConfiguration,
    namespaced=False,
)
CUSTOM_RESOURCE_DEFINITIONS: Final = _of(
    "apiextensions.k8s.io", "customresourcedefinitions", apiextensions.CustomResourceDefinition, namespaced=False
)
API_SERVICES: Final = _of("apiregistration.k8s.io", "apiservices", apiregistration.APIService, namespaced=False)
CONTROLLER_REVISIONS: Final = _of("apps", "controllerrevisions", apps.ControllerRevision)
DAEMON_SETS: Final = _of("apps", "daemonsets", apps.DaemonSet)
DEPLOYMENTS: Final = _of("apps", "deployments", apps.Deployment)
REPLICA_SETS: Final = _of("apps", "replicasets", apps.ReplicaSet)
STATEFUL_SETS: Final = _of("apps", "statefulsets", apps.StatefulSet)
TOKEN_REQUESTS: Final = _of("authentication.k8s.io", "tokenrequests", authentication.TokenRequest)
TOKEN_REVIEWS: Final = _of("authentication.k8s.io", "tokenreviews", authentication.TokenReview, namespaced=False)
SELF_SUBJECT_REVIEWS: Final = _of(
    "authentication.k8s.io", "selfsubjectreviews", authentication.SelfSubjectReview, namespaced=False
)
SELF_SUBJECT_ACCESS_REVIEWS: Final = _of(
    "authorization.k8s.io", "selfsubjectaccessreviews", authorization.SelfSubjectAccessReview, namespaced=False
)
SELF_SUBJECT_RULES_REVIEWS: Final = _of(
    "authorization.k8s.io", "selfsubjectrulesreviews", authorization.SelfSubjectRulesReview, namespaced=False
)
SUBJECT_ACCESS_REVIEWS: Final = _of(
    "authorization.k8s.io", "subjectaccessreviews", authorization.SubjectAccessReview, namespaced=False
)
SCALES: Final = _of("autoscaling", "scales", autoscaling.Scale)
HORIZONTAL_POD_AUTOSCALERS: Final = _of(
    "autoscaling", "horizontalpodautoscalers", autoscaling_v2.HorizontalPodAutoscaler, version="v2"
)
CRON_JOBS: Final = _of("batch", "cronjobs", batch.CronJob)
JOBS: Final = _of("batch", "jobs", batch.Job)
CERTIFICATE_SIGNING_REQUESTS: Final = _of(
    "certificates.k8s.io", "certificatesigningrequests", certificates.CertificateSigningRequest, namespaced=False
)
LEASES: Final = _of("coordination.k8s.io", "leases", coordination.Lease)
ENDPOINT_SLICES: Final = _of("discovery.k8s.io", "endpointslices", discovery.EndpointSlice)
NEW_EVENTS: Final = _of("events.k8s.io", "events", events.Event)
INGRESS_CLASSES: Final = _of("networking.k8s.io", "ingressclasses", networking.IngressClass, namespaced=False)
INGRESSES: Final = _of("networking.k8s.io", "ingresses", networking.Ingress)
IP_ADDRESSES: Final = _of("networking.k8s.io", "ipaddresses", networking.IPAddress, namespaced=False)
SERVICE_CIDRS: Final = _of("networking.k8s.io", "servicecidrs", networking.ServiceCIDR, namespaced=False)
POD_DISRUPTION_BUDGETS: Final = _of("policy", "poddisruptionbudgets", policy.PodDisruptionBudget)
CLUSTER_ROLE_BINDINGS: Final = _of(
    "rbac.authorization.k8s.io", "clusterrolebindings", rbac.ClusterRoleBinding, namespaced=False
)
CLUSTER_ROLES: Final = _of("rbac.authorization.k8s.io", "clusterroles", rbac.ClusterRole, namespaced=False)
ROLE_BINDINGS: Final = _of("rbac.authorization.k8s.io", "rolebindings", rbac.RoleBinding)
ROLES: Final = _of("rbac.authorization.k8s.io", "roles", rbac.Role)
DEVICE_CLASSES: Final = _of("resource.k8s.io", "deviceclasses", resource.DeviceClass, namespaced=False)
RESOURCE_CLAIMS: Final = _of("resource.k8s.io", "resourceclaims", resource.ResourceClaim)
RESOURCE_CLAIM_TEMPLATES: Final = _of("resource.k8s.io", "resourceclaimtemplates", resource.ResourceClaimTemplate)
RESOURCE_SLICES: Final = _of("resource.k8s.io", "resourceslices", resource.ResourceSlice, namespaced=False)
PRIORITY_CLASSES: Final = _of("scheduling.k8s.io", "priorityclasses", scheduling.PriorityClass, namespaced=False)
CSI_DRIVERS: Final = _of("storage.k8s.io", "csidrivers", storage.CSIDriver, namespaced=False)
CSI_NODES: Final = _of("storage.k8s.io", "csinodes", storage.CSINode, namespaced=False)
CSI_STORAGE_CAPACITIES: Final = _of("storage.k8s.io", "csistoragecapacities", storage.CSIStorageCapacity)
STORAGE_CLASSES: Final = _of("storage.k8s.io", "storageclasses", storage.StorageClass, namespaced=False)
VOLUME_ATTACHMENTS: Final = _of("storage.k8s.io", "volumeattachments", storage.VolumeAttachment, namespaced=False)
VOLUME_ATTRIBUTES_CLASSES: Final = _of(
    "storage.k8s.io", "volumeattributesclasses", storage.VolumeAttributesClass, namespaced=False
)
