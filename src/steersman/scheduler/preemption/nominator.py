"""Pods that are meant for a node on which room is being made (backend/queue/nominator.go)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steersman.api.core import v1 as core
from steersman.scheduler.state.node_info import PodInfo


class Nominator:
    """Which pods are nominated for which node."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._node_of: dict[str, str] = {}

    def nominate(self, pod: core.Pod, node_name: str) -> None:
        """A pod is meant for a node from now on."""
        known = self._by_node.get(self.node_of(pod.metadata.uid), {}).get(pod.metadata.uid)
        self.remove(pod.metadata.uid)
        self._by_node.setdefault(node_name, {})[pod.metadata.uid] = PodInfo(pod, known)
        self._node_of[pod.metadata.uid] = node_name

    def update(self, pod: core.Pod) -> None:
        """A pod without a node has come or changed: what it says counts, unless it says less than what is known."""
        name = pod.status.nominated_node_name or self._node_of.get(pod.metadata.uid, "")
        if name:
            self.nominate(pod, name)

    def remove(self, uid: str) -> None:
        """A pod is meant for no node any more."""
        name = self._node_of.pop(uid, None)
        if name is not None:
            members = self._by_node[name]
            del members[uid]
            if not members:
                del self._by_node[name]

    def node_of(self, uid: str) -> str:
        """For which node a pod is meant, or ""."""
        return self._node_of.get(uid, "")

    def nodes(self) -> Iterator[str]:
        """Those for which any pod is meant."""
        return iter(list(self._by_node))

    def on(self, node_name: str) -> Sequence[PodInfo]:
        """The pods that are meant for a node."""
        found = self._by_node.get(node_name)
        return () if found is None else list(found.values())

    def at_least(self, node_name: str, priority: int, but: str) -> Sequence[PodInfo]:
        """Those of at least this priority, without the pod of this uid."""
        return [each for each in self.on(node_name) if each.priority >= priority and each.pod.metadata.uid != but]
