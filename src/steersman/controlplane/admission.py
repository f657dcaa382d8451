"""The built-in admission plugins: which there are, in upstream's order, and what each of them is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from steersman.admission.interface import Chain, Plugin
from steersman.admission_plugins.always_pull_images import AlwaysPullImages
from steersman.admission_plugins.default_toleration_seconds import DefaultTolerationSeconds
from steersman.admission_plugins.extended_resource_toleration import ExtendedResourceToleration
from steersman.admission_plugins.limit_pod_hard_anti_affinity_topology import LimitPodHardAntiAffinityTopology
from steersman.admission_plugins.namespace_lifecycle import NamespaceLifecycle
from steersman.admission_plugins.node_declared_feature_validator import NodeDeclaredFeatureValidator, declared_features
from steersman.admission_plugins.pod_node_selector import PodNodeSelector, node_selector_of
from steersman.admission_plugins.pod_resize_validator import PodResizeValidator, host_of
from steersman.admission_plugins.pod_security import PodSecurity, namespace_policy
from steersman.admission_plugins.pod_toleration_restriction import PodTolerationRestriction, toleration_annotations
from steersman.admission_plugins.pod_topology_labels import PodTopologyLabels, topology_of
from steersman.admission_plugins.priority import Priority
from steersman.admission_plugins.runtime_class import RuntimeClass
from steersman.admission_plugins.service_account import ServiceAccount, account_of
from steersman.admission_plugins.taint_nodes_by_condition import TaintNodesByCondition
from steersman.authorization.interface import Authorizer
from steersman.controlplane.options import Options
from steersman.rest.objects import Objects


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What plugins may use of the server."""

    options: Options
    authorizer: Authorizer
    objects: Callable[[str, str], Objects]
    """(group, plural) -> its objects."""
    namespace_phase: Callable[[str], str | None]
    """The phase of a namespace, None if there is none."""


class BuiltIn(NamedTuple):
    """A plugin by its name on the command line."""

    name: str
    on_by_default: bool
    make: Callable[[Surroundings], Plugin]


def _priority(server: Surroundings) -> Priority:
    classes = server.objects("scheduling.k8s.io", "priorityclasses")
    return Priority(lambda name: classes.find("", name), classes.list, classes.changed)


def _service_account(server: Surroundings) -> ServiceAccount:
    accounts = server.objects("", "serviceaccounts")
    return ServiceAccount(lambda namespace, name: accounts.known(namespace, name, account_of))


def _pod_security(server: Surroundings) -> PodSecurity:
    namespaces, pods = server.objects("", "namespaces"), server.objects("", "pods")
    return PodSecurity(
        lambda name: namespaces.known("", name, namespace_policy),
        lambda namespace: (pods.count(namespace), pods.list(namespace)),
    )


def _runtime_class(server: Surroundings) -> RuntimeClass:
    classes = server.objects("node.k8s.io", "runtimeclasses")
    return RuntimeClass(lambda name: classes.find("", name))


def _pod_node_selector(server: Surroundings) -> PodNodeSelector:
    namespaces = server.objects("", "namespaces")
    return PodNodeSelector(lambda name: namespaces.known("", name, node_selector_of))


def _pod_toleration_restriction(server: Surroundings) -> PodTolerationRestriction:
    namespaces = server.objects("", "namespaces")
    return PodTolerationRestriction(lambda name: namespaces.known("", name, toleration_annotations))


def _node_declared_features(server: Surroundings) -> NodeDeclaredFeatureValidator:
    nodes = server.objects("", "nodes")
    return NodeDeclaredFeatureValidator(lambda name: nodes.known("", name, declared_features))


def _pod_resize(server: Surroundings) -> PodResizeValidator:
    nodes = server.objects("", "nodes")
    return PodResizeValidator(lambda name: nodes.known("", name, host_of))


def _pod_topology_labels(server: Surroundings) -> PodTopologyLabels:
    nodes = server.objects("", "nodes")
    return PodTopologyLabels(lambda name: nodes.known("", name, topology_of))


def _default_toleration_seconds(server: Surroundings) -> DefaultTolerationSeconds:
    options = server.options
    return DefaultTolerationSeconds(
        options.default_not_ready_toleration_seconds, options.default_unreachable_toleration_seconds
    )


PLUGINS: Final = (
    BuiltIn("NamespaceLifecycle", True, lambda server: NamespaceLifecycle(server.namespace_phase)),
    BuiltIn("LimitPodHardAntiAffinityTopology", False, lambda server: LimitPodHardAntiAffinityTopology()),
    BuiltIn("ServiceAccount", True, _service_account),
    BuiltIn("TaintNodesByCondition", True, lambda server: TaintNodesByCondition()),
    BuiltIn("AlwaysPullImages", False, lambda server: AlwaysPullImages()),
    BuiltIn("PodSecurity", True, _pod_security),
    BuiltIn("PodNodeSelector", False, _pod_node_selector),
    BuiltIn("Priority", True, _priority),
    BuiltIn("DefaultTolerationSeconds", True, _default_toleration_seconds),
    BuiltIn("PodTolerationRestriction", False, _pod_toleration_restriction),
    BuiltIn("ExtendedResourceToleration", False, lambda server: ExtendedResourceToleration()),
    BuiltIn("RuntimeClass", True, _runtime_class),
    BuiltIn("PodTopologyLabels", True, _pod_topology_labels),
    BuiltIn("NodeDeclaredFeatureValidator", True, _node_declared_features),
    BuiltIn("PodResizeValidator", True, _pod_resize),
)
"""In the order in which they are called, which no flag changes."""


def admission_chain(server: Surroundings) -> Chain:
    """The plugins that are on: those of the default set and those enabled, without those disabled."""
    on, off = server.options.enable_admission_plugins, server.options.disable_admission_plugins
    return Chain(
        tuple(each.make(server) for each in PLUGINS if (each.on_by_default or each.name in on) and each.name not in off)
    )
