"""Matching of DaemonSets and nodes, and the parts of a pod that bind it to a node (pkg/controller/daemon/util)."""

from __future__ import annotations

from typing import Final

import msgspec

from steersman.api.apps.v1 import DaemonSet
from steersman.api.core.v1 import (
    Affinity,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodSpec,
    PodTemplateSpec,
    Toleration,
)
from steersman.controllers.workloads.copies import mutable_template_copy
from steersman.controllers.workloads.revisions import REVISION_HASH
from steersman.machinery.built_in.node_affinity import required
from steersman.machinery.built_in.taints import untolerated
from steersman.net.ascii import is_digits

_GENERATION: Final = "deprecated.daemonset.template.generation"
_GENERATION_LABEL: Final = "pod-template-generation"
_NODE_NAME: Final = "metadata.name"
_TOLERATED: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_TOLERATED_ON_HOST_NETWORK: Final = ("node.kubernetes.io/network-unavailable", "NoSchedule")


class NodeMatcher:
    """Predicate over nodes for the pods of a DaemonSet."""

    def __init__(self, daemon_set: DaemonSet) -> None:
        spec = daemon_set.spec.template.spec
        self._name = spec.node_name
        self._matches = required(spec)
        self._tolerations = with_tolerations(spec)

    def __call__(self, node: Node) -> tuple[bool, bool]:
        """Return True if a pod should run on the node, and True if an existing pod there may stay."""
        if self._name and self._name != node.metadata.name:
            return False, False
        if self._matches is not None and not self._matches(node.metadata.name, node.metadata.labels):
            return False, False
        taints = node.spec.taints
        if not taints or untolerated(self._tolerations, taints, "NoExecute", "NoSchedule") is None:
            return True, True
        return False, untolerated(self._tolerations, taints, "NoExecute") is None


def with_tolerations(spec: PodSpec) -> list[Toleration]:
    """Return a pod's tolerations, and those of node conditions that every daemon pod has."""
    tolerations = list(spec.tolerations)
    network = (_TOLERATED_ON_HOST_NETWORK,) if spec.host_network else ()
    for key, effect in (*_TOLERATED, *network):
        toleration = Toleration(key=key, operator="Exists", effect=effect)
        for number, each in enumerate(tolerations):
            if msgspec.structs.replace(each, toleration_seconds=None) == toleration:
                tolerations[number] = toleration
                break
        else:
            tolerations.append(toleration)
    return tolerations


def generation_of(daemon_set: DaemonSet) -> str | None:
    """Return the template generation of older API versions, None if the DaemonSet has none."""
    text = daemon_set.metadata.annotations.get(_GENERATION, "")
    return str(int(text)) if is_digits(text.removeprefix("-")) else None


def template_for(daemon_set: DaemonSet, hash_: str) -> PodTemplateSpec:
    """Return the pod template of a revision."""
    template = mutable_template_copy(daemon_set.spec.template)
    template.spec.tolerations = with_tolerations(template.spec)
    labels = {**template.metadata.labels, REVISION_HASH: hash_}
    generation = generation_of(daemon_set)
    if generation is not None:
        labels[_GENERATION_LABEL] = generation
    template.metadata.labels = labels
    return template


def is_updated(pod: Pod, daemon_set: DaemonSet, hash_: str) -> bool:
    """Return True if a pod has the present template."""
    labels = pod.metadata.labels
    if hash_ and labels.get(REVISION_HASH) == hash_:
        return True
    generation = generation_of(daemon_set)
    return generation is not None and labels.get(_GENERATION_LABEL) == generation


def bound_to(template: PodTemplateSpec, node: str) -> PodTemplateSpec:
    """Return a template whose pods can be scheduled only to one node."""
    fields = [NodeSelectorRequirement(key=_NODE_NAME, operator="In", values=[node])]
    selector = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=fields)])
    replace = msgspec.structs.replace
    affinity = template.spec.affinity or Affinity()
    own = replace(
        affinity.node_affinity or NodeAffinity(), required_during_scheduling_ignored_during_execution=selector
    )
    return replace(template, spec=replace(template.spec, affinity=replace(affinity, node_affinity=own)))


def target_node(pod: Pod) -> str | None:
    """Return the node that a pod runs on or will be scheduled to, None if it is not limited to one node."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    for term in required.node_selector_terms or () if required else ():
        for each in term.match_fields:
            if each.key == _NODE_NAME and each.operator == "In":
                return each.values[0] if len(each.values) == 1 else None
    return None
