"""Decisions about the nodes of a pool."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from steersman.api.core.v1 import Node, NodeCondition, NodeSpec, NodeStatus, Taint
from steersman.api.meta.v1 import ObjectMeta
from steersman.cluster.node_pools.plan import FAILS_AFTER, INTERRUPTED, INTERRUPTED_AFTER, free_names, new_nodes, plan
from steersman.cluster.node_pools.pool import InvalidPool, NodePool, PoolSpec, spec_of
from steersman.machinery.values import times

POOL = NodePool(metadata=ObjectMeta(name="spot", uid="u"))
CREATED = "2026-01-01T00:00:00Z"
START = times.unix(CREATED)


def spec(**members: Any) -> PoolSpec:
    return msgspec.convert(members, PoolSpec)


def node(name: str, annotations: dict[str, str] | None = None, **members: Any) -> Node:
    metadata = ObjectMeta(name=name, creation_timestamp=CREATED, annotations=annotations or {})
    return Node(metadata=metadata, **members)


def names(nodes: Any) -> list[str]:
    return [each.metadata.name for each in nodes]


def test_the_next_decision_is_the_earliest_that_time_causes() -> None:
    nodes = [node("a", {FAILS_AFTER: "10m"}), node("b", {INTERRUPTED_AFTER: "5m"}), node("c", {FAILS_AFTER: "soon"})]
    found = plan(spec(replicas=3), nodes, 100, START)
    assert (found.next_at, found.missing, found.surplus) == (START + 300, 0, 0)
    found = plan(spec(replicas=3), nodes, 100, START + 300)
    assert (names(found.to_interrupt), names(found.to_fail), found.next_at) == (["b"], [], START + 600)


def test_a_notice_counts_from_its_taint_however_late_it_was_given() -> None:
    taint = Taint(key=INTERRUPTED, effect="NoSchedule", time_added="2026-01-02T00:00:00Z")
    noticed = node("a", {INTERRUPTED_AFTER: "1m"}, spec=NodeSpec(taints=[taint]))
    given = times.unix("2026-01-02T00:00:00Z")
    early = plan(spec(), [noticed], 100, given + 119)
    assert (names(early.expired), names(early.to_interrupt), early.next_at) == ([], [], given + 120)
    late = plan(spec(), [noticed], 100, given + 120)
    assert (names(late.expired), late.missing) == (["a"], 1)


def test_a_node_that_boots_is_not_repaired_meanwhile() -> None:
    condition = NodeCondition(type="Ready", status="False", last_transition_time=CREATED)
    boots = node("a", {"simulation.steersman.dev/ready-after": "1h"}, status=NodeStatus(conditions=[condition]))
    repairs = spec(failures={"repairAfter": "5m"})
    assert names(plan(repairs, [boots], 100, START + 3600).broken) == []
    assert names(plan(repairs, [boots], 100, START + 3901).broken) == ["a"]
    assert names(plan(spec(), [boots], 100, START + 10**6).broken) == []


def test_little_room_keeps_a_pool_from_growing_and_takes_nothing_away() -> None:
    nodes = [node("a"), node("b")]
    assert (plan(spec(replicas=9), nodes, 5, START).missing, plan(spec(replicas=9), nodes, -3, START).wanted) == (3, 2)


@pytest.mark.parametrize(
    ("limits", "most"),
    [({}, 50), ({"cpu": "100"}, 3), ({"nodes": 7}, 7), ({"memory": 0}, 0), ({"a.b/c": 1}, 50), ({"cpu": "9e99"}, 50)],
)
def test_limits_are_of_all_nodes_together(limits: dict[str, str | int], most: int) -> None:
    assert spec(replicas=50, limits=limits).most == most


def test_times_of_interruptions_have_the_mean_that_the_pool_says() -> None:
    made = new_nodes(POOL, spec(interruptions={"meanTime": "1h"}), [], free_names("spot", (), 2000), 0)
    seconds = [int(each.metadata.annotations[INTERRUPTED_AFTER].removesuffix("s")) for each in made]
    assert sum(seconds) / len(seconds) == pytest.approx(3600, rel=0.1)


def test_names_are_the_lowest_free_ones() -> None:
    assert list(free_names("a", {"a-0", "a-2", "b-1"}, 3)) == ["a-1", "a-3", "a-4"]


@pytest.mark.parametrize(
    "members",
    [
        {"replicas": "many"},
        {"limits": {"cpu": "much"}},
        {"template": {"metadata": {"annotations": {"a": "x" * 20000}}}},
    ],
)
def test_a_spec_that_cannot_be_followed_is_refused(members: dict[str, Any]) -> None:
    with pytest.raises(InvalidPool):
        spec_of(NodePool(spec=members))
