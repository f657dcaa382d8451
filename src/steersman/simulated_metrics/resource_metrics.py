"""The API metrics.k8s.io: usage of pods and nodes, as metrics-server reports it, computed at each request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from steersman.api.core.v1 import Node, Pod
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.indexes import BY_NODE, by_node
from steersman.client.informer import Informers
from steersman.client.metrics_types import (
    NODE_METRICS,
    POD_METRICS,
    RESOURCE_METRICS,
    ContainerMetrics,
    NodeMetrics,
    PodMetrics,
)
from steersman.client.resources import NODES, PODS
from steersman.kinds.kind import Kind
from steersman.kinds.structs import StructKind
from steersman.machinery.errors.status import not_found
from steersman.machinery.identity.schema import GroupResource, GroupVersionKind
from steersman.machinery.validation.object_meta import name_is_path_segment
from steersman.machinery.values import times
from steersman.machinery.values.durations import format_duration
from steersman.machinery.values.quantity import BINARY_SI, Quantity, parse
from steersman.nodes.usage import RESOURCES, Usage, Usages
from steersman.rest.capabilities import Encoded, Item, Listing, ListOptions
from steersman.rest.context import Context
from steersman.rest.resource import Column, Resource
from steersman.work.offloading import offload
from steersman.work.yielding import time_sliced

WINDOW: Final = 15
"""Seconds that usage is reported for, if the container has run for so long."""
_NANO: Final = 10**9

M = TypeVar("M", bound=PodMetrics | NodeMetrics)
M_co = TypeVar("M_co", bound=PodMetrics | NodeMetrics, covariant=True)


def metrics_of_pod(usages: Usages, pod: Pod, now: int) -> PodMetrics | None:
    """Return the metrics of a pod; None if it does not run, or has run for less than a second.

    `now` is in seconds since 1970.
    """
    parts = usages.of(pod)
    window = min((now - each.since for each in parts), default=0)
    if window <= 0:
        return None
    metadata = pod.metadata
    return PodMetrics(
        metadata=_metadata(metadata),
        timestamp=times.now(),
        window=_window(window),
        containers=[ContainerMetrics(name=each.container, usage=_amounts((each,))) for each in parts],
    )


def metrics_of_node(usages: Usages, node: Node, pods: Iterable[Pod]) -> NodeMetrics:
    """Return the metrics of a node, the sum of its pods' usage."""
    parts = [usage for pod in pods for usage in usages.of(pod)]
    return NodeMetrics(
        metadata=_metadata(node.metadata), timestamp=times.now(), window=_window(WINDOW), usage=_amounts(parts)
    )


def _metadata(of: ObjectMeta) -> ObjectMeta:
    return ObjectMeta(name=of.name, namespace=of.namespace, labels=of.labels, creation_timestamp=times.now())


def _window(seconds: int) -> str:
    return format_duration(min(seconds, WINDOW) * _NANO)


def _amounts(usages: Iterable[Usage]) -> dict[str, str]:
    usages = list(usages)
    cpu, memory = sum(each.cpu for each in usages), sum(each.memory for each in usages)
    return {"cpu": str(Quantity(cpu, -9)), "memory": str(Quantity(memory, 0, BINARY_SI))}


class Measured(Protocol[M_co]):
    """Measured objects of a cluster, and their metrics."""

    def metrics_of(self, namespace: str, name: str) -> M_co:
        """Return the metrics of one object. Raises StatusError NotFound."""
        ...

    def each(self, namespace: str) -> Sequence[tuple[ObjectMeta, Callable[[], M_co | None]]]:
        """Return all objects of a namespace ("" for all namespaces): metadata, and a function that returns
        the metrics.
        """
        ...


class UsageStorage(Generic[M]):
    """Read-only storage of computed metrics (rest.capabilities Getter, Lister)."""

    def __init__(self, resource: Resource[M, Any], objects: Measured[M]) -> None:
        self._kind: Kind[M] = resource.kind
        self._objects: Measured[M] = objects

    def decode(self, item: Item) -> M:
        """Decode an item; see ResourceStorage."""
        found: M = self._kind.decode(item.body)
        return found

    def remember(self, item: Item, kind: object, encoded: bytes) -> None:
        """Do nothing, as usage differs at the next request."""

    async def get(self, ctx: Context, name: str, resource_version: str = "") -> Item:
        """Return the metrics of one object; see Getter."""
        return Encoded(self._kind.body(await offload(self._objects.metrics_of, ctx.action.namespace, name)))

    async def list(self, ctx: Context, options: ListOptions) -> Listing:
        """Return the metrics of objects; see Lister. Such lists have no resourceVersion and no pages."""
        found: list[Item] = []
        async for metadata, metrics_of in time_sliced(self._objects.each(ctx.action.namespace)):
            fields = {"metadata.name": metadata.name, "metadata.namespace": metadata.namespace}
            if options.label_selector.matches(metadata.labels) and options.field_selector.matches(fields):
                metrics = await offload(metrics_of)
                if metrics is not None:
                    found.append(Encoded(self._kind.body(metrics)))
        return Listing(found, 0)


