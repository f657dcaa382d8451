"""Tests of the calculation of replicas."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.core.v1 import (
    Container,
    ContainerStatus,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from steersman.api.meta.v1 import ObjectMeta
from steersman.controllers.autoscaling.replicas import (
    NoProposal,
    PodMetric,
    Proposal,
    Readiness,
    Target,
    Tolerances,
    UtilizationTarget,
    counted_metrics,
    group,
    propose_for_pods,
    propose_for_value,
    propose_for_value_per_pod,
    quotient,
    requests_of,
    total,
)
from steersman.machinery.values import times

NOW = 1_000_000
USUAL = Tolerances(0.1, 0.1)
READINESS = Readiness(NOW, 300, 30)


def seconds_before(seconds_ago: int) -> str:
    from datetime import UTC, datetime

    return times.format_time(datetime.fromtimestamp(NOW - seconds_ago, UTC))


def pod(
    name: str,
    *,
    ready: bool = True,
    phase: str = "Running",
    started: int = 1000,
    since: int = 900,
    cpu: str = "1000m",
    **metadata: Any,
) -> Pod:
    condition = PodCondition(
        type="Ready", status="True" if ready else "False", last_transition_time=seconds_before(since)
    )
    container = Container(name="c", resources=ResourceRequirements(requests={"cpu": cpu}))
    return Pod(
        metadata=ObjectMeta(name=name, **metadata),
        spec=PodSpec(containers=[container]),
        status=PodStatus(
            phase=phase,
            start_time=seconds_before(started),
            conditions=[condition],
            container_statuses=[ContainerStatus()],
        ),
    )


def metrics(**values: int) -> dict[str, PodMetric]:
    return {name: PodMetric(value, NOW, 60) for name, value in values.items()}


def utilization(current: int, pods: list[Pod], target: int, found: dict[str, PodMetric]) -> Proposal:
    grouped = group(pods, found, "cpu", READINESS)
    utilization_target = UtilizationTarget(target, requests_of(pods, "", "cpu"))
    return propose_for_pods(current, counted_metrics(found, grouped), utilization_target, USUAL, grouped)


def test_usage_above_its_target_asks_for_more() -> None:
    pods = [pod("a"), pod("b"), pod("c")]
    assert utilization(3, pods, 30, metrics(a=300, b=500, c=700)) == (5, 500, 50)


def test_usage_near_its_target_asks_for_nothing() -> None:
    pods = [pod("a"), pod("b"), pod("c")]
    assert utilization(3, pods, 100, metrics(a=1010, b=1030, c=1020)) == (3, 1020, 102)


def test_usage_below_its_target_asks_for_less() -> None:
    pods = [pod(name) for name in "abcde"]
    assert utilization(5, pods, 50, metrics(a=100, b=300, c=500, d=250, e=250)) == (3, 280, 28)


def test_what_is_not_known_counts_as_all_that_is_asked_for_before_others_go() -> None:
    pods = [pod(name) for name in "abcd"]
    assert utilization(4, pods, 50, metrics(a=100, b=300, c=100)).replicas == 3
    assert utilization(4, pods, 50, metrics(a=100, b=100)).replicas == 4


def test_what_is_not_known_counts_as_nothing_before_others_are_added() -> None:
    pods = [pod(name) for name in "abc"]
    assert utilization(3, pods, 30, metrics(a=300, b=500)) == (3, 400, 40)
    assert utilization(3, pods, 10, metrics(a=300, b=500)).replicas == 8


def test_pods_that_are_not_ready_count_as_nothing_before_others_are_added() -> None:
    pods = [pod("a"), pod("b"), pod("c", ready=False, started=60, since=60)]
    assert utilization(3, pods, 20, metrics(a=500, b=500, c=9000)).replicas == 5


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (pod("a", started=100, since=90), True),
        (pod("a", started=100, since=30), False),
        (pod("a", started=100, since=90, ready=False), False),
        (pod("a", ready=False, started=1000, since=990), False),
        (pod("a", ready=False, started=1000, since=500), True),
        (pod("a", phase="Pending"), False),
    ],
)
def test_cpu_of_pods_counts_once_they_have_been_ready_for_a_window(given: Pod, expected: bool) -> None:
    assert (group([given], metrics(a=1), "cpu", READINESS).ready == 1) is expected


def test_readiness_does_not_matter_to_other_metrics() -> None:
    assert group([pod("a", ready=False, started=10, since=5)], metrics(a=1), "memory", READINESS).ready == 1


def test_pods_that_go_or_have_failed_are_left_out() -> None:
    pods = [pod("a", phase="Failed"), pod("b", deletion_timestamp=seconds_before(1))]
    grouped = group(pods, metrics(a=1, b=1), "cpu", READINESS)
    assert grouped.ignored == {"a", "b"}
    with pytest.raises(NoProposal, match="did not receive metrics"):
        counted_metrics(metrics(a=1, b=1), grouped)


def test_requests_must_be_known() -> None:
    assert requests_of([pod("a", cpu="250m")], "c", "cpu") == {"a": 250}
    with pytest.raises(NoProposal, match="missing request for memory in container c of Pod a"):
        requests_of([pod("a")], "", "memory")
    with pytest.raises(NoProposal, match="container other not found in Pod a"):
        requests_of([pod("a")], "other", "cpu")


def test_requests_of_a_pod_as_a_whole_count_if_there_are_any() -> None:
    given = pod("a")
    given.spec.resources = ResourceRequirements(requests={"cpu": "3"})
    assert requests_of([given], "", "cpu") == {"a": 3000}
    assert requests_of([given], "c", "cpu") == {"a": 1000}
    with pytest.raises(NoProposal, match="missing pod-level request for memory in Pod a"):
        requests_of([given], "", "memory")


def test_amounts_are_held_against_an_average() -> None:
    pods = [pod("a"), pod("b"), pod("c")]
    found = metrics(a=20000, b=10000, c=30000)
    grouped = group(pods, found, "", READINESS)
    assert propose_for_pods(3, counted_metrics(found, grouped), Target(15000), USUAL, grouped) == (4, 20000, None)


def test_values_of_no_pod_are_held_against_their_target_by_ready_pods() -> None:
    pods = [pod("a"), pod("b"), pod("c", ready=False)]
    assert propose_for_value(3, 20000, 15000, USUAL, lambda: pods) == (3, 20000, None)
    assert propose_for_value(3, 15500, 15000, USUAL, list) == (3, 15500, None)
    with pytest.raises(NoProposal, match="unable to calculate ready pods"):
        propose_for_value(3, 20000, 15000, USUAL, list)


def test_values_per_pod() -> None:
    assert propose_for_value_per_pod(3, 8600, 2150, USUAL) == (4, 2867, None)
    assert propose_for_value_per_pod(4, 8600, 2150, USUAL) == (4, 2150, None)
    assert propose_for_value_per_pod(3, 2**62, 1, USUAL).replicas == 2**31 - 1


def test_numbers_are_those_of_go() -> None:
    assert [quotient(7, 2), quotient(-7, 2), quotient(7, -2)] == [3, -3, -3]
    assert total([2**62, 2**62, 5]) == 2**63 - 1


def test_tolerances_of_directions_differ() -> None:
    assert Tolerances(0.5, 0.0).are_met(0.6)
    assert not Tolerances(0.5, 0.0).are_met(1.01)
