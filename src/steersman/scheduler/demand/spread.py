"""Topology spread of pods: constraints of the pod, or the system's defaults (plugins/podtopologyspread)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from steersman.api.core import v1 as core
from steersman.machinery.selectors.labels import IN, Requirement, Selector, from_label_selector

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
_HARD: Final = "DoNotSchedule"
_HONOR: Final = "Honor"


class SpreadConstraint(Struct, frozen=True):
    """Spread constraint as it applies to one pod."""

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int = 1
    honors_affinity: bool = True
    """True if only nodes count that the pod's node selector and affinity allow."""
    honors_taints: bool = False
    """True if only nodes count whose taints the pod tolerates."""
    counts_itself: bool = False
    """True if the constraint's selector matches the pod itself."""


class Spreading(Struct, frozen=True):
    """Spread constraints that must hold (hard), and those that should (soft)."""

    hard: Sequence[SpreadConstraint] = ()
    soft: Sequence[SpreadConstraint] = ()
    all_keys_needed: bool = True
    """True if a node without the label of one soft constraint gets no score for the others either."""


NO_SPREADING: Final = Spreading()


def spreading_of(pod: core.Pod, default_selector: Selector) -> Spreading:
    """Return the constraints of a pod; without any, the system's defaults for pods that `default_selector` selects.

    Raises SelectorError.
    """
    given = pod.spec.topology_spread_constraints
    if given:
        hard = tuple(_constraint(each, pod) for each in given if each.when_unsatisfiable == _HARD)
        return Spreading(hard, tuple(_constraint(each, pod) for each in given if each.when_unsatisfiable != _HARD))
    if default_selector.empty:
        return NO_SPREADING
    soft = (SpreadConstraint(3, HOSTNAME, default_selector), SpreadConstraint(5, ZONE, default_selector))
    return Spreading(soft=soft, all_keys_needed=False)


def _constraint(given: core.TopologySpreadConstraint, pod: core.Pod) -> SpreadConstraint:
    labels = pod.metadata.labels
    selector = from_label_selector(given.label_selector)
    same = [Requirement(key, IN, (labels[key],)) for key in given.match_label_keys if key in labels]
    selector = selector.add(*same)
    return SpreadConstraint(
        given.max_skew,
        given.topology_key,
        selector,
        given.min_domains or 1,
        honors_affinity=(given.node_affinity_policy or _HONOR) == _HONOR,
        honors_taints=given.node_taints_policy == _HONOR,
        counts_itself=selector.matches(labels),
    )


def selector_of_owners(services: Iterable[core.Service], owner: Selector | None, pod: core.Pod) -> Selector:
    """Return the selector of pods like this one: by its Services and its owner (DefaultSelector)."""
    labels = pod.metadata.labels
    common: dict[str, str] = {}
    for service in services:
        wanted = service.spec.selector
        if wanted and all(labels.get(key) == value for key, value in wanted.items()):
            common |= wanted
    requirements = [Requirement(key, IN, (value,)) for key, value in common.items()]
    return Selector((*requirements, *(owner.requirements if owner is not None else ())))