class MeasuredPods:
    """Metrics of running pods."""

    def __init__(self, informers: Callable[[], Informers], usages: Usages) -> None:
        self._informers = informers
        self._usages = usages

    def metrics_of(self, namespace: str, name: str) -> PodMetrics:
        """Return the metrics of one pod. Raises StatusError NotFound, also for a pod that does not run yet."""
        pod = self._informers().for_resource(PODS).get(namespace, name)
        if pod is None:
            raise not_found(GroupResource("", "pods"), name)
        found = metrics_of_pod(self._usages, pod, int(times.unix_now()))
        if found is None:
            raise not_found(GroupResource(RESOURCE_METRICS, "podmetrics"), f"{namespace}/{name}")
        return found

    def each(self, namespace: str) -> Sequence[tuple[ObjectMeta, Callable[[], PodMetrics | None]]]:
        """Return the metadata of each pod, with a function that returns its metrics, or None if it does not run yet."""
        now = int(times.unix_now())
        pods = self._informers().for_resource(PODS).list(namespace or None)
        return [(each.metadata, partial(metrics_of_pod, self._usages, each, now)) for each in pods]


class MeasuredNodes:
    """Metrics of nodes, by the pods that run on them."""

    def __init__(self, informers: Callable[[], Informers], usages: Usages) -> None:
        self._informers = informers
        self._usages = usages

    def metrics_of(self, namespace: str, name: str) -> NodeMetrics:
        """Return the metrics of one node; the namespace has no meaning. Raises StatusError NotFound."""
        node = self._informers().for_resource(NODES).get("", name)
        if node is None:
            raise not_found(GroupResource("", "nodes"), name)
        return self._of(node)

    def each(self, namespace: str) -> Sequence[tuple[ObjectMeta, Callable[[], NodeMetrics | None]]]:
        """Return the metadata of each node, with a function that returns its metrics."""
        return [(each.metadata, partial(self._of, each)) for each in self._informers().for_resource(NODES).list()]

    def _of(self, node: Node) -> NodeMetrics:
        pods = self._informers().for_resource(PODS)
        pods.add_index(BY_NODE, by_node)
        return metrics_of_node(self._usages, node, pods.indexed(BY_NODE, node.metadata.name))


def _pod_cell(resource: str) -> Callable[[PodMetrics], str]:
    def cell(metrics: PodMetrics) -> str:
        amounts = [parse(each.usage.get(resource, "0")) for each in metrics.containers]
        return str(sum(amounts[1:], amounts[0])) if amounts else "0"

    return cell


def _node_cell(resource: str) -> Callable[[NodeMetrics], str]:
    return lambda metrics: metrics.usage.get(resource, "0")


_WINDOW: Final = Column("Window", lambda metrics: metrics.window, format="duration")

POD_METRICS_RESOURCE: Final[Resource[PodMetrics, Any]] = Resource(
    kind=StructKind(PodMetrics, GroupVersionKind(RESOURCE_METRICS, "v1beta1", POD_METRICS.kind)),
    plural="pods",
    singular="pod",
    verbs=("get", "list"),
    name_validator=name_is_path_segment,
    columns=(*(Column(each, _pod_cell(each), format="quantity") for each in RESOURCES), _WINDOW),
)
NODE_METRICS_RESOURCE: Final[Resource[NodeMetrics, Any]] = Resource(
    kind=StructKind(NodeMetrics, GroupVersionKind(RESOURCE_METRICS, "v1beta1", NODE_METRICS.kind)),
    plural="nodes",
    singular="node",
    namespaced=False,
    verbs=("get", "list"),
    name_validator=name_is_path_segment,
    columns=(*(Column(each, _node_cell(each), format="quantity") for each in RESOURCES), _WINDOW),
)
