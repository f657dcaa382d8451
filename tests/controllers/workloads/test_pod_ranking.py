"""Tests of the ranking of pods for deletion."""

from __future__ import annotations

from typing import Any

from steersman.api.core.v1 import ContainerStatus, Pod, PodCondition, PodSpec, PodStatus
from steersman.api.meta.v1 import ObjectMeta
from steersman.controllers.workloads.pod_ranking import DELETION_COST, deletion_cost, in_deletion_order, pods_to_delete
from steersman.machinery.values import times

NOW = times.unix("2024-01-02T00:00:00Z")


def pod(
    name: str,
    *,
    node: str = "n",
    phase: str = "Running",
    ready: str = "",
    restarts: int = 0,
    born: str = "2024-01-01T00:00:00Z",
    cost: str = "",
) -> Pod:
    conditions = [PodCondition(type="Ready", status="True", last_transition_time=ready)] if ready else []
    counted = [ContainerStatus(name="c", image="i", image_id="", ready=True, restart_count=restarts)]
    return Pod(
        metadata=ObjectMeta(
            name=name, uid=name, creation_timestamp=born, annotations={DELETION_COST: cost} if cost else {}
        ),
        spec=PodSpec(node_name=node),
        status=PodStatus(phase=phase, conditions=conditions, container_statuses=counted),
    )


def names(pods: Any) -> list[str]:
    return [each.metadata.name for each in pods]


def test_pods_that_are_missed_less_go_first() -> None:
    long, short = "2023-12-01T00:00:00Z", "2024-01-01T23:59:59Z"
    ranked = [
        pod("unassigned", node=""),
        pod("pending", phase="Pending"),
        pod("unready"),
        pod("cheap", ready=long, cost="-5"),
        pod("doubled", ready=long, node="crowded"),
        pod("new", ready=short),
        pod("restarted", ready=long, restarts=3),
        pod("young", ready=long, born=short),
        pod("old", ready=long),
    ]
    related = [*ranked, pod("other", node="crowded"), pod("another", node="crowded")]
    related += [pod(f"more {number}") for number in range(3)]
    crowded = [each for each in related if each.spec.node_name == "crowded"]
    assert len(crowded) == 3
    found = pods_to_delete(list(reversed(ranked)), crowded, len(ranked) - 1, NOW)
    assert names(found) == names(ranked[:-1])


def test_all_go_in_any_order_when_none_is_to_stay() -> None:
    pods = [pod("a"), pod("b", node="")]
    assert pods_to_delete(pods, [], 2, NOW) == pods


def test_pods_of_about_the_same_age_go_by_their_uids() -> None:
    ages = {"c": "2024-01-01T00:00:00Z", "a": "2024-01-01T00:10:00Z", "b": "2024-01-01T00:20:00Z"}
    pods = [pod(name, ready=ready) for name, ready in ages.items()]
    assert names(pods_to_delete(pods, [], 2, NOW)) == ["a", "b"]


def test_without_others_the_one_that_got_ready_last_goes_first() -> None:
    pods = [pod("old", ready="2023-01-01T00:00:00Z"), pod("new", ready="2024-01-01T00:00:00Z"), pod("unready")]
    assert names(in_deletion_order(pods)) == ["unready", "new", "old"]


def test_a_cost_that_cannot_be_read_is_none() -> None:
    assert [deletion_cost(pod("a", cost=cost)) for cost in ("7", "-7", "+7", "07", "x", str(2**31))] == [
        7,
        -7,
        0,
        0,
        0,
        0,
    ]
