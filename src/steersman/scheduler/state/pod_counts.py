"""How many pods of a kind each node has: kept up as pods come and go, for as long as somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final
from weakref import WeakValueDictionary

from steersman.machinery.selectors.labels import Labels
from steersman.scheduler.demand.affinity_terms import AffinityTerm, PodSelection
from steersman.scheduler.state.node_info import NodeInfo, PodInfo

NamespaceLabels = Callable[[str], Labels]


@dataclass(frozen=True, slots=True)
class Counted:
    """Which pods are counted: those that all selections mean."""

    selections: tuple[PodSelection, ...]
    terminating: bool = True
    """Whether pods that are being deleted count."""


class PodCount:
    """The pods of a kind on each node, by the node's index; nodes without any are left out."""

    def __init__(self, counted: Counted, labels_of: NamespaceLabels) -> None:
        self.counted: Final = counted
        self._labels_of = labels_of
        self.on_node: dict[int, int] = {}

    def matches(self, info: PodInfo) -> bool:
        """Whether a pod is one of those that are counted."""
        metadata = info.pod.metadata
        if metadata.deletion_timestamp and not self.counted.terminating:
            return False
        namespace, labels = metadata.namespace, metadata.labels
        around = self._labels_of(namespace)
        return all(each.matches(namespace, labels, around) for each in self.counted.selections)

    @property
    def depends_on_namespaces(self) -> bool:
        """Whether labels of namespaces matter."""
        return any(each.namespace_selector.selectable for each in self.counted.selections)

    def change(self, info: PodInfo, index: int, sign: int) -> None:
        """A pod comes to a node, or goes."""
        if self.matches(info):
            count = self.on_node.get(index, 0) + sign
            if count:
                self.on_node[index] = count
            else:
                self.on_node.pop(index, None)

    def among(self, pods: Iterable[PodInfo]) -> int:
        """How many of some pods are counted."""
        return sum(map(self.matches, pods))


class PodCounts:
    """All counts that somebody holds."""

    def __init__(self, labels_of: NamespaceLabels) -> None:
        self._labels_of = labels_of
        self._counts: WeakValueDictionary[Counted, PodCount] = WeakValueDictionary()

    def of(self, counted: Counted, nodes: Iterable[NodeInfo]) -> PodCount:
        """The count of a kind of pods; `nodes` are all there are."""
        found = self._counts.get(counted)
        if found is None:
            found = self._counts[counted] = PodCount(counted, self._labels_of)
            self._fill(found, nodes)
        return found

    def change(self, info: PodInfo, index: int, sign: int) -> None:
        """A pod comes to a node, or goes."""
        for count in self._counts.values():
            count.change(info, index, sign)

    def recount(self, nodes: Iterable[NodeInfo]) -> bool:
        """Counts anew what depends on labels of namespaces, as these have changed. Returns whether anything does."""
        every = list(nodes)
        dependent = [count for count in self._counts.values() if count.depends_on_namespaces]
        for count in dependent:
            count.on_node.clear()
            self._fill(count, every)
        return bool(dependent)

    def _fill(self, count: PodCount, nodes: Iterable[NodeInfo]) -> None:
        for node in nodes:
            number = count.among(node.pods.values())
            if number:
                count.on_node[node.index] = number


class TermUse:
    """A term that pods on nodes have: how much it weighs on each, by the node's index."""

    __slots__ = ("__weakref__", "on_node", "term", "uses")

    def __init__(self, term: AffinityTerm) -> None:
        self.term = term
        self.uses = 0
        self.on_node: dict[int, int] = {}


class TermUses:
    """The terms of pods that have nodes, each once however many pods have it."""

    def __init__(self) -> None:
        self._uses: dict[AffinityTerm, TermUse] = {}
        self._held: WeakValueDictionary[AffinityTerm, TermUse] = WeakValueDictionary()
        """Also those that nobody has any more: whoever holds one sees it when the term comes again."""
        self.version = 0
        """Grows when a term comes or goes."""

    def change(self, term: AffinityTerm, weight: int, index: int, sign: int) -> None:
        """A pod with this term comes to a node, or goes."""
        use = self._uses.get(term)
        if use is None:
            use = self._uses[term] = self.of(term)
            self.version += 1
        use.uses += sign
        if not use.uses:
            del self._uses[term]
            self.version += 1
        total = use.on_node.get(index, 0) + sign * weight
        if total:
            use.on_node[index] = total
        else:
            use.on_node.pop(index, None)

    def meaning(self, namespace: str, labels: Labels, namespace_labels: Labels) -> tuple[AffinityTerm, ...]:
        """The terms that mean a pod."""
        return tuple(term for term in self._uses if term.pods.matches(namespace, labels, namespace_labels))

    def of(self, term: AffinityTerm) -> TermUse:
        """How a term is used now."""
        found = self._held.get(term)
        if found is None:
            found = self._held[term] = TermUse(term)
        return found

    def __bool__(self) -> bool:
        return bool(self._uses)
