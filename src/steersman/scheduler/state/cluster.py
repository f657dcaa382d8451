"""Nodes and the pods on them, as the scheduler must see them: with pods whose binding is under way (backend/cache)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Final

from steersman.api.core import v1 as core
from steersman.machinery.selectors.labels import Labels
from steersman.scheduler.demand.affinity_terms import AffinityTerm, PodTerms
from steersman.scheduler.demand.weight import MOST_LABELS
from steersman.scheduler.state.node_info import NodeInfo, PodInfo
from steersman.scheduler.state.pod_counts import PodCounts, TermUses
from steersman.work.bounded_cache import BoundedCache

_KNOWN_LABELS: Final = 4096
_HARD_AFFINITY_WEIGHT: Final = 1
"""What a required affinity of another pod counts for in scores (InterPodAffinityArgs.hardPodAffinityWeight)."""


class ChangeLog:
    """The indices of nodes that have changed, in order; readers remember how far they have read."""

    def __init__(self) -> None:
        self._entries: list[int] = []
        self._start = 0

    @property
    def end(self) -> int:
        """Where a reader is that knows of everything."""
        return self._start + len(self._entries)

    def add(self, index: int) -> None:
        """A node has changed."""
        self._entries.append(index)

    def since(self, position: int) -> set[int] | None:
        """The nodes that have changed since a reader was here; None where that is not known any more."""
        if position < self._start:
            return None
        return set(self._entries[position - self._start :])

    def trim(self, most: int) -> None:
        """Forgets the older half where there are more than `most`."""
        if len(self._entries) > most:
            half = len(self._entries) // 2
            del self._entries[:half]
            self._start += half


class ClusterState:
    """All that decisions are made from. Nothing in it waits."""

    def __init__(self) -> None:
        self.nodes: list[NodeInfo] = []
        """By index; those without a node are none yet, or none any more."""
        self.by_name: dict[str, NodeInfo] = {}
        self.size = 0
        """How many nodes there are."""
        self.changes = ChangeLog()
        self.namespace_labels: dict[str, Labels] = {}
        self.counts = PodCounts(self.labels_of)
        self.keeping_away = TermUses()
        self.liking = TermUses()
        self.priorities: Counter[int] = Counter()
        """Of pods that have nodes."""
        self.images: dict[str, _Image] = {}
        self._pods: dict[str, tuple[PodInfo, NodeInfo]] = {}
        self._claim_users: dict[tuple[str, str], dict[str, str]] = {}
        self._assumed: set[str] = set()
        self._terms_meaning: BoundedCache[
            Hashable, tuple[int, int, tuple[AffinityTerm, ...], tuple[AffinityTerm, ...]]
        ] = BoundedCache(_KNOWN_LABELS)

    def labels_of(self, namespace: str) -> Labels:
        """The labels of a namespace; none of one that is not known."""
        return self.namespace_labels.get(namespace, _NO_LABELS)

    # nodes

    def set_node(self, node: core.Node) -> NodeInfo:
        """A node has come, or changed."""
        info = self._info(node.metadata.name)
        self._count_images(info, -1)
        self.size += info.node is None
        info.set_node(node)
        self._count_images(info, 1)
        self._changed(info)
        return info

    def remove_node(self, name: str) -> None:
        """A node is gone; pods that were on it may still be told of."""
        info = self.by_name.get(name)
        if info is not None and info.node is not None:
            self._count_images(info, -1)
            self.size -= 1
            info.set_node(None)
            self._changed(info)

    def node(self, name: str) -> NodeInfo | None:
        """The node of that name."""
        info = self.by_name.get(name)
        return None if info is None or info.node is None else info

    def _info(self, name: str) -> NodeInfo:
        info = self.by_name.get(name)
        if info is None:
            info = self.by_name[name] = NodeInfo(name, len(self.nodes))
            self.nodes.append(info)
        return info

    def _count_images(self, info: NodeInfo, sign: int) -> None:
        for name, size in info.images.items():
            image = self.images.get(name)
            if image is None:
                image = self.images[name] = _Image(size)
            image.nodes += sign
            if not image.nodes:
                del self.images[name]

    def _changed(self, info: NodeInfo) -> None:
        self.changes.add(info.index)

    # pods

    def assume(self, pod: core.Pod, node_name: str, terms: PodTerms | None = None) -> PodInfo:
        """A pod will have a node, of which the server is being told; `pod` says so already."""
        info = self._add(PodInfo(pod, terms=terms), self._info(node_name))
        self._assumed.add(pod.metadata.uid)
        return info

    def is_assumed(self, uid: str) -> bool:
        """Whether a pod has a node of which the server has not told yet."""
        return uid in self._assumed

    def forget(self, uid: str) -> PodInfo | None:
        """An assumed pod does not get its node. Returns what it was."""
        if uid not in self._assumed:
            return None
        self._assumed.discard(uid)
        return self._remove(uid)

    def set_pod(self, pod: core.Pod) -> bool:
        """A pod with a node has come, or changed. Returns whether this was not expected: a new pod on the node."""
        uid = pod.metadata.uid
        known = self._pods.get(uid)
        self._assumed.discard(uid)
        if known is None:
            self._add(PodInfo(pod), self._info(pod.spec.node_name))
            return True
        info, node = known
        if node.name == pod.spec.node_name and _alike(info.pod, pod):
            info.pod = pod
            if node.change_requests(info):
                self._changed(node)
            return False
        self._remove(uid)
        self._add(PodInfo(pod, info), self._info(pod.spec.node_name))
        return node.name != pod.spec.node_name

    def remove_pod(self, uid: str) -> PodInfo | None:
        """A pod is gone, or has ended. Returns what it was."""
        self._assumed.discard(uid)
        return self._remove(uid)

    def pod(self, uid: str) -> PodInfo | None:
        """A pod that has a node."""
        known = self._pods.get(uid)
        return None if known is None else known[0]

    def _add(self, info: PodInfo, node: NodeInfo) -> PodInfo:
        self._pods[info.pod.metadata.uid] = info, node
        node.add(info)
        self._told(info, node, 1)
        return info

    def _remove(self, uid: str) -> PodInfo | None:
        known = self._pods.pop(uid, None)
        if known is None:
            return None
        info, node = known
        node.remove(info)
        self._told(info, node, -1)
        return info

    def _told(self, info: PodInfo, node: NodeInfo, sign: int) -> None:
        self.counts.change(info, node.index, sign)
        for claim in info.claims:
            users = self._claim_users.setdefault(claim, {})
            if sign > 0:
                users[info.pod.metadata.uid] = node.name
            else:
                users.pop(info.pod.metadata.uid, None)
                if not users:
                    del self._claim_users[claim]
        terms = info.terms
        if not terms.are_none:
            for term in terms.required_anti_affinity:
                self.keeping_away.change(term, 1, node.index, sign)
            for term in terms.required_affinity:
                self.liking.change(term, _HARD_AFFINITY_WEIGHT, node.index, sign)
            for each in terms.preferred:
                self.liking.change(each.term, each.weight, node.index, sign)
        self.priorities[info.priority] += sign
        if not self.priorities[info.priority]:
            del self.priorities[info.priority]
        self._changed(node)

    def users_of(self, namespace: str, claim: str) -> Iterable[tuple[str, str]]:
        """The pods on nodes that use a claim: uid, and name of the node."""
        return tuple(self._claim_users.get((namespace, claim), {}).items())

    def has_pods_below(self, priority: int) -> bool:
        """Whether any pod on a node has a lower priority."""
        return any(each < priority for each in self.priorities)

    # what others say of a pod

    def set_namespace(self, name: str, labels: Labels | None) -> None:
        """A namespace has these labels, or is gone."""
        if self.namespace_labels.get(name) == labels:
            return
        if labels is None:
            self.namespace_labels.pop(name, None)
        else:
            self.namespace_labels[name] = labels
        self._terms_meaning.forget()
        if self.counts.recount():
            for info in self.nodes:
                self._changed(info)

    def terms_meaning(self, pod: core.Pod) -> tuple[tuple[AffinityTerm, ...], tuple[AffinityTerm, ...]]:
        """The terms of pods on nodes that mean a pod: required anti-affinity, and what counts in scores."""
        if not self.keeping_away and not self.liking:
            return (), ()
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        key = namespace, frozenset(labels.items())
        versions = self.keeping_away.version, self.liking.version
        known = self._terms_meaning[key]
        if known is None or known[:2] != versions:
            around = self.labels_of(namespace)
            keeping_away = self.keeping_away.meaning(namespace, labels, around)
            known = (*versions, keeping_away, self.liking.meaning(namespace, labels, around))
            if len(labels) <= MOST_LABELS:
                self._terms_meaning.keep(key, known)
        return known[2:]


class _Image:
    """An image that nodes have."""

    __slots__ = ("nodes", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.nodes = 0


_NO_LABELS: Final[Labels] = {}


def _alike(old: core.Pod, new: core.Pod) -> bool:
    """Whether nothing has changed that matters to other pods but what the pod takes."""
    before, after = old.metadata, new.metadata
    return (
        before.labels == after.labels
        and bool(before.deletion_timestamp) == bool(after.deletion_timestamp)
        and (old.spec.priority or 0) == (new.spec.priority or 0)
    )
