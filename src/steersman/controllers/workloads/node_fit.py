"""Which nodes a pod may run on by its node selector, affinity and tolerations (component-helpers nodeaffinity)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from steersman.api.core.v1 import Node, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration
from steersman.machinery.selectors.labels import (
    DOES_NOT_EXIST,
    EXISTS,
    GREATER_THAN,
    IN,
    LESS_THAN,
    NOT_IN,
    SelectorError,
    new_requirement,
    selector_from_set,
)

_OPERATORS = {
    "In": IN, "NotIn": NOT_IN, "Exists": EXISTS, "DoesNotExist": DOES_NOT_EXIST, "Gt": GREATER_THAN, "Lt": LESS_THAN,
}  # fmt: skip

Fits = Callable[[Node], bool]


def node_affinity(spec: PodSpec) -> Fits | None:
    """What a pod requires of nodes' labels and names; None if it requires nothing."""
    required = None
    if spec.affinity is not None and spec.affinity.node_affinity is not None:
        required = spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    selected = selector_from_set(spec.node_selector).matches if spec.node_selector else None
    if required is None:
        return None if selected is None else lambda node: selected(node.metadata.labels)
    terms = [term for each in required.node_selector_terms or () if (term := _term(each)) is not None]
    return lambda node: (
        (selected is None or selected(node.metadata.labels)) and any(term(node) for term in terms)
    )  # fmt: skip


def _term(term: NodeSelectorTerm) -> Fits | None:
    """What a term requires; None for one that matches no node, as it is empty or cannot be read."""
    if not term.match_expressions and not term.match_fields:
        return None
    try:
        expressions = [
            new_requirement(each.key, _OPERATORS.get(each.operator, each.operator), each.values).compile()
            for each in term.match_expressions
        ]
    except SelectorError:
        return None
    fields = [_field(each) for each in term.match_fields]
    return lambda node: (
        all(each(node.metadata.labels) for each in expressions) and all(each(node.metadata.name) for each in fields)
    )  # fmt: skip


def _field(requirement: NodeSelectorRequirement) -> Callable[[str], bool]:
    """What is required of a node's name, the only field there is."""
    if requirement.key != "metadata.name" or len(requirement.values) != 1:
        return lambda _: False
    wanted = requirement.values[0]
    if requirement.operator == "In":
        return lambda name: name == wanted
    return lambda name: requirement.operator == "NotIn" and name != wanted


def tolerates(tolerations: Iterable[Toleration], taints: Iterable[Taint], *effects: str) -> bool:
    """Whether all taints with one of the effects are tolerated."""
    return all(
        any(_tolerates(toleration, taint) for toleration in tolerations) for taint in taints if taint.effect in effects
    )  # fmt: skip


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value
