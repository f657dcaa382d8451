"""Which autoscalers select a pod: no two may scale the same (pkg/controller/util/selectors)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from steersman.client.informer import Key
from steersman.machinery.selectors.labels import DOUBLE_EQUALS, EQUALS, Selector

_ANY: Final = ("", "")
"""Stands for selectors that name no label with one value."""

_Pair = tuple[str, str]


class Selectors:
    """The selectors of autoscalers. Each is found by one label that it requires, so that looking for those of a pod
    costs what its labels cost, and not all autoscalers."""

    def __init__(self) -> None:
        self._selectors: dict[Key, Selector] = {}
        self._by_label: dict[tuple[str, _Pair], set[Key]] = {}

    def put(self, key: Key, selector: Selector) -> None:
        """An autoscaler selects by this one from now on."""
        if self._selectors.get(key) != selector:
            self.remove(key)
            self._selectors[key] = selector
            self._by_label.setdefault((key[0], _pair(selector)), set()).add(key)

    def remove(self, key: Key) -> None:
        """Forgets an autoscaler."""
        selector = self._selectors.pop(key, None)
        if selector is not None:
            place = key[0], _pair(selector)
            self._by_label[place].discard(key)
            if not self._by_label[place]:
                del self._by_label[place]

    def of(self, namespace: str, all_labels: Iterable[Mapping[str, str]]) -> list[Key]:
        """The autoscalers that select any of these pods of a namespace, by name."""
        found: set[Key] = set()
        for labels in all_labels:
            for pair in (*labels.items(), _ANY):
                for key in self._by_label.get((namespace, pair), ()):
                    if key not in found and self._selectors[key].matches(labels):
                        found.add(key)
        return sorted(found)


def _pair(selector: Selector) -> _Pair:
    for each in selector.requirements:
        if each.operator in (EQUALS, DOUBLE_EQUALS):
            return each.key, each.values[0]
    return _ANY
