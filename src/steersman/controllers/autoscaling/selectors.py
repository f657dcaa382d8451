"""Index of autoscalers by the pods they select, as no two may scale the same pods (pkg/controller/util/selectors)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from steersman.client.informer import Key
from steersman.machinery.selectors.labels import DOUBLE_EQUALS, EQUALS, Selector

_ANY: Final = ("", "")
"""Index key of selectors that require no label with a single value."""

_Pair = tuple[str, str]


class Selectors:
    """Selectors of autoscalers, indexed by one label that each requires.

    So finding the autoscalers of a pod costs as much as it has labels, not as many as there are autoscalers.
    """

    def __init__(self) -> None:
        self._selectors: dict[Key, Selector] = {}
        self._by_label: dict[tuple[str, _Pair], set[Key]] = {}

    def put(self, key: Key, selector: Selector) -> None:
        """Set the selector of an autoscaler."""
        if self._selectors.get(key) != selector:
            self.remove(key)
            self._selectors[key] = selector
            self._by_label.setdefault((key[0], _equality_pair(selector)), set()).add(key)

    def remove(self, key: Key) -> None:
        """Remove an autoscaler."""
        selector = self._selectors.pop(key, None)
        if selector is not None:
            place = key[0], _equality_pair(selector)
            self._by_label[place].discard(key)
            if not self._by_label[place]:
                del self._by_label[place]

    def selecting(self, namespace: str, all_labels: Iterable[Mapping[str, str]]) -> list[Key]:
        """Return the autoscalers that select any of these pods (by their labels) of a namespace, sorted by name."""
        keys: set[Key] = set()
        for labels in all_labels:
            for pair in (*labels.items(), _ANY):
                for key in self._by_label.get((namespace, pair), ()):
                    if key not in keys and self._selectors[key].matches(labels):
                        keys.add(key)
        return sorted(keys)


def _equality_pair(selector: Selector) -> _Pair:
    for each in selector.requirements:
        if each.operator in (EQUALS, DOUBLE_EQUALS):
            return each.key, each.values[0]
    return _ANY
