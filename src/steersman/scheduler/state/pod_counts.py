"""Counts of selected pods on each node, updated as pods come and go, as long as somebody holds the count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from weakref import WeakValueDictionary

from msgspec import Struct

from steersman.machinery.selectors.labels import Labels
from steersman.scheduler.demand.affinity_terms import AffinityTerm, PodSelection
from steersman.scheduler.state.anchors import Anchor, anchors_at, anchors_of
from steersman.scheduler.state.node_info import PodInfo

NamespaceLabels = Callable[[str], Labels]


class CountedPods(Struct, frozen=True):
    """Specification of the pods that are counted: those that all selections select."""

    selections: tuple[PodSelection, ...]
    terminating: bool = True
    """True if pods that are being deleted count."""


class PodCount:
    """Number of selected pods on each node, by the node's index; nodes without any are left out."""

    def __init__(self, counted: CountedPods, labels_of: NamespaceLabels) -> None:
        self.counted: Final = counted
        self.anchors: Final = anchors_of(counted.selections[0])
        self._labels_of = labels_of
        self.on_node: dict[int, int] = {}

    def matches(self, info: PodInfo) -> bool:
        """Return True if a pod is counted."""
        metadata = info.pod.metadata
        if metadata.deletion_timestamp and not self.counted.terminating:
            return False
        namespace, labels = metadata.namespace, metadata.labels
        namespace_labels = self._labels_of(namespace)
        return all(each.matches(namespace, labels, namespace_labels) for each in self.counted.selections)

    @property
    def depends_on_namespaces(self) -> bool:
        """True if labels of namespaces matter."""
        return any(each.namespace_selector.selectable for each in self.counted.selections)

    def change(self, info: PodInfo, index: int, sign: int) -> None:
        """Count a pod that comes to a node (`sign` 1) or goes (-1)."""
        if self.matches(info):
            count = self.on_node.get(index, 0) + sign
            if count:
                self.on_node[index] = count
            else:
                self.on_node.pop(index, None)


class PodCounts:
    """All counts that are held, and all pods on nodes, both by anchors.

    So a pod that comes or goes is compared with few counts, and few pods are checked for a new count.
    """

    def __init__(self, labels_of: NamespaceLabels) -> None:
        self._labels_of = labels_of
        self._counts: WeakValueDictionary[CountedPods, PodCount] = WeakValueDictionary()
        self._by_anchor: dict[Anchor, WeakValueDictionary[CountedPods, PodCount]] = {}
        self._most_anchors = 1024
        self._pods: dict[Anchor, dict[PodInfo, int]] = {}
        """Pods by anchor, with the indices of their nodes."""

    def count_of(self, counted: CountedPods) -> PodCount:
        """Return the count for a specification, a new one if none is held."""
        found = self._counts.get(counted)
        if found is None:
            found = self._counts[counted] = PodCount(counted, self._labels_of)
            self._sweep()
            for anchor in found.anchors:
                self._by_anchor.setdefault(anchor, WeakValueDictionary())[counted] = found
            self._fill(found)
        return found

    def change(self, info: PodInfo, index: int, sign: int) -> None:
        """Count a pod that comes to a node (`sign` 1) or goes (-1)."""
        concerned: dict[int, PodCount] = {}
        metadata = info.pod.metadata
        for anchor in anchors_at(metadata.namespace, metadata.labels):
            if sign > 0:
                self._pods.setdefault(anchor, {})[info] = index
            elif pods := self._pods.get(anchor):
                pods.pop(info, None)
                if not pods:
                    del self._pods[anchor]
            counts = self._by_anchor.get(anchor)
            if counts is not None:
                concerned |= {id(count): count for count in counts.values()}
        for count in concerned.values():
            count.change(info, index, sign)

    def recount(self) -> bool:
        """Compute the counts that depend on labels of namespaces again. Return True if there are any."""
        dependent = [count for count in self._counts.values() if count.depends_on_namespaces]
        for count in dependent:
            count.on_node.clear()
            self._fill(count)
        return bool(dependent)

    def _fill(self, count: PodCount) -> None:
        pods = {info: index for anchor in count.anchors for info, index in self._pods.get(anchor, {}).items()}
        for info, index in pods.items():
            count.change(info, index, 1)

    def _sweep(self) -> None:
        """Forget anchors of counts that nobody holds any more."""
        if len(self._by_anchor) > self._most_anchors:
            self._by_anchor = {anchor: counts for anchor, counts in self._by_anchor.items() if counts}
            self._most_anchors = 2 * len(self._by_anchor) + 1024


class TermUse:
    """Use of a term by pods on nodes: its total weight on each node, by the node's index."""

    __slots__ = ("__weakref__", "on_node", "term", "uses")

    def __init__(self, term: AffinityTerm) -> None:
        self.term = term
        self.uses = 0
        self.on_node: dict[int, int] = {}


class TermUses:
    """Terms of pods on nodes, each once for all pods that have it."""

    def __init__(self) -> None:
        self._uses: dict[AffinityTerm, TermUse] = {}
        self._by_anchor: dict[Anchor, dict[AffinityTerm, None]] = {}
        self._held: WeakValueDictionary[AffinityTerm, TermUse] = WeakValueDictionary()
        """Uses that somebody holds, even of a term that no pod has: the holder sees it when a pod with the term
        comes."""
        self.version = 0
        """Grows when a term comes or goes."""

    def change(self, term: AffinityTerm, weight: int, index: int, sign: int) -> None:
        """Count a pod with this term that comes to a node (`sign` 1) or goes (-1)."""
        use = self._uses.get(term)
        if use is None:
            use = self._uses[term] = self._held.get(term) or TermUse(term)
            for anchor in anchors_of(term.pods):
                self._by_anchor.setdefault(anchor, {})[term] = None
            self.version += 1
        use.uses += sign
        if not use.uses:
            del self._uses[term]
            for anchor in anchors_of(term.pods):
                del self._by_anchor[anchor][term]
                if not self._by_anchor[anchor]:
                    del self._by_anchor[anchor]
            self.version += 1
        total = use.on_node.get(index, 0) + sign * weight
        if total:
            use.on_node[index] = total
        else:
            use.on_node.pop(index, None)

    def terms_selecting(self, namespace: str, labels: Labels, namespace_labels: Labels) -> tuple[AffinityTerm, ...]:
        """Return the terms that select a pod."""
        found: dict[AffinityTerm, None] = {}
        for anchor in anchors_at(namespace, dict(sorted(labels.items()))):
            found |= self._by_anchor.get(anchor, {})
        return tuple(term for term in found if term.pods.matches(namespace, labels, namespace_labels))

    def use_of(self, term: AffinityTerm) -> TermUse:
        """Return the use of a term, which stays updated while it is held."""
        found = self._held.get(term)
        if found is None:
            found = self._held[term] = self._uses.get(term) or TermUse(term)
        return found

    def __bool__(self) -> bool:
        return bool(self._uses)
