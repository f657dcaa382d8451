"""Feed of the Node authorizer's graph: pods, volumes, attachments and slices that refer to nodes.

While a large pod is being decoded, its previous references count, as references of a pod are never removed. Bodies in
the cache lack the opening brace.
"""

from __future__ import annotations

from asyncio import Event
from collections.abc import Callable
from time import perf_counter
from typing import Any, Final

from steersman.authorization.node.graph import Graph
from steersman.authorization.node.references import (
    PodReferences,
    VolumeReferences,
    node_of,
    pod_references,
    volume_references,
)
from steersman.controlplane.feed import Feed
from steersman.machinery.metrics import Histogram, Registry
from steersman.store.store import Store

_DURATIONS: Final = tuple(0.0001 * 2**power for power in range(12))


def feed_graph(graph: Graph, stores: Callable[[str, str], Store[Any]], registry: Registry) -> None:
    """Fill the graph with all stored objects, and follow every change."""
    durations = Histogram(
        "node_authorizer_graph_actions_duration_seconds",
        "How long changes of the graph take.",
        _DURATIONS,
        ("operation",),
    )
    registry.add(durations)

    def observe(what: str, found: object, since: float) -> None:
        durations.observe(perf_counter() - since, (f"{'Delete' if found is None else 'Add'}{what}",))

    def put_pod(namespace: str, name: str, pod: PodReferences | None, newer: Event | None) -> None:
        since = perf_counter()
        graph.put_pod(namespace, name, pod)
        observe("Pod", pod, since)

    def put_volume(namespace: str, name: str, volume: VolumeReferences | None, newer: Event | None) -> None:
        since = perf_counter()
        graph.put_volume(name, volume)
        observe("PV", volume, since)

    def put_attachment(namespace: str, name: str, node: str | None, newer: Event | None) -> None:
        since = perf_counter()
        graph.put_attachment(name, node or "")
        observe("VolumeAttachment", node, since)

    def put_slice(namespace: str, name: str, node: str | None, newer: Event | None) -> None:
        since = perf_counter()
        graph.put_slice(name, node or "")
        observe("ResourceSlice", node, since)

    def of_pod(namespace: str, name: str, body: bytes) -> PodReferences:
        return pod_references(name, b"{" + body, graph.pod(namespace, name))

    Feed(stores("", "pods"), of_pod, put_pod, _is_unread).begin()
    Feed(stores("", "persistentvolumes"), _of_volume, put_volume, _is_unread).begin()
    Feed(stores("storage.k8s.io", "volumeattachments"), _node_of, put_attachment, _is_unread).begin()
    Feed(stores("resource.k8s.io", "resourceslices"), _node_of, put_slice, _is_unread).begin()


def _of_volume(namespace: str, name: str, body: bytes) -> VolumeReferences:
    return volume_references(b"{" + body)


def _node_of(namespace: str, name: str, body: bytes) -> str:
    return node_of(b"{" + body)


def _is_unread(namespace: str, name: str, until: Event) -> None:
    """Do nothing: requests do not wait for the decoding."""
