"""The built-in admission plugins: which there are, in upstream's order, and what each of them is made of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

from steersman.admission.interface import Chain, Plugin
from steersman.admission_plugins.always_admit import AlwaysAdmit
from steersman.admission_plugins.always_deny import AlwaysDeny
from steersman.admission_plugins.always_pull_images import AlwaysPullImages
from steersman.admission_plugins.certificate_approval import CertificateApproval
from steersman.admission_plugins.certificate_signing import CertificateSigning
from steersman.admission_plugins.certificate_subject_restriction import CertificateSubjectRestriction
from steersman.admission_plugins.cluster_trust_bundle_attest import ClusterTrustBundleAttest
from steersman.admission_plugins.default_ingress_class import DefaultIngressClass
from steersman.admission_plugins.default_storage_class import DefaultStorageClass
from steersman.admission_plugins.default_toleration_seconds import DefaultTolerationSeconds
from steersman.admission_plugins.deny_service_external_ips import DenyServiceExternalIPs
from steersman.admission_plugins.event_rate_limit import EventRateLimit
from steersman.admission_plugins.extended_resource_toleration import ExtendedResourceToleration
from steersman.admission_plugins.image_policy_webhook import ImagePolicyWebhook
from steersman.admission_plugins.limit_pod_hard_anti_affinity_topology import LimitPodHardAntiAffinityTopology
from steersman.admission_plugins.limit_ranger import LimitRanger
from steersman.admission_plugins.namespace_auto_provision import NamespaceAutoProvision
from steersman.admission_plugins.namespace_exists import NamespaceExists
from steersman.admission_plugins.namespace_lifecycle import NamespaceLifecycle
from steersman.admission_plugins.node_declared_feature_validator import NodeDeclaredFeatureValidator, declared_features
from steersman.admission_plugins.owner_references_permission_enforcement import (
    Mapping,
    OwnerReferencesPermissionEnforcement,
)
from steersman.admission_plugins.persistent_volume_claim_resize import PersistentVolumeClaimResize
from steersman.admission_plugins.pod_node_selector import PodNodeSelector, node_selector_of
from steersman.admission_plugins.pod_resize_validator import PodResizeValidator, host_of
from steersman.admission_plugins.pod_security.pod_security import PodSecurity
from steersman.admission_plugins.pod_toleration_restriction import PodTolerationRestriction, toleration_annotations
from steersman.admission_plugins.pod_topology_labels import PodTopologyLabels, topology_of
from steersman.admission_plugins.priority import Priority
from steersman.admission_plugins.quota.evaluators import ServiceEvaluator, VolumeClaimEvaluator
from steersman.admission_plugins.quota.pods import PodEvaluator
from steersman.admission_plugins.quota.resource_claims import ResourceClaimEvaluator
from steersman.admission_plugins.quota.resource_quota import ResourceQuota
from steersman.admission_plugins.runtime_class import RuntimeClass
from steersman.admission_plugins.service_account import ServiceAccount, account_of
from steersman.admission_plugins.storage_object_in_use_protection import StorageObjectInUseProtection
from steersman.admission_plugins.taint_nodes_by_condition import TaintNodesByCondition
from steersman.api.core.v1 import Namespace
from steersman.api.meta.v1 import ObjectMeta
from steersman.authorization.interface import Authorizer
from steersman.catalogue.rest_mapper import RESTMapper
from steersman.controlplane.admission_configuration import AdmissionConfiguration
from steersman.controlplane.options import Options, OptionsError
from steersman.machinery.built_in.classes import DEFAULT_INGRESS_CLASS, DEFAULT_STORAGE_CLASS, DefaultClass
from steersman.machinery.identity.schema import GroupResource, GroupVersionKind
from steersman.rest.context import loopback
from steersman.rest.objects import Objects, Reading
from steersman.webhooks.client import WebhookClient

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What plugins may use of the server."""

    options: Options
    authorizer: Authorizer
    configuration: AdmissionConfiguration
    objects: Callable[[str, str], Objects]
    """(group, plural) -> its objects."""
    mapper: RESTMapper


class BuiltIn(NamedTuple):
    """A plugin by its name on the command line."""

    name: str
    on_by_default: bool
    make: Callable[[Surroundings], Plugin]


def _itself(obj: Any) -> Any:
    return obj


_PHASE: Final[Reading[str]] = Reading(lambda namespace: namespace.status.phase, "status.phase")
_PRIORITY_CLASS: Final = Reading(_itself, "metadata.name", "value", "globalDefault", "preemptionPolicy")
_RUNTIME_CLASS: Final = Reading(_itself, "overhead", "scheduling")
_STORAGE_CLASS: Final = Reading(_itself, "allowVolumeExpansion")
_CLASS: Final = Reading(_itself, "metadata.name", "metadata.annotations", "metadata.creationTimestamp")
_ACCOUNT: Final = Reading(
    account_of, "metadata.name", "metadata.annotations", "secrets", "imagePullSecrets", "automountServiceAccountToken"
)


