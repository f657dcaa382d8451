"""LimitPodHardAntiAffinityTopology: pods may keep others off their node, but not off a larger topology such as a zone."""

from __future__ import annotations

from typing import Final

from steersman.admission.interface import CREATE, OBJECT_ALONE, UPDATE, Attributes, Plugin
from steersman.admission_plugins.declaration import Declaration
from steersman.machinery.errors.status import forbidden
from steersman.machinery.identity.schema import GroupResource

_PODS: Final = GroupResource("", "pods")
_HOSTNAME: Final = "kubernetes.io/hostname"


class LimitPodHardAntiAffinityTopology(Plugin):
    """Refuses required pod anti-affinity with a topology key other than the host name."""

    name = "LimitPodHardAntiAffinityTopology"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({_PODS})
    subresources = OBJECT_ALONE
    validates = True

    async def validate(self, attributes: Attributes) -> None:
        """Raise StatusError 403 for another topology key."""
        affinity = attributes.obj.spec.affinity
        if affinity is None or affinity.pod_anti_affinity is None:
            return
        for term in affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution:
            if term.topology_key != _HOSTNAME:
                raise forbidden(
                    _PODS,
                    attributes.obj.metadata.name,
                    f"affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {term.topology_key} "
                    f"but only key {_HOSTNAME} is allowed",
                )


LIMIT_POD_HARD_ANTI_AFFINITY_TOPOLOGY: Final = Declaration(
    LimitPodHardAntiAffinityTopology, on_by_default=False, make=lambda dependencies: LimitPodHardAntiAffinityTopology()
)
