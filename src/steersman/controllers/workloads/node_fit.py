"""Which nodes a pod may run on by its node selector, affinity and tolerations."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from steersman.api.core.v1 import Node, PodSpec, Taint, Toleration
from steersman.machinery.built_in import taints as built_in
from steersman.machinery.built_in.node_affinity import required

Fits = Callable[[Node], bool]


def node_affinity(spec: PodSpec) -> Fits | None:
    """What a pod requires of nodes' labels and names; None if it requires nothing."""
    matches = required(spec)
    return None if matches is None else lambda node: matches(node.metadata.name, node.metadata.labels)


def tolerates(tolerations: Iterable[Toleration], taints: Iterable[Taint], *effects: str) -> bool:
    """Whether all taints with one of the effects are tolerated."""
    return all(
        any(built_in.tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
        if taint.effect in effects
    )