def _priority(server: Surroundings) -> Priority:
    classes = server.objects("scheduling.k8s.io", "priorityclasses")
    return Priority(
        lambda name: classes.known("", name, _PRIORITY_CLASS),
        lambda: classes.known_all("", _PRIORITY_CLASS),
        classes.changed,
    )


def _service_account(server: Surroundings) -> ServiceAccount:
    accounts = server.objects("", "serviceaccounts")
    return ServiceAccount(lambda namespace, name: accounts.known(namespace, name, _ACCOUNT))


def _pod_security(server: Surroundings) -> PodSecurity:
    pods = server.objects("", "pods")
    configuration = server.configuration.pod_security()
    return PodSecurity(
        _known(server, "namespaces", Reading(configuration.policy_of, "metadata.labels")),
        lambda namespace: (pods.count(namespace), pods.every(namespace)),
        configuration,
    )


def _image_policy_webhook(server: Surroundings) -> ImagePolicyWebhook:
    configuration = server.configuration.image_policy()
    return ImagePolicyWebhook(WebhookClient(configuration.endpoint, configuration.backoff).post, configuration.settings)


def _pod_node_selector(server: Surroundings) -> PodNodeSelector:
    find = _known(server, "namespaces", Reading(node_selector_of, "metadata.annotations"))
    return PodNodeSelector(find, server.configuration.pod_node_selector())


def _pod_toleration_restriction(server: Surroundings) -> PodTolerationRestriction:
    find = _known(server, "namespaces", Reading(toleration_annotations, "metadata.annotations"))
    return PodTolerationRestriction(find, server.configuration.pod_tolerations())


def _runtime_class(server: Surroundings) -> RuntimeClass:
    classes = server.objects("node.k8s.io", "runtimeclasses")
    return RuntimeClass(lambda name: classes.known("", name, _RUNTIME_CLASS))


def _known(server: Surroundings, plural: str, reading: Reading[T]) -> Callable[[str], T | None]:
    """Gives what is read out of a cluster-scoped object of the core group by its name, None if there is none."""
    objects = server.objects("", plural)
    return lambda name: objects.known("", name, reading)


def _phases(server: Surroundings) -> Callable[[str], str | None]:
    """Gives the phase of a namespace, None if there is none; it is kept with its entry, as every write asks for it."""
    namespaces = server.objects("", "namespaces")
    return lambda name: namespaces.known("", name, _PHASE)


def _topology_labels(server: Surroundings) -> PodTopologyLabels:
    return PodTopologyLabels(_known(server, "nodes", Reading(topology_of, "metadata.labels")))


def _declared_features(server: Surroundings) -> NodeDeclaredFeatureValidator:
    return NodeDeclaredFeatureValidator(_known(server, "nodes", Reading(declared_features, "status.declaredFeatures")))


def _pod_resize(server: Surroundings) -> PodResizeValidator:
    return PodResizeValidator(_known(server, "nodes", Reading(host_of, "metadata.labels", "status.allocatable")))


def _default_toleration_seconds(server: Surroundings) -> DefaultTolerationSeconds:
    options = server.options
    return DefaultTolerationSeconds(
        options.default_not_ready_toleration_seconds, options.default_unreachable_toleration_seconds
    )


def _resource_quota(server: Surroundings) -> ResourceQuota:
    claims = server.objects("resource.k8s.io", "resourceclaims")
    classes = server.objects("resource.k8s.io", "deviceclasses")
    return ResourceQuota(
        server.objects("", "resourcequotas"),
        {
            GroupResource("", "pods"): PodEvaluator(),
            GroupResource("", "services"): ServiceEvaluator(),
            GroupResource("", "persistentvolumeclaims"): VolumeClaimEvaluator(),
            GroupResource("resource.k8s.io", "resourceclaims"): ResourceClaimEvaluator(
                classes, server.objects("", "pods"), claims
            ),
        },
        server.configuration.resource_quota(),
    )


def _namespace_auto_provision(server: Surroundings) -> NamespaceAutoProvision:
    namespaces = server.objects("", "namespaces")

    def make(name: str) -> Awaitable[Any]:
        return namespaces.create(loopback(), Namespace(metadata=ObjectMeta(name=name)))

    return NamespaceAutoProvision(_phases(server), make)


def _default_class(annotations: tuple[str, ...], classes: Objects) -> Callable[[], str | None]:
    return DefaultClass(annotations, lambda: classes.known_all("", _CLASS), classes.changed).name


def _default_storage_class(server: Surroundings) -> DefaultStorageClass:
    classes = server.objects("storage.k8s.io", "storageclasses")
    return DefaultStorageClass(_default_class(DEFAULT_STORAGE_CLASS, classes))


