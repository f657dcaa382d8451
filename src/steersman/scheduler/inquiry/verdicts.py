"""Verdicts on a pod: for each node the rejections by all plugins, where a decision stops at the first.

The filters are the scheduler's own. After a rejection the same filters are asked again about a demand without the part
that the plugin judges, until none rejects the node.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct, structs

from steersman.api.core import v1 as core
from steersman.scheduler.cycle import NOT_NAMED, Attempt, NoPlacement
from steersman.scheduler.demand.demand import Demand
from steersman.scheduler.fit.node_fit import rejected_by_contents, rejected_by_node
from steersman.scheduler.fit.status import (
    NODE_AFFINITY,
    NODE_NAME,
    NODE_PORTS,
    NODE_UNSCHEDULABLE,
    TAINT_TOLERATION,
    Rejection,
)
from steersman.scheduler.fit.topology import Rule, Topology
from steersman.scheduler.model import Model
from steersman.scheduler.state.node_info import NodeInfo
from steersman.work.yielding import time_sliced

MOST_RULES: Final = 64
"""Rules about other pods that are judged apart; of a pod with more, the others are judged together."""
_WITHOUT: Final[dict[str, dict[str, Any]]] = {
    NODE_UNSCHEDULABLE: {"tolerates_unschedulable": True},
    NODE_NAME: {"node_name": ""},
    TAINT_TOLERATION: {"tolerations": (core.Toleration(operator="Exists"),)},
    NODE_AFFINITY: {"wanted_nodes": None},
    NODE_PORTS: {"ports": ()},
}
"""Members of a demand that satisfy a plugin on every node."""


class Verdict(Struct, frozen=True):
    """Rejection of a node by one plugin, and the rule of the pod that it breaks, if the plugin has several."""

    rejection: Rejection
    rule: Rule | None = None
    topology: Topology | None = None
    """The rule's numbers of pods, without other rules."""


class NodeVerdicts(Struct, frozen=True):
    """Verdicts on a pod on one node, in the order of the filters; none if the pod fits."""

    node: NodeInfo
    verdicts: Sequence[Verdict]


class Examination(Struct, frozen=True):
    """Comparison of a pod with all nodes, by all plugins."""

    attempt: Attempt
    nodes: Sequence[NodeVerdicts]

    @property
    def feasible(self) -> int:
        """Number of nodes on which the pod fits."""
        return sum(not each.verdicts for each in self.nodes)

    def scores(self) -> dict[str, dict[str, int]]:
        """Return the weighted scores of the feasible nodes, by the node's name and the plugin."""
        names = {each.node.index: each.node.name for each in self.nodes}
        found = self.attempt.ranking.scores(self.attempt.excluded)
        return {names[index]: scores for index, scores in found.items()}


async def examine(model: Model, pod: core.Pod) -> Examination | NoPlacement:
    """Return the verdicts of all plugins on a pod; NoPlacement if it is rejected before any node is checked.

    Raises SelectorError if the pod's demand cannot be read.
    """
    attempt = await model.cycle.examine(pod)
    if isinstance(attempt, NoPlacement):
        return attempt
    return Examination(attempt, [each async for each in _verdicts(model, attempt)])


async def _verdicts(model: Model, attempt: Attempt) -> AsyncIterator[NodeVerdicts]:
    every = list(attempt.ranking.topology.rules())
    rules: list[tuple[Rule | None, Topology]] = [*every[:MOST_RULES]]
    if len(every) > MOST_RULES:
        rules.append((None, attempt.ranking.topology))
    async for info in time_sliced(model.cluster.nodes):
        if info.node is None:
            continue
        found = list(_on_node(attempt, rules, info))
        more = attempt.excluded.get(info.index)
        if more is not None and not any(each.rejection == more for each in found):
            found.append(Verdict(more))  # nominated pods count, too; or devices
        yield NodeVerdicts(info, found)


def _on_node(attempt: Attempt, rules: Sequence[tuple[Rule | None, Topology]], info: NodeInfo) -> Iterator[Verdict]:
    named = attempt.demand.named_nodes
    is_left_out = named is not None and info.name not in named
    if is_left_out:
        yield Verdict(NOT_NAMED)
    for each in (*_by_node(attempt.demand, info), *_by_contents(attempt.demand, info)):
        if not (is_left_out and each.plugin == NODE_AFFINITY):
            yield Verdict(each)
    if attempt.volumes is not None:
        for each in attempt.volumes.rejections(info):
            yield Verdict(each)
    if not rules:
        return
    description = attempt.ranking.topology.describe(info)
    is_rejected = False
    for rule, topology in rules:
        if rule is None and is_rejected:
            return
        found = topology.rejection(description)
        if found is not None:
            is_rejected = True
            yield Verdict(found, rule, topology)


def _by_node(demand: Demand, info: NodeInfo) -> Iterator[Rejection]:
    while (found := rejected_by_node(demand, info)) is not None:
        yield found
        demand = structs.replace(demand, **_WITHOUT[found.plugin])


def _by_contents(demand: Demand, info: NodeInfo) -> Iterator[Rejection]:
    rejected = rejected_by_contents(demand, info)
    if rejected is not None and rejected.plugin == NODE_PORTS:
        yield rejected
        rejected = rejected_by_contents(structs.replace(demand, **_WITHOUT[NODE_PORTS]), info)
    if rejected is not None:
        yield rejected
