"""The built-in admission plugins in upstream's order; each plugin's file has its declaration and dependencies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from msgspec import Struct

from steersman.admission.interface import Chain, Plugin
from steersman.admission_plugins.always_admit import ALWAYS_ADMIT
from steersman.admission_plugins.always_deny import ALWAYS_DENY
from steersman.admission_plugins.always_pull_images import ALWAYS_PULL_IMAGES
from steersman.admission_plugins.certificate_approval import CERTIFICATE_APPROVAL
from steersman.admission_plugins.certificate_signing import CERTIFICATE_SIGNING
from steersman.admission_plugins.certificate_subject_restriction import CERTIFICATE_SUBJECT_RESTRICTION
from steersman.admission_plugins.cluster_trust_bundle_attest import CLUSTER_TRUST_BUNDLE_ATTEST
from steersman.admission_plugins.declaration import ConfiguredDeclaration, Declaration, PluginDependencies
from steersman.admission_plugins.default_ingress_class import DEFAULT_INGRESS_CLASS_PLUGIN
from steersman.admission_plugins.default_storage_class import DEFAULT_STORAGE_CLASS_PLUGIN
from steersman.admission_plugins.default_toleration_seconds import DEFAULT_TOLERATION_SECONDS
from steersman.admission_plugins.deny_service_external_ips import DENY_SERVICE_EXTERNAL_IPS
from steersman.admission_plugins.event_rate_limit import EVENT_RATE_LIMIT
from steersman.admission_plugins.extended_resource_toleration import EXTENDED_RESOURCE_TOLERATION
from steersman.admission_plugins.image_policy_webhook import IMAGE_POLICY_WEBHOOK
from steersman.admission_plugins.limit_pod_hard_anti_affinity_topology import LIMIT_POD_HARD_ANTI_AFFINITY_TOPOLOGY
from steersman.admission_plugins.limit_ranger import LIMIT_RANGER
from steersman.admission_plugins.namespace_auto_provision import NAMESPACE_AUTO_PROVISION
from steersman.admission_plugins.namespace_exists import NAMESPACE_EXISTS
from steersman.admission_plugins.namespace_lifecycle import NAMESPACE_LIFECYCLE
from steersman.admission_plugins.node_declared_feature_validator import NODE_DECLARED_FEATURE_VALIDATOR
from steersman.admission_plugins.node_restriction.plugin import NODE_RESTRICTION
from steersman.admission_plugins.owner_references_permission_enforcement import OWNER_REFERENCES_PERMISSION_ENFORCEMENT
from steersman.admission_plugins.persistent_volume_claim_resize import PERSISTENT_VOLUME_CLAIM_RESIZE
from steersman.admission_plugins.pod_node_selector import POD_NODE_SELECTOR
from steersman.admission_plugins.pod_resize_validator import POD_RESIZE_VALIDATOR
from steersman.admission_plugins.pod_security.pod_security import POD_SECURITY
from steersman.admission_plugins.pod_toleration_restriction import POD_TOLERATION_RESTRICTION
from steersman.admission_plugins.pod_topology_labels import POD_TOPOLOGY_LABELS
from steersman.admission_plugins.policy.mutating import MUTATING_ADMISSION_POLICY
from steersman.admission_plugins.policy.validating import VALIDATING_ADMISSION_POLICY
from steersman.admission_plugins.priority import PRIORITY
from steersman.admission_plugins.quota.resource_quota import RESOURCE_QUOTA
from steersman.admission_plugins.runtime_class import RUNTIME_CLASS
from steersman.admission_plugins.service_account import SERVICE_ACCOUNT
from steersman.admission_plugins.storage_object_in_use_protection import STORAGE_OBJECT_IN_USE_PROTECTION
from steersman.admission_plugins.taint_nodes_by_condition import TAINT_NODES_BY_CONDITION
from steersman.admission_plugins.webhook.mutating import MUTATING_ADMISSION_WEBHOOK
from steersman.admission_plugins.webhook.validating import VALIDATING_ADMISSION_WEBHOOK
from steersman.controlplane.admission_configuration import POLICY_PLUGINS, AdmissionConfiguration
from steersman.controlplane.options import Options

C = TypeVar("C")


class Configured(Struct, frozen=True):
    """A plugin that reads its section of --admission-control-config-file; see Declaration."""

    name: str
    on_by_default: bool
    create: Callable[[PluginDependencies, AdmissionConfiguration], Plugin]


def _configured(declaration: ConfiguredDeclaration[C], read: Callable[[AdmissionConfiguration], C]) -> Configured:
    """Return a plugin together with the reader of its configuration."""

    def create(server: PluginDependencies, configuration: AdmissionConfiguration) -> Plugin:
        return declaration.make(server, read(configuration))

    return Configured(declaration.name, declaration.on_by_default, create)


PLUGINS: Final[tuple[Declaration | Configured, ...]] = (
    ALWAYS_ADMIT,
    NAMESPACE_AUTO_PROVISION,
    NAMESPACE_LIFECYCLE,
    NAMESPACE_EXISTS,
    LIMIT_POD_HARD_ANTI_AFFINITY_TOPOLOGY,
    LIMIT_RANGER,
    SERVICE_ACCOUNT,
    NODE_RESTRICTION,
    TAINT_NODES_BY_CONDITION,
    ALWAYS_PULL_IMAGES,
    _configured(IMAGE_POLICY_WEBHOOK, AdmissionConfiguration.image_policy),
    _configured(POD_SECURITY, AdmissionConfiguration.pod_security),
    _configured(POD_NODE_SELECTOR, AdmissionConfiguration.pod_node_selector),
    PRIORITY,
    DEFAULT_TOLERATION_SECONDS,
    _configured(POD_TOLERATION_RESTRICTION, AdmissionConfiguration.pod_tolerations),
    _configured(EVENT_RATE_LIMIT, AdmissionConfiguration.event_rate_limits),
    EXTENDED_RESOURCE_TOLERATION,
    DEFAULT_STORAGE_CLASS_PLUGIN,
    STORAGE_OBJECT_IN_USE_PROTECTION,
    OWNER_REFERENCES_PERMISSION_ENFORCEMENT,
    PERSISTENT_VOLUME_CLAIM_RESIZE,
    RUNTIME_CLASS,
    CERTIFICATE_APPROVAL,
    CERTIFICATE_SIGNING,
    CLUSTER_TRUST_BUNDLE_ATTEST,
    CERTIFICATE_SUBJECT_RESTRICTION,
    DEFAULT_INGRESS_CLASS_PLUGIN,
    DENY_SERVICE_EXTERNAL_IPS,
    POD_TOPOLOGY_LABELS,
    NODE_DECLARED_FEATURE_VALIDATOR,
    POD_RESIZE_VALIDATOR,
    MUTATING_ADMISSION_POLICY,
    _configured(MUTATING_ADMISSION_WEBHOOK, AdmissionConfiguration.mutating_webhooks),
    VALIDATING_ADMISSION_POLICY,
    _configured(VALIDATING_ADMISSION_WEBHOOK, AdmissionConfiguration.validating_webhooks),
    _configured(RESOURCE_QUOTA, AdmissionConfiguration.resource_quota),
    ALWAYS_DENY,
)
"""All plugins in the order of their calls, which no flag changes."""


NOTHING_TO_ADMIT: Final = frozenset({"JobValidation", "PodGroupProtection", "PodGroupWorkloadExists"})
"""Plugins that are on by default upstream and missing here, as the objects that they act on are not served. Enabling or
disabling one has no effect.
"""


def plugin_names() -> list[str]:
    """Return the plugin names that `--enable-admission-plugins` accepts, sorted."""
    return sorted((*NOTHING_TO_ADMIT, *(each.name for each in PLUGINS)))


def admission_chain(options: Options, server: PluginDependencies) -> Chain:
    """Return the chain of enabled plugins: the defaults and those that flags enable, without those that flags disable.

    Raises OptionsError for a configuration that a plugin cannot use.
    """
    configuration = admission_configuration(options)
    return Chain(
        tuple(
            each.create(server, configuration) if isinstance(each, Configured) else each.create(server)
            for each in PLUGINS
            if _is_on(each.name, options, by_default=each.on_by_default)
        )
    )


def admission_configuration(options: Options) -> AdmissionConfiguration:
    """Return the configuration of the enabled plugins. Raises OptionsError for an unreadable file."""
    configuration = AdmissionConfiguration.load(options.admission_control_config_file)
    for each in PLUGINS:
        if _is_on(each.name, options, by_default=each.on_by_default):
            configuration.document(each.name)  # the file must exist even if the plugin reads no configuration
            if each.name in POLICY_PLUGINS:
                configuration.check_policies(each.name)
    return configuration


def _is_on(plugin: str, options: Options, *, by_default: bool) -> bool:
    is_wanted = by_default or plugin in options.enable_admission_plugins
    return is_wanted and plugin not in options.disable_admission_plugins
