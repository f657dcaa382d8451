"""PodTopologyLabels: a pod gets the zone and region labels of its node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from steersman.admission.interface import CREATE, Attributes, Plugin
from steersman.admission_plugins.declaration import Declaration, PluginDependencies
from steersman.machinery.identity.schema import GroupResource
from steersman.rest.objects import Reading

_PODS: Final = GroupResource("", "pods")
_COPIED: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def topology_of(node: Any) -> dict[str, str]:
    """Return the labels of a node that its pods get."""
    labels = node.metadata.labels
    return {key: labels[key] for key in _COPIED if key in labels}


class PodTopologyLabels(Plugin):
    """Copies labels of nodes. `find` returns the `topology_of` a node, None if the node does not exist."""

    name = "PodTopologyLabels"
    operations = frozenset({CREATE})
    resources = frozenset({_PODS})
    subresources = frozenset({"", "binding"})
    mutates = True
    changed_fields = ("metadata.labels",)

    def __init__(self, find: Callable[[str], dict[str, str] | None]) -> None:
        self._find = find

    async def admit(self, attributes: Attributes) -> None:
        """Label a pod that is created on a node, or a binding, whose labels are copied to the pod."""
        if not attributes.action.subresource:
            node = attributes.obj.spec.node_name
        elif attributes.action.subresource == "binding" and attributes.obj.target.kind == "Node":
            node = attributes.obj.target.name
        else:
            node = ""
        if node and (labels := self._find(node)):
            metadata = attributes.obj.metadata
            metadata.labels = metadata.labels | labels


def _make(dependencies: PluginDependencies) -> PodTopologyLabels:
    return PodTopologyLabels(dependencies.reader("nodes", Reading(topology_of, "metadata.labels")))


POD_TOPOLOGY_LABELS: Final = Declaration(PodTopologyLabels, on_by_default=True, make=_make)
