"""Filters and scores of a pod on a node that depend only on the node and the pods on it.

Filters run in the order of the default profile; the first rejection is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from steersman.scheduler.demand.demand import Demand
from steersman.scheduler.demand.ports import conflict
from steersman.scheduler.demand.taints import disliked, forbidding
from steersman.scheduler.fit.status import (
    NODE_AFFINITY,
    NODE_NAME,
    NODE_PORTS,
    NODE_UNSCHEDULABLE,
    TAINT_TOLERATION,
    Rejection,
    insufficient,
)
from steersman.scheduler.state.cluster import ClusterState
from steersman.scheduler.state.node_info import NodeInfo

MAX_SCORE: Final = 100
TAINT_WEIGHT: Final = 3
AFFINITY_WEIGHT: Final = 2
"""Weights of TaintToleration and NodeAffinity in the default profile; NodeResourcesFit, NodeResourcesBalancedAllocation
and ImageLocality have 1.
"""

UNSCHEDULABLE: Final = Rejection(NODE_UNSCHEDULABLE, ("node(s) were unschedulable",))
OTHER_NAME: Final = Rejection(NODE_NAME, ("node(s) didn't match the requested node name",))
TAINTED: Final = Rejection(TAINT_TOLERATION, ("node(s) had untolerated taint(s)",))
NOT_WANTED: Final = Rejection(NODE_AFFINITY, ("node(s) didn't match Pod's node affinity/selector",))
PORTS_TAKEN: Final = Rejection(
    NODE_PORTS, ("node(s) didn't have free ports for the requested pod ports",), resolvable=True
)

_MIB: Final = 1 << 20
_SMALL_IMAGE: Final = 23 * _MIB
_LARGE_IMAGE: Final = 1000 * _MIB


class Shortage(NamedTuple):
    """Resource of which a node has too little left: thousandths of CPU, bytes, or the resource's own units."""

    resource: str
    requested: int
    allocatable: int
    used: int
    """Amount that the pods on the node use."""


def rejected_by_node(demand: Demand, info: NodeInfo) -> Rejection | None:
    """Return the rejection by properties of the node itself, regardless of its pods; None if there is none."""
    node = info.node
    if node is None:
        return OTHER_NAME
    spec = node.spec
    if spec.unschedulable and not demand.tolerates_unschedulable:
        return UNSCHEDULABLE
    if demand.node_name and demand.node_name != info.name:
        return OTHER_NAME
    if spec.taints and forbidding(demand.tolerations, spec.taints) is not None:
        return TAINTED
    if demand.wanted_nodes is not None and not demand.wanted_nodes(info.name, node.metadata.labels):
        return NOT_WANTED
    return None


def rejected_by_contents(demand: Demand, info: NodeInfo) -> Rejection | None:
    """Return the rejection by what the node's pods leave of its ports and resources; None if there is none."""
    if demand.ports and conflict(demand.ports, info.ports):
        return PORTS_TAKEN
    requested, has = demand.requests.total, info.allocatable
    if (
        len(info.pods) < has.pods
        and requested.milli_cpu <= has.milli_cpu - info.milli_cpu
        and requested.memory <= has.memory - info.memory
        and not requested.ephemeral_storage
        and not requested.scalars
    ):
        return None
    return _too_little(demand, info)


def _too_little(demand: Demand, info: NodeInfo) -> Rejection | None:
    short = shortages(demand, info)
    if not short:
        return None
    resolvable = all(each.resource == "pods" or each.requested <= each.allocatable for each in short)
    return insufficient(tuple(each.resource for each in short), resolvable=resolvable)


def shortages(demand: Demand, info: NodeInfo) -> Sequence[Shortage]:
    """Return the resources of which a node has too little left for a pod."""
    return list(each_shortage(demand, info))


