"""The built-in admission plugins: which there are, in upstream's order, and what each of them is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from steersman.admission.interface import Chain, Plugin
from steersman.admission_plugins.default_toleration_seconds import DefaultTolerationSeconds
from steersman.admission_plugins.limit_ranger import LimitRanger
from steersman.admission_plugins.namespace_lifecycle import NamespaceLifecycle
from steersman.admission_plugins.priority import Priority
from steersman.admission_plugins.quota_evaluators import ServiceEvaluator, VolumeClaimEvaluator
from steersman.admission_plugins.quota_pods import PodEvaluator
from steersman.admission_plugins.quota_resource_claims import ResourceClaimEvaluator
from steersman.admission_plugins.resource_quota import ResourceQuota
from steersman.authorization.interface import Authorizer
from steersman.controlplane.options import Options
from steersman.machinery.errors import GroupResource
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
    )


PLUGINS: Final = (
    BuiltIn("NamespaceLifecycle", True, lambda server: NamespaceLifecycle(server.namespace_phase)),
    BuiltIn("LimitRanger", True, lambda server: LimitRanger(server.objects("", "limitranges"))),
    BuiltIn("Priority", True, _priority),
    BuiltIn("DefaultTolerationSeconds", True, _default_toleration_seconds),
    BuiltIn("ResourceQuota", True, _resource_quota),
)
"""In the order in which they are called, which no flag changes."""


def admission_chain(server: Surroundings) -> Chain:
    """The plugins that are on: those of the default set and those enabled, without those disabled."""
    on, off = server.options.enable_admission_plugins, server.options.disable_admission_plugins
    return Chain(
        tuple(each.make(server) for each in PLUGINS if (each.on_by_default or each.name in on) and each.name not in off)
    )
