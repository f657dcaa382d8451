"""Decisions of our scheduler about the objects of a server."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from steersman.api.core.v1 import Pod
from steersman.client.api_resource import APIResource
from steersman.client.resources import NAMESPACES, NODES, POD_DISRUPTION_BUDGETS, PODS, SERVICES
from steersman.machinery.codec.serializer import from_plain
from steersman.scheduler.cycle import Placement
from steersman.scheduler.inquiry.simulation import Simulation
from tools.scheduler_comparison.cases import Plain


@dataclass(frozen=True)
class Outcome:
    """Outcome of scheduling a pod."""

    nodes: frozenset[str] = frozenset()
    """One of these it got."""
    message: str = ""
    nominated: str = ""
    victims: frozenset[str] = frozenset()


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
    given: Iterable[tuple[APIResource[Any], Iterable[Plain]]] = (
        (NODES, nodes),
        (PODS, pods),
        (NAMESPACES, namespaces),
        (SERVICES, services),
        (POD_DISRUPTION_BUDGETS, budgets),
    )
    objects = {resource: [from_plain(resource.type, each) for each in found] for resource, found in given}
    chosen = set()
    for _ in range(times):
        found = await Simulation(objects).decide(from_plain(Pod, pod))
        if not isinstance(found, Placement):
            room = found.preemption
            victims = frozenset(info.pod.metadata.name for info in room.victims) if room is not None else frozenset()
            return Outcome(message=found.message, nominated=found.nominated or "", victims=victims)
        chosen.add(found.node.name)
    return Outcome(nodes=frozenset(chosen))
