"""Reasons why a pod does not fit on a node, or on any node (framework.Status, Diagnosis, FitError)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from msgspec import Struct, field

NODE_AFFINITY = "NodeAffinity"
NODE_NAME = "NodeName"
NODE_PORTS = "NodePorts"
NODE_RESOURCES_FIT = "NodeResourcesFit"
NODE_UNSCHEDULABLE = "NodeUnschedulable"
BALANCED_ALLOCATION = "NodeResourcesBalancedAllocation"
IMAGE_LOCALITY = "ImageLocality"
TAINT_TOLERATION = "TaintToleration"
POD_TOPOLOGY_SPREAD = "PodTopologySpread"
INTER_POD_AFFINITY = "InterPodAffinity"
SCHEDULING_GATES = "SchedulingGates"
DEFAULT_PREEMPTION = "DefaultPreemption"
VOLUME_BINDING = "VolumeBinding"
VOLUME_ZONE = "VolumeZone"
VOLUME_RESTRICTIONS = "VolumeRestrictions"
NODE_VOLUME_LIMITS = "NodeVolumeLimits"
DYNAMIC_RESOURCES = "DynamicResources"
"""Names of upstream's plugins. The plugin that rejected a pod determines which events may bring the pod back."""


class Rejection(Struct, frozen=True):
    """Rejection of a node, or of a pod altogether, by a plugin."""

    plugin: str
    reasons: tuple[str, ...]
    resolvable: bool = False
    """True if deleting other pods may help (Unschedulable, not UnschedulableAndUnresolvable)."""


class Diagnosis(Struct):
    """Diagnosis of a pod that fits on no node."""

    nodes: int
    """Number of nodes."""
    rejections: Counter[Rejection] = field(default_factory=Counter)
    """Number of nodes by rejection."""
    absent: Rejection | None = None
    """Rejection that counts for nodes that were not checked."""
    before: Rejection | None = None
    """Rejection of the pod before any node was checked."""
    after: str = ""
    """Result of the attempt to preempt."""
    plugins: set[str] = field(default_factory=set)
    """Plugins that rejected the pod."""
    pending_plugins: set[str] = field(default_factory=set)
    """Plugins that wait for something in progress."""

    def message(self) -> str:
        """Return upstream's message: `0/3 nodes are available: 1 Insufficient cpu, ... preemption: ...`."""
        text = f"0/{self.nodes} nodes are available:"
        if self.before is not None:
            text += f" {', '.join(self.before.reasons)}."
        else:
            text += self._by_reason()
        return f"{text} {self.after}" if self.after else text

    def _by_reason(self) -> str:
        reasons: Counter[str] = Counter()
        for rejection, count in self.rejections.items():
            for reason in rejection.reasons:
                reasons[reason] += count
        left = self.nodes - self.rejections.total()
        if self.absent is not None and left > 0:
            for reason in self.absent.reasons:
                reasons[reason] += left
        return f" {', '.join(sorted(f'{count} {reason}' for reason, count in reasons.items()))}." if reasons else ""


_MOST_KEPT: Final = 8
"""Resources in a rejection that is cached; a pod may request thousands."""


def insufficient(resources: tuple[str, ...], *, resolvable: bool) -> Rejection:
    """Return the rejection of a node with too little of some resources."""
    make = _insufficient if len(resources) <= _MOST_KEPT else _insufficient.__wrapped__
    return make(resources, resolvable)


@lru_cache(1024)
def _insufficient(resources: tuple[str, ...], resolvable: bool) -> Rejection:
    reasons = tuple("Too many pods" if each == "pods" else f"Insufficient {each}" for each in resources)
    return Rejection(NODE_RESOURCES_FIT, reasons, resolvable)


def plugins_of(rejections: Iterable[Rejection]) -> set[str]:
    """Return the plugins of rejections."""
    return {each.plugin for each in rejections}
