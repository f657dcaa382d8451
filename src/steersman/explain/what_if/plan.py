"""The plan of manifests: their pods are placed one after the other on a copy of a cluster, and nothing is written."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from steersman.api.core import v1 as core
from steersman.client.resources import PERSISTENT_VOLUME_CLAIMS, PODS, PRIORITY_CLASSES, REPLICA_SETS, STORAGE_CLASSES
from steersman.explain.finding import Reference, reference
from steersman.explain.pods.groups import Group
from steersman.explain.pods.placement import Placing
from steersman.explain.pods.world_simulation import new_simulation
from steersman.explain.what_if.pods import Wanted, wanted_pods
from steersman.explain.world import Unreadable, World
from steersman.machinery.built_in.classes import DEFAULT_STORAGE_CLASS, is_default
from steersman.machinery.selectors.labels import SelectorError
from steersman.scheduler.cycle import NoPlacement, Placement
from steersman.scheduler.inquiry.simulation import RESOURCES, Simulation

MOST_SECONDS: Final = 60.0
"""Seconds of processor time for a plan."""
_MOST_EXPLAINED: Final = 200
"""Comparisons with all nodes, for the reasons of pods that stay pending."""


class PlannedPod(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Place of one pod: its node, or the reason why it has none."""

    pod: Reference
    source: Reference
    """Object of the manifests that the pod comes from; the pod itself, if it is given."""
    node: str = ""
    pushes_out: tuple[Reference, ...] = ()
    """Pods that are preempted for it."""
    reason: str = ""
    """Reason why it stays pending, for people."""
    message: str = ""
    """Message that the scheduler would have for it."""
    groups: tuple[Group, ...] = ()


class Plan(Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="kind", tag="Plan"):
    """Places of all pods of some manifests, in the order in which they were placed."""

    pods: tuple[PlannedPod, ...]
    replaced: tuple[Reference, ...] = ()
    """Pods of the cluster that belong to a workload of the manifests, in whose place its new pods are put."""
    unread: tuple[str, ...] = ()
    """Resources that could not be read, and count as if they had no objects."""


async def plan(world: World, manifests: World, namespace: str, *, most_seconds: float = MOST_SECONDS) -> Plan:
    """Return the plan of manifests on the state of a world.

    Pods that are left after `most_seconds` of processor time are not decided.

    Raises Unreadable if nodes or pods cannot be read, TooManyPods, and Unreachable.
    """
    known = await new_simulation(world)
    simulation = known.simulation
    for resource in RESOURCES:
        if resource != PODS:
            for obj in await manifests.list(resource):
                if resource.namespaced and not obj.metadata.namespace:
                    obj = replace(obj, metadata=replace(obj.metadata, namespace=namespace))
                simulation.put(resource, obj)
    classes = [*await _readable(world, PRIORITY_CLASSES), *await manifests.list(PRIORITY_CLASSES)]
    nodes = [info.node for info in simulation.model.cluster.nodes if info.node is not None]
    wanted = await wanted_pods(manifests, namespace, nodes, classes)
    replaced = [each async for each in _replaced(world, wanted)]
    for pod in replaced:
        simulation.remove(pod)
    default_class = await _default_storage_class(world, manifests)
    reasons = _Reasons(simulation)
    planned: list[PlannedPod] = []
    end = time.process_time() + most_seconds
    for each in wanted:
        if time.process_time() < end:
            planned.append(await _planned(simulation, reasons, each, default_class))
        else:
            text = f"not decided, as the plan takes more than {most_seconds:g} seconds"
            planned.append(PlannedPod(reference(PODS, each.pod), each.source, reason=text))
    return Plan(tuple(planned), tuple(reference(PODS, each) for each in replaced), known.unread)


class _Reasons:
    """Reasons of pods that stay pending. Equal pods share them as long as no pod is placed in between."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._known: dict[tuple[bytes, str], tuple[str, tuple[Group, ...]]] = {}
        self._explained = 0

    def forget(self) -> None:
        """Forget the reasons, as a pod has been placed."""
        self._known = {}

    async def of(self, pod: core.Pod, decided: NoPlacement) -> tuple[str, tuple[Group, ...]]:
        """Return the reason for people, and the groups of nodes; the scheduler's message for pods beyond a number."""
        key = decided.similarity_key, decided.message
        found = self._known.get(key)
        if found is None and self._explained >= _MOST_EXPLAINED:
            return decided.message, ()
        if found is None:
            self._explained += 1
            placing = await Placing.on(self._simulation, pod)
            found = self._known[key] = placing.summary(), tuple(placing.groups)
        return found