def each_shortage(demand: Demand, info: NodeInfo) -> Iterator[Shortage]:
    """Yield the resources of which a node has too little left for a pod."""
    requested, has = demand.requests.total, info.allocatable
    if len(info.pods) + 1 > has.pods:
        yield Shortage("pods", 1, has.pods, len(info.pods))
    for name, wanted, total, used in (
        ("cpu", requested.milli_cpu, has.milli_cpu, info.milli_cpu),
        ("memory", requested.memory, has.memory, info.memory),
        ("ephemeral-storage", requested.ephemeral_storage, has.ephemeral_storage, info.ephemeral_storage),
    ):
        if wanted > 0 and wanted > total - used:
            yield Shortage(name, wanted, total, used)
    for name, wanted in requested.scalars.items():
        total, used = has.scalars.get(name, 0), info.scalars.get(name, 0)
        if not total and name in demand.device_resources:
            continue  # devices provide it here, which the claims of the pod decide
        if wanted > 0 and wanted > total - used:
            yield Shortage(name, wanted, total, used)


def dislike(demand: Demand, info: NodeInfo) -> int:
    """Return the number of the node's PreferNoSchedule taints that the pod does not tolerate."""
    node = info.node
    taints = node.spec.taints if node is not None else ()
    return disliked(demand.tolerations, taints) if taints else 0


def preference(demand: Demand, info: NodeInfo) -> int:
    """Return the sum of the weights of the pod's node preferences that the node meets."""
    node = info.node
    if node is None or not demand.preferred_nodes:
        return 0
    labels = node.metadata.labels
    return sum(weight for weight, matches in demand.preferred_nodes if matches(info.name, labels))


def contents_score(demand: Demand, info: NodeInfo) -> int:
    """Return the score for free resources and for balance between CPU and memory, which changes with each pod."""
    return least_allocated_score(demand, info) + balanced_score(demand, info)


def least_allocated_score(demand: Demand, info: NodeInfo) -> int:
    """Return the score for the share of CPU and memory that stays free (NodeResourcesFit)."""
    requests, has = demand.requests, info.allocatable
    total = weights = 0
    cpu, memory = has.milli_cpu, has.memory
    if cpu:
        left = cpu - info.non_zero_milli_cpu - requests.non_zero_milli_cpu
        total += left * MAX_SCORE // cpu if left > 0 else 0
        weights += 1
    if memory:
        left = memory - info.non_zero_memory - requests.non_zero_memory
        total += left * MAX_SCORE // memory if left > 0 else 0
        weights += 1
    return total // weights if weights else 0


def balanced_score(demand: Demand, info: NodeInfo) -> int:
    """Return the score for balance between CPU and memory (NodeResourcesBalancedAllocation)."""
    requested, has = demand.requests.total, info.allocatable
    if not requested.milli_cpu and not requested.memory:
        return 0
    cpu, memory = has.milli_cpu, has.memory
    if not cpu or not memory:
        return MAX_SCORE // 2 + MAX_SCORE // 4
    before = _evenness(info.milli_cpu / cpu, info.memory / memory)
    after = _evenness((info.milli_cpu + requested.milli_cpu) / cpu, (info.memory + requested.memory) / memory)
    return MAX_SCORE // 2 + int((MAX_SCORE // 2 + after - before) / 2)


def _evenness(cpu: float, memory: float) -> int:
    return int((1 - abs(min(cpu, 1.0) - min(memory, 1.0)) / 2) * MAX_SCORE)


def image_score(demand: Demand, info: NodeInfo, cluster: ClusterState) -> int:
    """Return the score for images on the node, weighted by the share of nodes that have them."""
    if not info.images:
        return 0
    total = 0
    for name in demand.images:
        if name in info.images:
            image = cluster.images[name]
            total += int(image.size * (image.nodes / cluster.size))
    most = _LARGE_IMAGE * demand.containers
    total = min(max(total, _SMALL_IMAGE), most)
    return MAX_SCORE * (total - _SMALL_IMAGE) // (most - _SMALL_IMAGE)


def image_state(demand: Demand, cluster: ClusterState) -> Mapping[str, int] | None:
    """Return the state of the cluster that `image_score` depends on; None if no node has any of the images."""
    if not cluster.images:
        return None
    found = {name: cluster.images[name].nodes for name in demand.images if name in cluster.images}
    return {**found, "": cluster.size} if found else None
