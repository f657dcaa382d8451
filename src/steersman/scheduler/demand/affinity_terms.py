"""Terms of pod affinity: selected pods and a topology key (framework.AffinityTerm)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from steersman.api.core import v1 as core
from steersman.machinery.selectors.labels import NOTHING, Labels, Selector, SelectorError, from_label_selector


@dataclass(frozen=True, slots=True)
class PodSelection:
    """Selection of pods by namespace and labels.

    Its hash is cached, as thousands of selections may be looked up again and again.
    """

    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.namespaces, self.namespace_selector, self.selector)))

    def __hash__(self) -> int:
        return self._hash

    def matches(self, namespace: str, labels: Labels, namespace_labels: Labels) -> bool:
        """Return True if a pod is selected."""
        if namespace not in self.namespaces and not self.namespace_selector.matches(namespace_labels):
            return False
        return self.selector.matches(labels)


class AffinityTerm(Struct, frozen=True):
    """Selected pods, and the node label (topology key) whose value says which nodes count as near to theirs."""

    pods: PodSelection
    topology_key: str


class WeightedTerm(Struct, frozen=True):
    """Preferred term with its weight, negative for anti-affinity."""

    weight: int
    term: AffinityTerm


class PodTerms(Struct, frozen=True):
    """All affinity terms of a pod."""

    required_affinity: Sequence[AffinityTerm] = ()
    required_anti_affinity: Sequence[AffinityTerm] = ()
    preferred: Sequence[WeightedTerm] = ()

    @property
    def are_none(self) -> bool:
        """Return True if the pod has no affinity terms."""
        return not (self.required_affinity or self.required_anti_affinity or self.preferred)


NO_TERMS = PodTerms()


def terms_of(pod: core.Pod) -> PodTerms:
    """Return the terms of a pod. As upstream, a list with an invalid selector counts as empty."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return NO_TERMS
    near, far = affinity.pod_affinity, affinity.pod_anti_affinity
    namespace = pod.metadata.namespace
    required_near = () if near is None else near.required_during_scheduling_ignored_during_execution
    required_far = () if far is None else far.required_during_scheduling_ignored_during_execution
    preferred_near = () if near is None else near.preferred_during_scheduling_ignored_during_execution
    preferred_far = () if far is None else far.preferred_during_scheduling_ignored_during_execution
    return PodTerms(
        _terms(required_near, namespace),
        _terms(required_far, namespace),
        (*_weighted(preferred_near, namespace, 1), *_weighted(preferred_far, namespace, -1)),
    )


def _terms(terms: Iterable[core.PodAffinityTerm], namespace: str) -> Sequence[AffinityTerm]:
    try:
        return tuple(_term(each, namespace) for each in terms)
    except SelectorError:
        return ()


def _weighted(terms: Iterable[core.WeightedPodAffinityTerm], namespace: str, sign: int) -> Sequence[WeightedTerm]:
    try:
        return tuple(WeightedTerm(sign * each.weight, _term(each.pod_affinity_term, namespace)) for each in terms)
    except SelectorError:
        return ()


def _term(term: core.PodAffinityTerm, namespace: str) -> AffinityTerm:
    namespaces = frozenset(term.namespaces)
    if not namespaces and term.namespace_selector is None:
        namespaces = frozenset({namespace})
    by_labels = NOTHING if term.namespace_selector is None else from_label_selector(term.namespace_selector)
    return AffinityTerm(
        PodSelection(namespaces, by_labels, from_label_selector(term.label_selector)), term.topology_key
    )