async def _planned(simulation: Simulation, reasons: _Reasons, wanted: Wanted, default_class: str) -> PlannedPod:
    for claim in wanted.claims:
        if claim.spec.storage_class_name is None:
            claim = replace(claim, spec=replace(claim.spec, storage_class_name=default_class))
        status = replace(claim.status, phase="Pending")
        simulation.put(PERSISTENT_VOLUME_CLAIMS, replace(claim, status=status))
    subject = reference(PODS, wanted.pod)
    if wanted.pod.spec.node_name:
        simulation.put(PODS, wanted.pod)
        reasons.forget()
        return PlannedPod(subject, wanted.source, wanted.pod.spec.node_name)
    try:
        return await _decided(simulation, reasons, wanted, subject)
    except SelectorError as error:
        return PlannedPod(subject, wanted.source, reason=f"a selector of the pod is invalid: {error}")


async def _decided(simulation: Simulation, reasons: _Reasons, wanted: Wanted, subject: Reference) -> PlannedPod:
    pod = wanted.pod
    if pod.spec.scheduling_gates:
        names = ", ".join(each.name for each in pod.spec.scheduling_gates)
        return PlannedPod(subject, wanted.source, reason=f"waits until its scheduling gates are removed: {names}")
    decided = await simulation.decide(pod)
    pushed: list[core.Pod] = []
    if isinstance(decided, NoPlacement) and decided.preemption is not None:
        node = decided.preemption.node.name
        pushed = [info.pod for info in decided.preemption.victims]
        for each in pushed:
            simulation.remove(each)
        reasons.forget()
        nominated = replace(pod, status=replace(pod.status, nominated_node_name=node))
        decided = await simulation.decide(nominated)
    if isinstance(decided, Placement):
        simulation.place(pod, decided)
        reasons.forget()
        return PlannedPod(subject, wanted.source, decided.node.name, tuple(reference(PODS, each) for each in pushed))
    reason, groups = await reasons.of(pod, decided)
    return PlannedPod(subject, wanted.source, reason=reason, message=decided.message, groups=groups)


async def _replaced(world: World, wanted: Iterable[Wanted]) -> AsyncIterator[core.Pod]:
    """Yield the pods of the cluster whose owner, or whose owner's owner, is one of the sources."""
    sources = {(each.source.kind, each.source.namespace, each.source.name) for each in wanted}
    kinds = {kind for kind, _, _ in sources}
    sets = await _readable(world, REPLICA_SETS) if "Deployment" in kinds else ()
    of_sets = {
        ("ReplicaSet", each.metadata.namespace, each.metadata.name)
        for each in sets
        for owner in each.metadata.owner_references
        if owner.controller and (owner.kind, each.metadata.namespace, owner.name) in sources
    }
    for pod in await world.list(PODS):
        metadata = pod.metadata
        keys = {(each.kind, metadata.namespace, each.name) for each in metadata.owner_references if each.controller}
        if pod.spec.node_name and (
            keys & sources or keys & of_sets or ("Pod", metadata.namespace, metadata.name) in sources
        ):
            yield pod


async def _default_storage_class(world: World, manifests: World) -> str:
    classes = [*await _readable(world, STORAGE_CLASSES), *await manifests.list(STORAGE_CLASSES)]
    defaults = [each for each in classes if is_default(each, DEFAULT_STORAGE_CLASS)]
    newest = max(defaults, key=lambda each: each.metadata.creation_timestamp or "", default=None)
    return "" if newest is None else newest.metadata.name


async def _readable(world: World, resource: Any) -> Sequence[Any]:
    """Return the objects of a resource; none if they cannot be read."""
    try:
        return await world.list(resource)
    except Unreadable:
        return ()


def encoded(found: Plan) -> bytes:
    """Return the JSON of a plan."""
    return msgspec.json.format(msgspec.json.encode(found))
