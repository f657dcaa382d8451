"""Decisions of our scheduler about the objects of a server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from steersman.api.core.v1 import Namespace, Node, Pod, Service
from steersman.api.policy.v1 import PodDisruptionBudget
from steersman.client.informer import Informers
from steersman.client.resources import SERVICES
from steersman.machinery.codec.serializer import from_plain
from steersman.scheduler.cycle import Cycle, Placement
from steersman.scheduler.demands import Demands
from steersman.scheduler.preemption.nominator import Nominator
from steersman.scheduler.state.cluster import ClusterState
from tools.scheduler_comparison.cases import Plain


@dataclass(frozen=True)
class Outcome:
    """Outcome of scheduling a pod."""

    nodes: frozenset[str] = frozenset()
    """One of these it got."""
    message: str = ""
    nominated: str = ""
    victims: frozenset[str] = frozenset()


class _Fixed:
    """An informer of objects that do not change."""

    def __init__(self, objects: Sequence[Any]) -> None:
        self._objects = objects

    def list(self, namespace: str | None = None) -> Sequence[Any]:
        return [each for each in self._objects if namespace in (None, each.metadata.namespace)]

    def get(self, namespace: str, name: str) -> Any:
        return next((each for each in self.list(namespace) if each.metadata.name == name), None)

    def on_change(self, handler: Callable[[Any, Any], None]) -> None:
        """Nothing changes."""


class _FixedInformers:
    def __init__(self, services: Sequence[Service]) -> None:
        self._services = services

    def for_resource(self, resource: Any) -> _Fixed:
        return _Fixed(self._services if resource is SERVICES else ())


async def decide(
    nodes: Iterable[Plain],
    pods: Iterable[Plain],
    namespaces: Iterable[Plain],
    services: Iterable[Plain],
    budgets: Iterable[Plain],
    pod: Plain,
    *,
    times: int = 24,
) -> Outcome:
    """The outcome for a pod without a node; of nodes that are equally good, those that came up in some `times`."""
    cluster = ClusterState()
    for each in namespaces:
        namespace = from_plain(Namespace, each)
        cluster.set_namespace(namespace.metadata.name, namespace.metadata.labels)
    for each in nodes:
        cluster.set_node(from_plain(Node, each))
    for each in pods:
        cluster.set_pod(from_plain(Pod, each))
    all_budgets = [from_plain(PodDisruptionBudget, each) for each in budgets]
    informers = cast(Informers, _FixedInformers([from_plain(Service, each) for each in services]))
    chosen = set()
    for _ in range(times):
        cycle = Cycle(
            cluster, Demands(informers, cluster), Nominator(), lambda: all_budgets, lambda _: None, lambda _: None
        )
        found = await cycle.decide(from_plain(Pod, pod))
        if not isinstance(found, Placement):
            room = found.preemption
            victims = frozenset(info.pod.metadata.name for info in room.victims) if room is not None else frozenset()
            return Outcome(message=found.message, nominated=found.nominated or "", victims=victims)
        chosen.add(found.node.name)
    return Outcome(nodes=frozenset(chosen))
