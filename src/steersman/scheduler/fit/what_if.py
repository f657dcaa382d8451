"""Hypothetical fit of a pod on a node with other pods on it: with nominated pods, without victims."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from steersman.scheduler.fit.node_fit import rejected_by_contents, rejected_by_node
from steersman.scheduler.fit.ranking import Ranking
from steersman.scheduler.fit.status import Rejection
from steersman.scheduler.fit.tally import Tally
from steersman.scheduler.fit.topology import KEPT_AWAY
from steersman.scheduler.state.cluster import ClusterState
from steersman.scheduler.state.node_info import NodeInfo, PodInfo

PodLabels = dict[str, str]
Check = Callable[[NodeInfo], "Rejection | None"]


class WhatIf:
    """A node on which pods are added and removed hypothetically.

    The ranking must be up to date with all changes. `more` is a further check of nodes.
    """

    def __init__(self, ranking: Ranking, cluster: ClusterState, node: NodeInfo, more: Check | None = None) -> None:
        self._further = more
        self._ranking = ranking
        self._cluster = cluster
        self._tallies = ranking.topology.tallies
        self._own = {id(tally): tally.contribution(node) for tally in self._tallies}
        self._more = dict.fromkeys(self._own, 0)
        self._added: dict[str, PodInfo] = {}
        self.node = node.copy()

    def add(self, info: PodInfo) -> None:
        """Add a pod to the node."""
        self.node.add(info)
        self._change(info, 1)
        if info.terms.required_anti_affinity:
            self._added[info.pod.metadata.uid] = info

    def remove(self, info: PodInfo) -> None:
        """Remove a pod from the node."""
        self.node.remove(info)
        self._change(info, -1)
        self._added.pop(info.pod.metadata.uid, None)

    def _change(self, info: PodInfo, sign: int) -> None:
        for tally in self._tallies:
            if self._own[id(tally)] is not None:
                self._more[id(tally)] += sign * tally.of_pod(info)

    def rejection(self, pods_labels: PodLabels) -> Rejection | None:
        """Return the rejection of the pod, whose labels are `pods_labels`, on this node; None if it fits."""
        demand = self._ranking.demand
        found = rejected_by_node(demand, self.node) or rejected_by_contents(demand, self.node)
        if found is None and self._further is not None:
            found = self._further(self.node)
        if found is not None:
            return found
        if self._tallies:
            found = self._ranking.topology.rejection_where(self._amount, self._least, self._is_nowhere)
            if found is not None:
                return found
        return KEPT_AWAY if self._is_kept_away(pods_labels) else None

    def _amount(self, tally: Tally) -> int | None:
        node = self.node.node
        value = None if node is None else node.metadata.labels.get(tally.key)
        return None if value is None else tally.sums.get(value, 0) + self._more[id(tally)]

    def _least(self, tally: Tally) -> int:
        own, more = self._own[id(tally)], self._more[id(tally)]
        if own is None or not more:
            return tally.least()
        return tally.least_but(own[0], tally.sums.get(own[0], 0) + more)

    def _is_nowhere(self, tally: Tally) -> bool:
        own, more = self._own[id(tally)], self._more[id(tally)]
        if own is None or not more:
            return tally.is_nowhere()
        return tally.is_nowhere_but(own[0], tally.sums.get(own[0], 0) + more)

    def _is_kept_away(self, labels: PodLabels) -> bool:
        """Return True if added pods, which are not in the tallies yet, keep the pod away by anti-affinity."""
        if not self._added or self.node.node is None:
            return False
        demand = self._ranking.demand
        around = self._cluster.labels_of(demand.namespace)
        return any(
            term.topology_key in self.node.node.metadata.labels and term.pods.matches(demand.namespace, labels, around)
            for info in self._added.values()
            for term in info.terms.required_anti_affinity
        )


def with_nominated(what_if: WhatIf, nominated: Sequence[PodInfo], labels: PodLabels) -> Rejection | None:
    """Return the rejection of the pod on a node either with or without the nominated pods
    (RunFilterPluginsWithNominatedPods).
    """
    if nominated:
        for info in nominated:
            what_if.add(info)
        found = what_if.rejection(labels)
        for info in nominated:
            what_if.remove(info)
        if found is not None:
            return found
    return what_if.rejection(labels)
