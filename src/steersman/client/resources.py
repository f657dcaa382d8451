"""The built-in resources that controllers ask for, by the names of their kinds."""

from __future__ import annotations

from typing import Final, TypeVar

from steersman.api.apps import v1 as apps
from steersman.api.authentication import v1 as authentication
from steersman.api.batch import v1 as batch
from steersman.api.coordination import v1 as coordination
from steersman.api.core import v1 as core
from steersman.api.events import v1 as events
from steersman.api.policy import v1 as policy
from steersman.api.storage import v1 as storage
from steersman.client.api_resource import APIResource

T = TypeVar("T")


def _core(plural: str, cls: type[T], *, namespaced: bool = True) -> APIResource[T]:
    return APIResource("", "v1", plural, cls.__name__, cls, namespaced)


def _of(group: str, plural: str, cls: type[T], *, namespaced: bool = True) -> APIResource[T]:
    return APIResource(group, "v1", plural, cls.__name__, cls, namespaced)


CONFIG_MAPS: Final = _core("configmaps", core.ConfigMap)
NAMESPACES: Final = _core("namespaces", core.Namespace, namespaced=False)
NODES: Final = _core("nodes", core.Node, namespaced=False)
PODS: Final = _core("pods", core.Pod)
BINDINGS: Final = _core("bindings", core.Binding)
PERSISTENT_VOLUMES: Final = _core("persistentvolumes", core.PersistentVolume, namespaced=False)
PERSISTENT_VOLUME_CLAIMS: Final = _core("persistentvolumeclaims", core.PersistentVolumeClaim)
REPLICATION_CONTROLLERS: Final = _core("replicationcontrollers", core.ReplicationController)
SERVICE_ACCOUNTS: Final = _core("serviceaccounts", core.ServiceAccount)
SECRETS: Final = _core("secrets", core.Secret)
SERVICES: Final = _core("services", core.Service)
LEASES: Final = _of("coordination.k8s.io", "leases", coordination.Lease)
STATEFUL_SETS: Final = _of("apps", "statefulsets", apps.StatefulSet)
REPLICA_SETS: Final = _of("apps", "replicasets", apps.ReplicaSet)
DEPLOYMENTS: Final = _of("apps", "deployments", apps.Deployment)
JOBS: Final = _of("batch", "jobs", batch.Job)
EVENTS: Final = _of("events.k8s.io", "events", events.Event)
POD_DISRUPTION_BUDGETS: Final = _of("policy", "poddisruptionbudgets", policy.PodDisruptionBudget)
STORAGE_CLASSES: Final = _of("storage.k8s.io", "storageclasses", storage.StorageClass, namespaced=False)
CSI_NODES: Final = _of("storage.k8s.io", "csinodes", storage.CSINode, namespaced=False)
CSI_DRIVERS: Final = _of("storage.k8s.io", "csidrivers", storage.CSIDriver, namespaced=False)
VOLUME_ATTACHMENTS: Final = _of("storage.k8s.io", "volumeattachments", storage.VolumeAttachment, namespaced=False)
TOKEN_REQUESTS: Final = _of("authentication.k8s.io", "tokenrequests", authentication.TokenRequest)
