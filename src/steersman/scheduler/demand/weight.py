"""Weight of a pod: heavy pods demand so much that deciding them takes longer than a time slice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from steersman.api.core import v1 as core
from steersman.api.meta.v1 import LabelSelector

MOST: Final = 400
"""Terms, requirements and their values, tolerations, ports, constraints and labels of a pod that is not heavy."""
MOST_LABELS: Final = 64
"""Labels of a pod for which results are cached by its labels."""


def is_heavy(pod: core.Pod) -> bool:
    """Return True if a pod has more than MOST parts that are compared with nodes or other pods."""
    total = 0
    for number in _parts(pod):
        total += number
        if total > MOST:
            return True
    return False


def _parts(pod: core.Pod) -> Iterator[int]:
    spec = pod.spec
    yield len(pod.metadata.labels) + len(spec.tolerations) + len(spec.node_selector) + len(spec.containers or ())
    for container in (*(spec.containers or ()), *spec.init_containers):
        yield len(container.ports)
    for constraint in spec.topology_spread_constraints:
        yield from _of_selector(constraint.label_selector)
    affinity = spec.affinity
    if affinity is None:
        return
    nodes = affinity.node_affinity
    if nodes is not None:
        required = nodes.required_during_scheduling_ignored_during_execution
        if required is not None:
            yield from _of_node_terms(required.node_selector_terms or ())
        preferred = nodes.preferred_during_scheduling_ignored_during_execution
        yield from _of_node_terms(each.preference for each in preferred)
    for pods in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if pods is not None:
            yield from _of_pod_terms(pods.required_during_scheduling_ignored_during_execution)
            yield from _of_pod_terms(
                each.pod_affinity_term for each in pods.preferred_during_scheduling_ignored_during_execution
            )


def _of_node_terms(terms: Iterable[core.NodeSelectorTerm]) -> Iterator[int]:
    for term in terms:
        yield 1
        for each in (*term.match_expressions, *term.match_fields):
            yield 1 + len(each.values)


def _of_pod_terms(terms: Iterable[core.PodAffinityTerm]) -> Iterator[int]:
    for term in terms:
        yield len(term.namespaces)
        yield from _of_selector(term.label_selector)
        yield from _of_selector(term.namespace_selector)


def _of_selector(selector: LabelSelector | None) -> Iterator[int]:
    yield 1
    if selector is not None:
        yield len(selector.match_labels)
        for each in selector.match_expressions:
            yield 1 + len(each.values)
