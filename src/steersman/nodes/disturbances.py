"""Disturbances of kubelets, by whoever wants to see what a cluster makes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from steersman.client.informer import Key
from steersman.work import simulated_time


class Disturbances(Protocol):
    """Kubelets that are silent or slow."""

    on_nodes: Callable[[], None] | None
    """Callback for each change of the answers of the methods."""

    def is_silent(self, node: str) -> bool:
        """Return True if the kubelet of a node does not report and does not answer."""
        ...

    def delay_of_sync(self, node: str, namespace: str, pod: str) -> float:
        """Return the seconds by which the kubelet of a node syncs a changed pod late."""
        ...


class LateSyncs:
    """Syncs of pods that disturbances delay."""

    def __init__(self, disturbances: Disturbances | None) -> None:
        self._disturbances = disturbances
        self._due: dict[Key, float] = {}
        """Times of the syncs that wait."""

    def wait_of(self, key: Key, node: str) -> float:
        """Return the seconds until a pod on a node may be synced. At 0 the sync counts as done."""
        if self._disturbances is None:
            return 0.0
        now, due = simulated_time.time(), self._due.get(key)
        if due is None:
            due = now + self._disturbances.delay_of_sync(node, *key)
        if now < due:
            self._due[key] = due
            return due - now
        self.forget(key)
        return 0.0

    def forget(self, key: Key) -> None:
        """Forget a pod that needs no sync."""
        self._due.pop(key, None)

    def release(self) -> list[Key]:
        """Return the pods whose syncs wait, and let them wait no longer."""
        keys = list(self._due)
        self._due.clear()
        return keys
