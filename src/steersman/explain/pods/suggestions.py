"""The least changes that would place a pending pod, found by trying each on a copy of the cluster."""

from __future__ import annotations

import shlex
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from steersman.api.core import v1 as core
from steersman.api.meta.v1 import ObjectMeta
from steersman.api.scheduling.v1 import PriorityClass
from steersman.explain.pods import edits
from steersman.explain.pods.edits import edited, edited_node
from steersman.explain.pods.reasons import NodeNeeds
from steersman.explain.pods.remedies import Edits, ways_onto
from steersman.machinery.values.quantity import QuantityError, parse
from steersman.scheduler.cycle import NoPlacement, Placement
from steersman.scheduler.inquiry.simulation import Simulation
from steersman.scheduler.inquiry.verdicts import Examination, examine
from steersman.scheduler.preemption.victims import Candidate

_MOST_TRIES: Final = 40
_MOST_SECONDS: Final = 2.0
"""Processor time for all tries."""
_MOST_SUGGESTIONS: Final = 6
_MOST_SHAPES: Final = 8
_MOST_CLASSES: Final = 4
_MOST_DELETED: Final = 5
_HIGHEST: Final = 2_000_001_000
"""Priority above that of every pod."""
_TAINTS_OF_STATE: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


@dataclass(frozen=True)
class Placed:
    """Changes that place the pod, as the scheduler has decided with all of them made."""

    edits: Edits
    pod: core.Pod
    """The pod with the changes."""
    node: str
    """The node that it would get."""
    nodes: tuple[tuple[core.Node, core.Node], ...] = ()
    """Changed nodes, before and after."""

    @property
    def weight(self) -> float:
        """Weight of all changes together."""
        return sum(each.weight for each in self.edits)

    def __str__(self) -> str:
        """Return the changes in one sentence."""
        return " and ".join(each.text for each in self.edits)


class Trials:
    """Tries of changes for one pod; `found` is its examination, None if it was rejected before any node."""

    def __init__(
        self,
        simulation: Simulation,
        pod: core.Pod,
        found: Examination | None,
        classes: Iterable[PriorityClass] = (),
    ) -> None:
        self._simulation = simulation
        self._pod = pod
        self._found = found
        self._classes = classes
        self._first = (edits.remove_gates(),) if pod.spec.scheduling_gates else ()
        self._end = time.process_time() + _MOST_SECONDS
        self._tries = 0

    async def best(self) -> Sequence[Placed]:
        """Return the smallest changes that work, at most six, the smallest first. Takes at most about two seconds."""
        found: list[Placed] = []
        for some in sorted(self._variations(), key=_weight):
            if len(found) >= _MOST_SUGGESTIONS or self._is_over:
                break
            if any(_covers(some, each.edits) for each in found):
                continue
            placed = await self._try(some)
            if placed is not None:
                found.append(placed)
        async for placed in self._others():
            if not any(_covers(placed.edits, each.edits) for each in found):
                found.append(placed)
        return sorted(found, key=lambda each: each.weight)[:_MOST_SUGGESTIONS]

    @property
    def _is_over(self) -> bool:
        return self._tries >= _MOST_TRIES or time.process_time() > self._end

    def _variations(self) -> Iterable[Edits]:
        """Return the sets of edits that follow from the verdicts, one for each combination of kinds and subjects."""
        least: dict[frozenset[tuple[str, str]], Edits] = {}
        needs = NodeNeeds(self._pod.spec)
        for each in self._found.nodes if self._found is not None else ():
            if not each.verdicts and self._first:
                return [self._first]
            for way in ways_onto(each, self._found.attempt, needs) if self._found is not None and each.verdicts else ():
                key = frozenset((edit.kind, edit.subject) for edit in way)
                if key not in least or _weight(way) < _weight(least[key]):
                    least[key] = way
        return [(*self._first, *each) for each in least.values()]

    async def _try(self, some: Edits) -> Placed | None:
        """Return the decision with some edits made; None if the pod stays pending."""
        self._tries += 1
        try:
            pod = edited(self._pod, some)
        except (KeyError, IndexError, TypeError, msgspec.ValidationError):
            return None
        changed = tuple(self._edited_nodes(some))
        nodes = [*(new for _, new in changed), *(each.create for each in some if each.create is not None)]
        deleted = [pod for each in some for pod in each.delete]
        with self._simulation.hypothetical(nodes=nodes, without=deleted):
            decided = await self._simulation.decide(pod)
        if isinstance(decided, Placement):
            return Placed(some, pod, decided.node.name, changed)
        return None

    def _edited_nodes(self, some: Edits) -> Iterator[tuple[core.Node, core.Node]]:
        for name in dict.fromkeys(each.node_name for each in some if each.node is not None):
            info = self._simulation.model.cluster.node(name)
            if info is not None and info.node is not None:
                yield info.node, edited_node(info.node, some)

    async def _others(self) -> AsyncIterator[Placed]:
        """Yield changes of other objects: another priority, other pods deleted, one more node."""
        if self._found is None:
            return
        for found in (await self._by_priority(), await self._by_deletion(), await self._by_new_node()):
            if found is not None:
                yield found

    async def _by_priority(self) -> Placed | None:
        """Return the lowest priority class with which the pod would preempt others."""
        own = self._pod.spec.priority or 0
        higher = [each for each in self._classes if own < each.value and not each.metadata.name.startswith("system-")]
        for each in sorted(higher, key=lambda found: found.value)[:_MOST_CLASSES]:
            if each.preemption_policy == "Never" or self._is_over:
                continue
            self._tries += 1
            edit = edits.priority_class(each.metadata.name, each.value, "")
            pod = edited(self._pod, (*self._first, edit))
            decided = await self._simulation.decide(pod)
            if isinstance(decided, NoPlacement) and decided.preemption is not None:
                effect = pods_text([info.pod for info in decided.preemption.victims])
                edit = edits.priority_class(each.metadata.name, each.value, effect)
                return Placed((*self._first, edit), pod, decided.preemption.node.name)
        return None

    async def _by_deletion(self) -> Placed | None:
        """Return the fewest and least important pods whose deletion places the pod."""
        spec = msgspec.structs.replace(self._pod.spec, priority=_HIGHEST, preemption_policy="PreemptLowerPriority")
        examination = await examine(self._simulation.model, msgspec.structs.replace(self._pod, spec=spec))
        if isinstance(examination, NoPlacement) or self._is_over:
            return None
        nodes = list(examination.attempt.ranking.resolvable(examination.attempt.excluded))
        best = await self._simulation.model.cycle.search(examination.attempt).best(nodes)
        if not isinstance(best, Candidate) or len(best.victims) > _MOST_DELETED:
            return None
        victims = [info.pod for info in best.victims]
        text = f"delete {pods_text(victims)}" + _replaced(victims)
        return await self._try((*self._first, edits.delete(victims, text, _deletion(victims))))

    async def _by_new_node(self) -> Placed | None:
        """Return the smallest kind of node of which one more would take the pod."""
        for node in self._shapes():
            if self._is_over:
                return None
            placed = await self._try((*self._first, edits.add_node(node.metadata.name, _another(node))))
            if placed is not None:
                return placed
        return None

    def _shapes(self) -> Sequence[core.Node]:
        """Return one node of each kind, the smallest first."""
        shapes: dict[bytes, core.Node] = {}
        for info in self._simulation.model.cluster.nodes:
            if info.node is not None:
                blank = _another(info.node)
                key = msgspec.json.encode(
                    (
                        sorted(blank.status.allocatable.items()),
                        blank.spec.taints,
                        sorted((k, v) for k, v in blank.metadata.labels.items() if v != blank.metadata.name),
                    )
                )
                shapes.setdefault(key, info.node)
        return sorted(shapes.values(), key=_size)[:_MOST_SHAPES]


