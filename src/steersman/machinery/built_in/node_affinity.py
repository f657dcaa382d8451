"""Node selectors and node affinity of pods (component-helpers scheduling/corev1/nodeaffinity)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from steersman.api.core import v1 as core
from steersman.machinery.selectors.labels import (
    DOES_NOT_EXIST,
    EXISTS,
    GREATER_THAN,
    IN,
    LESS_THAN,
    NOT_IN,
    Labels,
    Selector,
    SelectorError,
    new_requirement,
)

Matcher = Callable[[str, Labels], bool]
"""A function that returns True if a node with this name and these labels matches."""

_OPERATORS: Final = {
    "In": IN,
    "NotIn": NOT_IN,
    "Exists": EXISTS,
    "DoesNotExist": DOES_NOT_EXIST,
    "Gt": GREATER_THAN,
    "Lt": LESS_THAN,
}
_NAME: Final = "metadata.name"


def required(spec: core.PodSpec) -> Matcher | None:
    """Return a matcher for `nodeSelector` and the required node affinity together; None if the pod has neither."""
    wanted = spec.node_selector
    selector = _required_selector(spec)
    terms = None if selector is None else node_selector(selector)
    if not wanted:
        return terms
    pairs = tuple(wanted.items())

    def matches(name: str, labels: Labels) -> bool:
        return all(labels.get(key) == value for key, value in pairs) and (terms is None or terms(name, labels))

    return matches


def node_selector(selector: core.NodeSelector) -> Matcher:
    """Return a matcher that needs one matching term; empty and malformed terms match nothing."""
    matchers = [matcher for each in selector.node_selector_terms or () if (matcher := _term(each)) is not None]

    def matches(name: str, labels: Labels) -> bool:
        return any(each(name, labels) for each in matchers)

    return matches


def preferred(spec: core.PodSpec) -> Sequence[tuple[int, Matcher]]:
    """Return the preferred terms as pairs of weight and matcher."""
    affinity = None if spec.affinity is None else spec.affinity.node_affinity
    if affinity is None:
        return ()
    weighted = []
    for each in affinity.preferred_during_scheduling_ignored_during_execution:
        matcher = _term(each.preference)
        if each.weight and matcher is not None:
            weighted.append((each.weight, matcher))
    return tuple(weighted)


def named_nodes(spec: core.PodSpec) -> frozenset[str] | None:
    """Return the names of the only nodes that the required affinity can match.

    Returns None if the affinity is not restricted by names.
    """
    selector = _required_selector(spec)
    if selector is None or not selector.node_selector_terms:
        return None
    names: frozenset[str] = frozenset()
    for term in selector.node_selector_terms:
        of_term: frozenset[str] | None = None
        for each in term.match_fields:
            if each.key == _NAME and each.operator == "In":
                of_term = frozenset(each.values) if of_term is None else of_term & frozenset(each.values)
        if of_term is None:
            return None
        names |= of_term
    return names


def _required_selector(spec: core.PodSpec) -> core.NodeSelector | None:
    affinity = None if spec.affinity is None else spec.affinity.node_affinity
    return None if affinity is None else affinity.required_during_scheduling_ignored_during_execution


def _term(term: core.NodeSelectorTerm) -> Matcher | None:
    if not term.match_expressions and not term.match_fields:
        return None
    labels_match = _expressions(term.match_expressions)
    names_match = _fields(term.match_fields)
    if labels_match is None or names_match is None:
        return None
    return lambda name, labels: labels_match.matches(labels) and names_match(name)


def _expressions(requirements: Iterable[core.NodeSelectorRequirement]) -> Selector | None:
    found = []
    for each in requirements:
        operator = _OPERATORS.get(each.operator)
        if operator is None:
            return None
        try:
            found.append(new_requirement(each.key, operator, each.values))
        except SelectorError:
            return None
    return Selector(found)


def _fields(requirements: Iterable[core.NodeSelectorRequirement]) -> Callable[[str], bool] | None:
    names: set[str] = set()
    unwanted: set[str] = set()
    for each in requirements:
        if each.operator not in ("In", "NotIn") or len(each.values) != 1:
            return None
        value = each.values[0] if each.key == _NAME else ""
        if each.key != _NAME and each.operator == "NotIn":
            continue
        (names if each.operator == "In" else unwanted).add(value)
    return lambda name: all(name == value for value in names) and name not in unwanted