def _default_ingress_class(server: Surroundings) -> DefaultIngressClass:
    classes = server.objects("networking.k8s.io", "ingressclasses")
    return DefaultIngressClass(_default_class(DEFAULT_INGRESS_CLASS, classes))


def _claim_resize(server: Surroundings) -> PersistentVolumeClaimResize:
    classes = server.objects("storage.k8s.io", "storageclasses")
    return PersistentVolumeClaimResize(lambda name: classes.known("", name, _STORAGE_CLASS))


def _owner_references(server: Surroundings) -> OwnerReferencesPermissionEnforcement:
    def resources_of(group: str, version: str, kind: str) -> list[Mapping]:
        found = server.mapper.of_kind(GroupVersionKind(group, version, kind))
        return [Mapping(each.resource.plural, each.resource.namespaced) for each in found]

    return OwnerReferencesPermissionEnforcement(server.authorizer, resources_of)


PLUGINS: Final = (
    BuiltIn("AlwaysAdmit", False, lambda server: AlwaysAdmit()),
    BuiltIn("NamespaceAutoProvision", False, _namespace_auto_provision),
    BuiltIn("NamespaceLifecycle", True, lambda server: NamespaceLifecycle(_phases(server))),
    BuiltIn("NamespaceExists", False, lambda server: NamespaceExists(_phases(server))),
    BuiltIn("LimitPodHardAntiAffinityTopology", False, lambda server: LimitPodHardAntiAffinityTopology()),
    BuiltIn("LimitRanger", True, lambda server: LimitRanger(server.objects("", "limitranges"))),
    BuiltIn("ServiceAccount", True, _service_account),
    BuiltIn("TaintNodesByCondition", True, lambda server: TaintNodesByCondition()),
    BuiltIn("AlwaysPullImages", False, lambda server: AlwaysPullImages()),
    BuiltIn("ImagePolicyWebhook", False, _image_policy_webhook),
    BuiltIn("PodSecurity", True, _pod_security),
    BuiltIn("PodNodeSelector", False, _pod_node_selector),
    BuiltIn("Priority", True, _priority),
    BuiltIn("DefaultTolerationSeconds", True, _default_toleration_seconds),
    BuiltIn("PodTolerationRestriction", False, _pod_toleration_restriction),
    BuiltIn("EventRateLimit", False, lambda server: EventRateLimit(server.configuration.event_rate_limits())),
    BuiltIn("ExtendedResourceToleration", False, lambda server: ExtendedResourceToleration()),
    BuiltIn("DefaultStorageClass", True, _default_storage_class),
    BuiltIn("StorageObjectInUseProtection", True, lambda server: StorageObjectInUseProtection()),
    BuiltIn("OwnerReferencesPermissionEnforcement", False, _owner_references),
    BuiltIn("PersistentVolumeClaimResize", True, _claim_resize),
    BuiltIn("RuntimeClass", True, _runtime_class),
    BuiltIn("CertificateApproval", True, lambda server: CertificateApproval(server.authorizer)),
    BuiltIn("CertificateSigning", True, lambda server: CertificateSigning(server.authorizer)),
    BuiltIn("ClusterTrustBundleAttest", True, lambda server: ClusterTrustBundleAttest(server.authorizer)),
    BuiltIn("CertificateSubjectRestriction", True, lambda server: CertificateSubjectRestriction()),
    BuiltIn("DefaultIngressClass", True, _default_ingress_class),
    BuiltIn("DenyServiceExternalIPs", False, lambda server: DenyServiceExternalIPs()),
    BuiltIn("PodTopologyLabels", True, _topology_labels),
    BuiltIn("NodeDeclaredFeatureValidator", True, _declared_features),
    BuiltIn("PodResizeValidator", True, _pod_resize),
    BuiltIn("ResourceQuota", True, _resource_quota),
    BuiltIn("AlwaysDeny", False, lambda server: AlwaysDeny()),
)
"""In the order in which they are called, which no flag changes."""


_NOT_CONFIGURABLE: Final = (
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
)
"""On by default, and what upstream lets configure of them is not there: nobody should wait for it in vain."""


def admission_chain(server: Surroundings) -> Chain:
    """The plugins that are on: those of the default set and those enabled, without those disabled.

    Raises OptionsError if one of them is configured with what it cannot use.
    """
    on, off = server.options.enable_admission_plugins, server.options.disable_admission_plugins
    for name in _NOT_CONFIGURABLE:
        if name not in off and server.configuration.document(name) is not None:
            raise OptionsError(f"not supported yet: a configuration of {name} in --admission-control-config-file")
    plugins = []
    for each in PLUGINS:
        if (each.on_by_default or each.name in on) and each.name not in off:
            server.configuration.document(each.name)  # must be there, whether it is read or not
            plugins.append(each.make(server))
    return Chain(tuple(plugins))
