"""Anchors: labels or namespaces by which the pods of a selection are found without checking all pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from steersman.machinery.selectors.labels import DOUBLE_EQUALS, EQUALS, IN
from steersman.scheduler.demand.affinity_terms import PodSelection

Anchor = tuple[str, str]
"""Label and its value, or "" and a namespace, as no label has an empty name."""

ANYWHERE: Final[Anchor] = ("", "")
_MOST: Final = 16
"""Anchors of one selection; a selection with more values or namespaces is matched against all pods."""


def anchors_of(selection: PodSelection) -> Sequence[Anchor]:
    """Return anchors of a selection: each selected pod has at least one of them."""
    for each in selection.selector.requirements:
        if each.operator in (IN, EQUALS, DOUBLE_EQUALS) and len(each.values) <= _MOST:
            return [(each.key, value) for value in each.values]
    if not selection.namespace_selector.selectable and len(selection.namespaces) <= _MOST:
        return [("", namespace) for namespace in selection.namespaces]
    return (ANYWHERE,)


def anchors_at(namespace: str, labels: Mapping[str, str]) -> Iterator[Anchor]:
    """Yield the anchors of a pod."""
    yield ANYWHERE
    yield "", namespace
    yield from labels.items()
