"""Status of a pool: nodes, capacity, conditions, and cost so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from steersman.api.core.v1 import Node
from steersman.api.meta.v1 import Condition
from steersman.cluster.node_pools.plan import ZONE
from steersman.cluster.node_pools.pool import NodePool, PoolSpec, PoolStatus, millionths_of
from steersman.machinery.values import times
from steersman.machinery.values.conditions import is_condition_true, with_condition
from steersman.machinery.values.quantity import Quantity, QuantityError, canonical, parse
from steersman.nodes.simulated_node import GROUP

_HOUR: Final = 3600
_MOST_COST: Final = 10**30
"""Highest cost in millionths."""
_MOST_RESOURCES: Final = 64
"""Resources whose sum a status has; anybody may add resources to a node."""
READY: Final = "Ready"


def is_ready(node: Node) -> bool:
    """Return True if a node is ready."""
    return is_condition_true(node.status.conditions, READY)


class Counts(NamedTuple):
    """Facts about a pool that its nodes do not show."""

    wanted: int
    made: int
    """Nodes that it has made so far."""
    since: float
    """Time in seconds since 1970 from which cost accrues."""


def status_after(
    before: PoolStatus, pool: NodePool, spec: PoolSpec, nodes: Sequence[Node], counts: Counts
) -> PoolStatus:
    """Return the status of a pool with these nodes."""
    ready = sum(map(is_ready, nodes))
    in_zones = Counter(each.metadata.labels.get(ZONE, "") for each in nodes)
    return PoolStatus(
        observed_generation=pool.metadata.generation,
        replicas=len(nodes),
        desired_replicas=counts.wanted,
        ready_replicas=ready,
        nodes_made=counts.made,
        selector=f"{GROUP}={pool.metadata.name}",
        zones={zone: in_zones[zone] for zone in sorted(spec.zones)},
        capacity=_capacity(nodes),
        cost=_cost(before, counts.since),
        cost_time=times.now(),
        price_per_hour=spec.price_per_hour or "0",
        conditions=with_conditions(before, pool, *_reason(spec, len(nodes), ready, counts.wanted)),
    )


def with_conditions(before: PoolStatus, pool: NodePool, status: str, reason: str, message: str) -> list[Condition]:
    """Return the conditions of a status with the present one about readiness."""
    condition = Condition(
        type=READY, status=status, observed_generation=pool.metadata.generation, reason=reason, message=message
    )
    return with_condition(before.conditions, condition)


def differs(before: PoolStatus, after: PoolStatus) -> bool:
    """Return True if two statuses differ in more than the time and the cost up to it."""
    return before != msgspec.structs.replace(after, cost=before.cost, cost_time=before.cost_time)


def _reason(spec: PoolSpec, there: int, ready: int, wanted: int) -> tuple[str, str, str]:
    """Return status, reason and message of the condition Ready."""
    if wanted < spec.replicas:
        why = "limits" if spec.most < spec.replicas else "addresses of the cluster"
        return "False", "LimitReached", f"{wanted} of {spec.replicas} nodes, as the {why} allow no more"
    if there == ready == wanted:
        return "True", "NodesReady", ""
    return "False", "NodesNotReady", f"{ready} of {wanted} nodes are ready"


def _cost(before: PoolStatus, since: float) -> str:
    """Return the cost so far: the nodes of the last status have lived from its time until now, at its price."""
    seconds = min(cost_age(before), int(times.unix_now() - since))
    accrued = millionths_of(before.price_per_hour) * before.replicas * max(seconds, 0)
    cost = min(millionths_of(before.cost) + (accrued + _HOUR // 2) // _HOUR, _MOST_COST)
    return f"{cost // 10**6}.{cost % 10**6:06}" if cost else "0"


def cost_age(status: PoolStatus) -> int:
    """Return the seconds since the cost of a status was counted; 0 if it never was."""
    if not status.cost_time:
        return 0
    try:
        return times.unix(times.now()) - times.unix(status.cost_time)
    except times.TimeError:
        return 0


def _capacity(nodes: Sequence[Node]) -> dict[str, str]:
    """Return the sum of the capacities of nodes."""
    alike = Counter(
        (name, amount) for each in nodes for name, amount in list(each.status.capacity.items())[:_MOST_RESOURCES]
    )
    sums: dict[str, Quantity] = {}
    for (name, amount), number in alike.items():
        try:
            product = parse(amount) * number
        except QuantityError:
            continue
        sums[name] = sums[name] + product if name in sums else product
    return {name: canonical(str(sums[name])) for name in sorted(sums)[:_MOST_RESOURCES]}
