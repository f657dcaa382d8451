"""Why a pod does not fit on a node, and on none (framework.Status, Diagnosis, FitError)."""

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
"""Names of upstream's plugins: what rejected a pod says what may bring it back."""


class Rejection(Struct, frozen=True):
    """What a plugin says against a node, or against a pod altogether."""

    plugin: str
    reasons: tuple[str, ...]
    resolvable: bool = False
    """Whether it may help to delete other pods (Unschedulable, not UnschedulableAndUnresolvable)."""


class Diagnosis(Struct):
    """Why a pod fits on no node."""

    nodes: int
    """How many nodes there are."""
    rejections: Counter[Rejection] = field(default_factory=Counter)
    """How many nodes were rejected for what."""
    absent: Rejection | None = None
    """What is said of the nodes that were not looked at."""
    before: Rejection | None = None
    """What rejected the pod before any node was looked at."""
    after: str = ""
    """What came of trying to make room."""
    plugins: set[str] = field(default_factory=set)
    """Who rejected it."""
    pending_plugins: set[str] = field(default_factory=set)
    """Who waits for something that is under way."""

    def message(self) -> str:
        """As upstream words it: `0/3 nodes are available: 1 Insufficient cpu, ... preemption: ...`."""
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
"""Resources in a rejection that is remembered: a pod may ask for thousands."""


def insufficient(resources: tuple[str, ...], *, resolvable: bool) -> Rejection:
    """A node has too little left of some resources."""
    make = _insufficient if len(resources) <= _MOST_KEPT else _insufficient.__wrapped__
    return make(resources, resolvable)


@lru_cache(1024)
def _insufficient(resources: tuple[str, ...], resolvable: bool) -> Rejection:
    reasons = tuple("Too many pods" if each == "pods" else f"Insufficient {each}" for each in resources)
    return Rejection(NODE_RESOURCES_FIT, reasons, resolvable)


def plugins_of(rejections: Iterable[Rejection]) -> set[str]:
    """Who said something."""
    return {each.plugin for each in rejections}
