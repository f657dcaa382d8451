"""Cached state of the cluster for decisions, with pods whose binding is in progress (backend/cache)."""

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
"""Weight of a required affinity term of another pod in scores (InterPodAffinityArgs.hardPodAffinityWeight)."""


class ChangeLog:
    """Indices of nodes that have changed, in order. Readers remember the position up to which they have read."""

    def __init__(self) -> None:
        self._entries: list[int] = []
        self._start = 0

    @property
    def end(self) -> int:
        """Position of a reader that has read everything."""
        return self._start + len(self._entries)

    def add(self, index: int) -> None:
        """Record a change of a node."""
        self._entries.append(index)

    def since(self, position: int) -> set[int] | None:
        """Return the nodes that have changed since a position; None if the log does not reach back so far."""
        if position < self._start:
            return None
        return set(self._entries[position - self._start :])

    def trim(self, most: int) -> None:
        """Drop the older half of the log if it has more than `most` entries."""
        if len(self._entries) > most:
            half = len(self._entries) // 2
            del self._entries[:half]
            self._start += half


class ClusterState:
    """State of the cluster that decisions are made from. None of its methods waits."""

    def __init__(self) -> None:
        self.nodes: list[NodeInfo] = []
        """Nodes by index; an entry without a Node object is a node that does not exist, yet or any more."""
        self.by_name: dict[str, NodeInfo] = {}
        self.size = 0
        """Number of nodes that exist."""
        self.changes = ChangeLog()
        self.namespace_labels: dict[str, Labels] = {}
        self.counts = PodCounts(self.labels_of)
        self.anti_affinity_uses = TermUses()
        self.preference_uses = TermUses()
        self.priorities: Counter[int] = Counter()
        """Number of pods on nodes by priority."""
        self.images: dict[str, _Image] = {}
        self._pods: dict[str, tuple[PodInfo, NodeInfo]] = {}
        self._claim_users: dict[tuple[str, str], dict[str, str]] = {}
        self._assumed: set[str] = set()
        self._known_terms: BoundedCache[
            Hashable, tuple[int, int, tuple[AffinityTerm, ...], tuple[AffinityTerm, ...]]
        ] = BoundedCache(_KNOWN_LABELS)

    def labels_of(self, namespace: str) -> Labels:
        """Return the labels of a namespace; none if it is unknown."""
        return self.namespace_labels.get(namespace, _NO_LABELS)

    # Nodes

    def set_node(self, node: core.Node) -> NodeInfo:
        """Add or update a node."""
        info = self._info(node.metadata.name)
        self._count_images(info, -1)
        self.size += info.node is None
        info.set_node(node)
        self._count_images(info, 1)
        self._changed(info)
        return info

    def remove_node(self, name: str) -> None:
        """Remove a node; pods on it may still be reported."""
        info = self.by_name.get(name)
        if info is not None and info.node is not None:
            self._count_images(info, -1)
            self.size -= 1
            info.set_node(None)
            self._changed(info)

    def node(self, name: str) -> NodeInfo | None:
        """Return a node that exists, or None."""
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

    # Pods

    def assume(self, pod: core.Pod, node_name: str, terms: PodTerms | None = None) -> PodInfo:
        """Count a pod on its node while its binding is in progress. The spec of `pod` has the node's name already."""
        info = self._add(PodInfo(pod, terms=terms), self._info(node_name))
        self._assumed.add(pod.metadata.uid)
        return info

    def is_assumed(self, uid: str) -> bool:
        """Return True if the binding of a pod is in progress."""
        return uid in self._assumed

    def forget(self, uid: str) -> PodInfo | None:
        """Remove an assumed pod whose binding has failed, and return it; None if it was not assumed."""
        if uid not in self._assumed:
            return None
        self._assumed.discard(uid)
        return self._remove(uid)

    def set_pod(self, pod: core.Pod) -> bool:
        """Add or update a pod with a node. Return True if the pod is new on the node and was not assumed."""
        uid = pod.metadata.uid
        known = self._pods.get(uid)
        self._assumed.discard(uid)
        if known is None:
            self._add(PodInfo(pod), self._info(pod.spec.node_name))
            return True
        info, node = known
        if node.name == pod.spec.node_name and _is_irrelevant_change(info.pod, pod):
            info.pod = pod
            if node.change_requests(info):
                self._changed(node)
            return False
        self._remove(uid)
        self._add(PodInfo(pod, info), self._info(pod.spec.node_name))
        return node.name != pod.spec.node_name

    def remove_pod(self, uid: str) -> PodInfo | None:
        """Remove a pod that is deleted or terminal, and return it."""
        self._assumed.discard(uid)
        return self._remove(uid)

    def pod(self, uid: str) -> PodInfo | None:
        """Return a pod on a node by its UID, or None."""
        known = self._pods.get(uid)
        return None if known is None else known[0]

    def _add(self, info: PodInfo, node: NodeInfo) -> PodInfo:
        self._pods[info.pod.metadata.uid] = info, node
        node.add(info)
        self._count_pod(info, node, 1)
        return info

    def _remove(self, uid: str) -> PodInfo | None:
        known = self._pods.pop(uid, None)
        if known is None:
            return None
        info, node = known
        node.remove(info)
        self._count_pod(info, node, -1)
        return info

    def _count_pod(self, info: PodInfo, node: NodeInfo, sign: int) -> None:
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
                self.anti_affinity_uses.change(term, 1, node.index, sign)
            for term in terms.required_affinity:
                self.preference_uses.change(term, _HARD_AFFINITY_WEIGHT, node.index, sign)
            for each in terms.preferred:
                self.preference_uses.change(each.term, each.weight, node.index, sign)
        self.priorities[info.priority] += sign
        if not self.priorities[info.priority]:
            del self.priorities[info.priority]
        self._changed(node)

    def users_of(self, namespace: str, claim: str) -> Iterable[tuple[str, str]]:
        """Return the pods on nodes that use a claim: their UIDs and the names of their nodes."""
        return tuple(self._claim_users.get((namespace, claim), {}).items())

    def has_pods_below(self, priority: int) -> bool:
        """Return True if a pod on a node has a lower priority."""
        return any(each < priority for each in self.priorities)

    # Terms of other pods

    def set_namespace(self, name: str, labels: Labels | None) -> None:
        """Set the labels of a namespace; None for a deleted one."""
        if self.namespace_labels.get(name) == labels:
            return
        if labels is None:
            self.namespace_labels.pop(name, None)
        else:
            self.namespace_labels[name] = labels
        self._known_terms.forget()
        if self.counts.recount():
            for info in self.nodes:
                self._changed(info)

    def terms_selecting(self, pod: core.Pod) -> tuple[tuple[AffinityTerm, ...], tuple[AffinityTerm, ...]]:
        """Return the terms of pods on nodes that select a pod: required anti-affinity, and terms that count
        in scores.
        """
        if not self.anti_affinity_uses and not self.preference_uses:
            return (), ()
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        key = namespace, frozenset(labels.items())
        versions = self.anti_affinity_uses.version, self.preference_uses.version
        known = self._known_terms[key]
        if known is None or known[:2] != versions:
            namespace_labels = self.labels_of(namespace)
            anti_affinity_terms = self.anti_affinity_uses.terms_selecting(namespace, labels, namespace_labels)
            known = (
                *versions,
                anti_affinity_terms,
                self.preference_uses.terms_selecting(namespace, labels, namespace_labels),
            )
            if len(labels) <= MOST_LABELS:
                self._known_terms.keep(key, known)
        return known[2:]


class _Image:
    """Image that nodes have: its size in bytes and the number of nodes."""

    __slots__ = ("nodes", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.nodes = 0


_NO_LABELS: Final[Labels] = {}


def _is_irrelevant_change(old: core.Pod, new: core.Pod) -> bool:
    """Return True if nothing has changed that matters to other pods, except the pod's resources."""
    before, after = old.metadata, new.metadata
    return (
        before.labels == after.labels
        and bool(before.deletion_timestamp) == bool(after.deletion_timestamp)
        and (old.spec.priority or 0) == (new.spec.priority or 0)
    )
