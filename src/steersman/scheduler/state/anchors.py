"""By what the pods that a selection means can be found without a look at all the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from steersman.machinery.selectors.labels import DOUBLE_EQUALS, EQUALS, IN
from steersman.scheduler.demand.affinity_terms import PodSelection

Anchor = tuple[str, str]
"""A label and its value; or "" and a namespace, as no label is named so."""

ANYWHERE: Final[Anchor] = ("", "")
_MOST: Final = 16
"""Anchors of one selection: one that names more values or namespaces is looked for among all pods."""


def anchors_of(selection: PodSelection) -> Sequence[Anchor]:
    """Each pod that is meant has one of these."""
    for each in selection.selector.requirements:
        if each.operator in (IN, EQUALS, DOUBLE_EQUALS) and len(each.values) <= _MOST:
            return [(each.key, value) for value in each.values]
    if not selection.namespace_selector.selectable and len(selection.namespaces) <= _MOST:
        return [("", namespace) for namespace in selection.namespaces]
    return (ANYWHERE,)


def anchors_at(namespace: str, labels: Mapping[str, str]) -> Iterator[Anchor]:
    """Those that a pod has."""
    yield ANYWHERE
    yield "", namespace
    yield from labels.items()
