"""Every controller there is, in the order they are started in."""

from __future__ import annotations

from typing import Any, Final

from steersman.controllers.autoscaling.controller import HorizontalPodAutoscalerController
from steersman.controllers.cluster_role_aggregation import ClusterRoleAggregationController
from steersman.controllers.controller import Controller
from steersman.controllers.cron_job import CronJobController
from steersman.controllers.daemon_set.controller import DaemonSetController
from steersman.controllers.deployment.controller import DeploymentController
from steersman.controllers.garbage_collector.garbage_collector import GarbageCollector
from steersman.controllers.job.controller import JobController
from steersman.controllers.namespace import NamespaceController
from steersman.controllers.node_lifecycle import NodeLifecycleController
from steersman.controllers.pod_garbage_collector import PodGarbageCollector
from steersman.controllers.replica_set import ReplicaSetController
from steersman.controllers.replication_controller import ReplicationControllerController
from steersman.controllers.root_ca_publisher import RootCAPublisher
from steersman.controllers.service_accounts import ServiceAccountsController
from steersman.controllers.stateful_set.controller import StatefulSetController
from steersman.controllers.taint_eviction import TaintEvictionController
from steersman.controllers.ttl_after_finished import TTLAfterFinishedController

CONTROLLERS: Final[tuple[type[Controller[Any]], ...]] = (
    ServiceAccountsController,
    RootCAPublisher,
    NamespaceController,
    NodeLifecycleController,
    TaintEvictionController,
    ReplicaSetController,
    ReplicationControllerController,
    DeploymentController,
    DaemonSetController,
    StatefulSetController,
    JobController,
    TTLAfterFinishedController,
    CronJobController,
    HorizontalPodAutoscalerController,
    PodGarbageCollector,
    ClusterRoleAggregationController,
    GarbageCollector,
)
