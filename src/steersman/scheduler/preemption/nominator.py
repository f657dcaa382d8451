"""Nominated pods: pods that will get a node once preemption has made them fit (backend/queue/nominator.go)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steersman.api.core import v1 as core
from steersman.scheduler.state.node_info import PodInfo


class Nominator:
    """Nominated pods by node."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._node_of: dict[str, str] = {}

    def nominate(self, pod: core.Pod, node_name: str) -> None:
        """Nominate a pod for a node."""
        known = self._by_node.get(self.node_of(pod.metadata.uid), {}).get(pod.metadata.uid)
        self.remove(pod.metadata.uid)
        self._by_node.setdefault(node_name, {})[pod.metadata.uid] = PodInfo(pod, known)
        self._node_of[pod.metadata.uid] = node_name

    def update(self, pod: core.Pod) -> None:
        """Update a pod without a node; its own nomination wins over the recorded one, unless it has none."""
        name = pod.status.nominated_node_name or self._node_of.get(pod.metadata.uid, "")
        if name:
            self.nominate(pod, name)

    def remove(self, uid: str) -> None:
        """Remove the nomination of a pod."""
        name = self._node_of.pop(uid, None)
        if name is not None:
            members = self._by_node[name]
            del members[uid]
            if not members:
                del self._by_node[name]

    def node_of(self, uid: str) -> str:
        """Return the node that a pod is nominated for; "" for none."""
        return self._node_of.get(uid, "")

    def nodes(self) -> Iterator[str]:
        """Return the names of the nodes with nominated pods."""
        return iter(list(self._by_node))

    def on(self, node_name: str) -> Sequence[PodInfo]:
        """Return the pods that are nominated for a node."""
        found = self._by_node.get(node_name)
        return () if found is None else list(found.values())

    def at_least(self, node_name: str, priority: int, but: str) -> Sequence[PodInfo]:
        """Return the pods nominated for a node of at least a priority, except the pod with the UID `but`."""
        return [each for each in self.on(node_name) if each.priority >= priority and each.pod.metadata.uid != but]
