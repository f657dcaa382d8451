"""All controllers, in the order in which they start."""

from __future__ import annotations

from typing import Any, Final

from steersman.controllers.autoscaling.controller import HorizontalPodAutoscalerController
from steersman.controllers.certificates.approver import CSRApprover
from steersman.controllers.certificates.cleaner import CSRCleaner
from steersman.controllers.certificates.signer import CSRSigner
from steersman.controllers.cluster_role_aggregation import ClusterRoleAggregationController
from steersman.controllers.controller import Controller
from steersman.controllers.cron_job import CronJobController
from steersman.controllers.daemon_set.controller import DaemonSetController
from steersman.controllers.deployment.controller import DeploymentController
from steersman.controllers.disruption.controller import DisruptionController
from steersman.controllers.garbage_collector.garbage_collector import GarbageCollector
from steersman.controllers.job.controller import JobController
from steersman.controllers.namespaces.controller import NamespaceController
from steersman.controllers.node_ipam.controller import NodeIPAMController
from steersman.controllers.node_lifecycle import NodeLifecycleController
from steersman.controllers.node_ttl import TTLController
from steersman.controllers.pod_garbage_collector import PodGarbageCollector
from steersman.controllers.replica_set import ReplicaSetController
from steersman.controllers.replication_controller import ReplicationControllerController
from steersman.controllers.resource_claims.controller import ResourceClaimController
from steersman.controllers.resource_claims.taint_eviction import DeviceTaintEviction
from steersman.controllers.resource_quota.controller import ResourceQuotaController
from steersman.controllers.root_ca_publisher import RootCAPublisher
from steersman.controllers.service_accounts import ServiceAccountsController
from steersman.controllers.services.endpoint_slices import EndpointSliceController
from steersman.controllers.services.endpoints import EndpointsController
from steersman.controllers.services.mirroring import EndpointSliceMirroringController
from steersman.controllers.services.service_cidrs import ServiceCIDRController
from steersman.controllers.stateful_set.controller import StatefulSetController
from steersman.controllers.taint_eviction import TaintEvictionController
from steersman.controllers.tokens.account_tokens import ServiceAccountTokenController
from steersman.controllers.tokens.bootstrap_signer import BootstrapSigner
from steersman.controllers.tokens.legacy_token_cleaner import LegacyTokenCleaner
from steersman.controllers.tokens.token_cleaner import TokenCleaner
from steersman.controllers.ttl_after_finished import TTLAfterFinishedController
from steersman.controllers.volumes.attach_detach.controller import AttachDetach
from steersman.controllers.volumes.attributes_class_protection import AttributesClassProtection
from steersman.controllers.volumes.binder.controller import PersistentVolumeBinder
from steersman.controllers.volumes.claim_protection import ClaimProtection
from steersman.controllers.volumes.driver.attacher import Attacher
from steersman.controllers.volumes.driver.modifier import Modifier
from steersman.controllers.volumes.driver.provisioner import Provisioner
from steersman.controllers.volumes.driver.registrar import Registrar
from steersman.controllers.volumes.driver.resizer import Resizer
from steersman.controllers.volumes.ephemeral import EphemeralVolumes
from steersman.controllers.volumes.expander import VolumeExpander
from steersman.controllers.volumes.volume_protection import VolumeProtection

CONTROLLERS: Final[tuple[type[Controller[Any]], ...]] = (
    ServiceAccountTokenController,
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
    EndpointsController,
    EndpointSliceController,
    EndpointSliceMirroringController,
    ServiceCIDRController,
    DisruptionController,
    HorizontalPodAutoscalerController,
    PodGarbageCollector,
    ResourceQuotaController,
    CSRSigner,
    CSRApprover,
    CSRCleaner,
    TTLController,
    BootstrapSigner,
    TokenCleaner,
    NodeIPAMController,
    LegacyTokenCleaner,
    ClusterRoleAggregationController,
    PersistentVolumeBinder,
    AttachDetach,
    VolumeExpander,
    EphemeralVolumes,
    ClaimProtection,
    VolumeProtection,
    AttributesClassProtection,
    ResourceClaimController,
    DeviceTaintEviction,
    GarbageCollector,
)
VOLUME_DRIVER: Final[tuple[type[Controller[Any]], ...]] = (Registrar, Provisioner, Attacher, Resizer, Modifier)
"""Controllers of the simulated volume driver, which is not a part of kube-controller-manager."""
