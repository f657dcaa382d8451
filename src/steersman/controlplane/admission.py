"""The built-in admission plugins in upstream's order; each plugin's file has its declaration and dependencies."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Final, TypeVar

from msgspec import Struct

from steersman.admission.interface import Chain, Plugin
from steersman.admission_plugins.certificate_approval import CERTIFICATE_APPROVAL
from steersman.admission_plugins.certificate_signing import CERTIFICATE_SIGNING
from steersman.admission_plugins.certificate_subject_restriction import CERTIFICATE_SUBJECT_RESTRICTION
from steersman.admission_plugins.cluster_trust_bundle_attest import CLUSTER_TRUST_BUNDLE_ATTEST
from steersman.admission_plugins.declaration import ConfiguredDeclaration, Declaration, PluginDependencies
from steersman.admission_plugins.default_ingress_class import DEFAULT_INGRESS_CLASS_PLUGIN
from steersman.admission_plugins.default_storage_class import DEFAULT_STORAGE_CLASS_PLUGIN
from steersman.admission_plugins.default_toleration_seconds import DEFAULT_TOLERATION_SECONDS
from steersman.admission_plugins.limit_ranger import LIMIT_RANGER
from steersman.admission_plugins.namespace_lifecycle import NAMESPACE_LIFECYCLE
from steersman.admission_plugins.node_declared_feature_validator import NODE_DECLARED_FEATURE_VALIDATOR
from steersman.admission_plugins.persistent_volume_claim_resize import PERSISTENT_VOLUME_CLAIM_RESIZE
from steersman.admission_plugins.pod_resize_validator import POD_RESIZE_VALIDATOR
from steersman.admission_plugins.pod_security.pod_security import POD_SECURITY
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


class Optional(Struct, frozen=True):
    """A plugin that is off by default: `module` of `admission_plugins`, which has its `declaration`, is imported when a
    flag enables it. `reader` is the function of `optional_plugins` that reads its configuration, if it has any.
    """

    name: str
    module: str
    declaration: str
    reader: str = ""
    on_by_default: bool = False

    def create(self, server: PluginDependencies, configuration: AdmissionConfiguration) -> Plugin:
        """Return a new plugin for a server. Raises OptionsError for an unusable configuration."""
        declared = getattr(import_module(f"steersman.admission_plugins.{self.module}"), self.declaration)
        if isinstance(declared, Declaration):
            return declared.create(server)
        read = getattr(import_module("steersman.controlplane.optional_plugins"), self.reader)
        made: Plugin = declared.make(server, read(configuration))
        return made


def _configured(declaration: ConfiguredDeclaration[C], read: Callable[[AdmissionConfiguration], C]) -> Configured:
    """Return a plugin together with the reader of its configuration."""

    def create(server: PluginDependencies, configuration: AdmissionConfiguration) -> Plugin:
        return declaration.make(server, read(configuration))

    return Configured(declaration.name, declaration.on_by_default, create)


PLUGINS: Final[tuple[Declaration | Configured | Optional, ...]] = (
    Optional("AlwaysAdmit", "always_admit", "ALWAYS_ADMIT"),
    Optional("NamespaceAutoProvision", "namespace_auto_provision", "NAMESPACE_AUTO_PROVISION"),
    NAMESPACE_LIFECYCLE,
    Optional("NamespaceExists", "namespace_exists", "NAMESPACE_EXISTS"),
    Optional(
        "LimitPodHardAntiAffinityTopology",
        "limit_pod_hard_anti_affinity_topology",
        "LIMIT_POD_HARD_ANTI_AFFINITY_TOPOLOGY",
    ),
    LIMIT_RANGER,
    SERVICE_ACCOUNT,
    Optional("NodeRestriction", "node_restriction.plugin", "NODE_RESTRICTION"),
    TAINT_NODES_BY_CONDITION,
    Optional("AlwaysPullImages", "always_pull_images", "ALWAYS_PULL_IMAGES"),
    Optional("ImagePolicyWebhook", "image_policy_webhook", "IMAGE_POLICY_WEBHOOK", "image_policy"),
    _configured(POD_SECURITY, AdmissionConfiguration.pod_security),
    Optional("PodNodeSelector", "pod_node_selector", "POD_NODE_SELECTOR", "pod_node_selector"),
    PRIORITY,
    DEFAULT_TOLERATION_SECONDS,
    Optional("PodTolerationRestriction", "pod_toleration_restriction", "POD_TOLERATION_RESTRICTION", "pod_tolerations"),
    Optional("EventRateLimit", "event_rate_limit", "EVENT_RATE_LIMIT", "event_rate_limits"),
    Optional("ExtendedResourceToleration", "extended_resource_toleration", "EXTENDED_RESOURCE_TOLERATION"),
    DEFAULT_STORAGE_CLASS_PLUGIN,
    STORAGE_OBJECT_IN_USE_PROTECTION,
    Optional(
        "OwnerReferencesPermissionEnforcement",
        "owner_references_permission_enforcement",
        "OWNER_REFERENCES_PERMISSION_ENFORCEMENT",
    ),
    PERSISTENT_VOLUME_CLAIM_RESIZE,
    RUNTIME_CLASS,
    CERTIFICATE_APPROVAL,
    CERTIFICATE_SIGNING,
    CLUSTER_TRUST_BUNDLE_ATTEST,
    CERTIFICATE_SUBJECT_RESTRICTION,
    DEFAULT_INGRESS_CLASS_PLUGIN,
    Optional("DenyServiceExternalIPs", "deny_service_external_ips", "DENY_SERVICE_EXTERNAL_IPS"),
    POD_TOPOLOGY_LABELS,
    NODE_DECLARED_FEATURE_VALIDATOR,
    POD_RESIZE_VALIDATOR,
    MUTATING_ADMISSION_POLICY,
    _configured(MUTATING_ADMISSION_WEBHOOK, AdmissionConfiguration.mutating_webhooks),
    VALIDATING_ADMISSION_POLICY,
    _configured(VALIDATING_ADMISSION_WEBHOOK, AdmissionConfiguration.validating_webhooks),
    _configured(RESOURCE_QUOTA, AdmissionConfiguration.resource_quota),
    Optional("AlwaysDeny", "always_deny", "ALWAYS_DENY"),
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
            each.create(server) if isinstance(each, Declaration) else each.create(server, configuration)
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
