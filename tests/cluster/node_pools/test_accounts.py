"""Status of a pool, and its cost at extremes."""

from __future__ import annotations

import msgspec
import pytest

from steersman.api.core.v1 import Node, NodeStatus
from steersman.api.meta.v1 import ObjectMeta
from steersman.cluster.node_pools.accounts import Counts, status_after
from steersman.cluster.node_pools.pool import NodePool, PoolSpec, PoolStatus
from steersman.machinery.values import times

POOL = NodePool(metadata=ObjectMeta(name="spot", generation=3))


def after(before: PoolStatus, seconds: int = 0, **spec: object) -> PoolStatus:
    """Return the status that follows `before`, whose cost was counted that many seconds ago."""
    if before.cost_time == "":
        then = times.shifted(times.now(), -seconds)
        before = msgspec.structs.replace(before, cost_time=then)
    return status_after(before, POOL, msgspec.convert(spec, PoolSpec), [], Counts(0, 0, 0.0))


def test_cost_accrues_at_the_price_and_number_of_the_last_status() -> None:
    before = PoolStatus(replicas=4, price_per_hour="0.25", cost="1.5")
    found = after(before, 1800, pricePerHour="9")
    assert (found.cost, found.price_per_hour, found.observed_generation) == ("2.000000", "9", 3)


def test_time_before_the_start_of_the_process_costs_nothing() -> None:
    before = PoolStatus(replicas=1, price_per_hour="1", cost_time=times.shifted(times.now(), -86400))
    since = times.unix_now() - 3600
    assert status_after(before, POOL, PoolSpec(), [], Counts(0, 0, since)).cost == "1.000000"


@pytest.mark.parametrize(
    "before",
    [
        PoolStatus(replicas=2**31, price_per_hour="999999.999999", cost="9" * 30),
        PoolStatus(replicas=1, price_per_hour="1e9", cost="NaN"),
        PoolStatus(replicas=1, price_per_hour="-1", cost="1" * 5000),
        PoolStatus(replicas=1, price_per_hour="1", cost="0", cost_time="yesterday"),
        PoolStatus(replicas=1, price_per_hour="1", cost="0", cost_time="9999-12-31T23:59:59Z"),
    ],
)
def test_statuses_that_others_wrote_are_followed_within_bounds(before: PoolStatus) -> None:
    cost = after(before, 10**9).cost
    assert float(cost) >= 0
    assert len(cost) <= 32


def test_capacity_is_the_sum_of_the_nodes() -> None:
    capacities = ({"cpu": "500m", "pods": "10"}, {"cpu": "2", "a.b/c": "1"}, {"cpu": "none"})
    nodes = [Node(metadata=ObjectMeta(name="n"), status=NodeStatus(capacity=each)) for each in capacities]
    found = status_after(PoolStatus(), POOL, PoolSpec(), nodes, Counts(3, 3, 0.0))
    assert found.capacity == {"a.b/c": "1", "cpu": "2500m", "pods": "10"}
    assert [(each.reason, each.message) for each in found.conditions] == [("NodesNotReady", "0 of 3 nodes are ready")]