def _weight(some: Edits) -> float:
    return sum(each.weight for each in some)


def _covers(larger: Edits, smaller: Edits) -> bool:
    """Return True if all edits of a set are in another, amounts aside."""
    return {(each.kind, each.subject) for each in smaller} <= {(each.kind, each.subject) for each in larger}


def _another(node: core.Node) -> core.Node:
    """Return a new node of the same kind: its labels, taints and resources, without pods or a state of its own."""
    name = f"{node.metadata.name}-more"
    labels = {key: name if value == node.metadata.name else value for key, value in node.metadata.labels.items()}
    taints = [each for each in node.spec.taints if not each.key.startswith(_TAINTS_OF_STATE)]
    return core.Node(
        metadata=ObjectMeta(name=name, labels=labels),
        spec=core.NodeSpec(taints=taints),
        status=core.NodeStatus(allocatable=dict(node.status.allocatable), capacity=dict(node.status.capacity)),
    )


def _size(node: core.Node) -> tuple[int, int, str]:
    def amount(name: str) -> int:
        try:
            return parse(node.status.allocatable.get(name, "0")).as_milli()
        except QuantityError:
            return 0

    return amount("cpu"), amount("memory"), node.metadata.name


def pods_text(pods: Sequence[core.Pod]) -> str:
    """Return the names of some pods: `pod a and pod b`."""
    names = [f"pod {each.metadata.namespace}/{each.metadata.name}" for each in pods]
    if len(names) > _MOST_DELETED:
        return f"{len(names)} pods"
    return " and ".join(names)


def _replaced(pods: Sequence[core.Pod]) -> str:
    kinds = {owner.kind for each in pods for owner in each.metadata.owner_references if owner.controller}
    return f" (its {' and its '.join(sorted(kinds))} creates another, which then needs a node)" if kinds else ""


def _deletion(pods: Sequence[core.Pod]) -> str:
    namespaces: dict[str, list[str]] = {}
    for each in pods:
        namespaces.setdefault(each.metadata.namespace, []).append(each.metadata.name)
    return " && ".join(
        shlex.join(["kubectl", "delete", "pod", "-n", namespace, *names]) for namespace, names in namespaces.items()
    )
