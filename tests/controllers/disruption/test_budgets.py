"""Tests of the computation of a budget's status."""

from __future__ import annotations

import pytest

from steersman.api.core.v1 import Pod, PodCondition, PodStatus
from steersman.api.meta.v1 import LabelSelector, LabelSelectorRequirement, ObjectMeta
from steersman.api.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetSpec
from steersman.controllers.disruption.budgets import (
    PodCounts,
    desired_healthy,
    failed_status,
    new_status,
    unmanaged_message,
)
from steersman.machinery.values import times


def budget(**spec: object) -> PodDisruptionBudget:
    return PodDisruptionBudget(metadata=ObjectMeta(name="b", generation=3), spec=PodDisruptionBudgetSpec(**spec))  # type: ignore[arg-type]


def pod(name: str, *, ready: bool = True) -> Pod:
    conditions = [PodCondition(type="Ready", status="True" if ready else "False")]
    return Pod(metadata=ObjectMeta(name=name), status=PodStatus(conditions=conditions))


@pytest.mark.parametrize(
    ("spec", "expected", "desired"),
    [
        ({"min_available": 2}, 5, 2),
        ({"min_available": "50%"}, 5, 3),
        ({"min_available": "0%"}, 5, 0),
        ({"max_unavailable": 2}, 5, 3),
        ({"max_unavailable": "30%"}, 5, 3),
        ({"max_unavailable": 9}, 5, 0),
    ],
)
def test_shares_are_rounded_up(spec: dict[str, int | str], expected: int, desired: int) -> None:
    assert desired_healthy(budget(**spec), expected) == desired


def test_pods_that_were_evicted_are_not_healthy_until_they_are_late() -> None:
    counted, now = PodCounts(), times.unix("2026-01-01T00:02:00Z")
    disrupted = {"new": "2026-01-01T00:01:30Z", "late": "2025-12-31T23:59:59Z", "gone": "2026-01-01T00:01:30Z"}
    for each in (pod("new"), pod("late"), pod("other"), pod("unready", ready=False)):
        counted.add(each, disrupted, now)
    assert counted.healthy == 2
    assert counted.disrupted == {"new": "2026-01-01T00:01:30Z"}
    assert [each.metadata.name for each in counted.late] == ["late"]
    assert counted.next_timeout == 90


def test_the_condition_keeps_its_time_while_its_status_stays() -> None:
    given = budget(min_available=1)
    first = new_status(given, PodCounts(healthy=3), 1, 3)
    assert first is not None
    assert (first.disruptions_allowed, first.observed_generation) == (2, 3)
    assert [(each.type, each.status, each.reason) for each in first.conditions] == [
        ("DisruptionAllowed", "True", "SufficientPods")
    ]
    first.conditions[0].last_transition_time = "2026-01-01T00:00:00Z"
    given.status = first
    assert new_status(given, PodCounts(healthy=3), 1, 3) is None
    second = new_status(given, PodCounts(healthy=2), 1, 3)
    assert second is not None
    assert second.conditions[0].last_transition_time == "2026-01-01T00:00:00Z"
    given.status = second
    third = new_status(given, PodCounts(healthy=1), 1, 3)
    assert third is not None
    assert (third.conditions[0].status, third.conditions[0].reason) == ("False", "InsufficientPods")
    assert third.conditions[0].last_transition_time != "2026-01-01T00:00:00Z"


def test_nothing_is_allowed_where_no_pod_is_expected_or_nothing_is_known() -> None:
    none = new_status(budget(min_available=0), PodCounts(), 0, 0)
    assert none is not None
    assert none.disruptions_allowed == 0
    failed = failed_status(budget(max_unavailable=1), "no controllers")
    assert [(each.reason, each.message) for each in failed.conditions] == [("SyncFailed", "no controllers")]


def test_selectors_are_shown_as_go_shows_them() -> None:
    selector = LabelSelector(
        match_labels={"b": "2", "a": "1"},
        match_expressions=[LabelSelectorRequirement(key="k", operator="In", values=["x", "y"])],
    )
    assert (
        "(selector: &LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:"
        "[]LabelSelectorRequirement{LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},})"
    ) in unmanaged_message(selector)
