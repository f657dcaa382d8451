"""Tests of autoscalers' rate limits."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.autoscaling.v2 import HorizontalPodAutoscalerBehavior, HPAScalingPolicy, HPAScalingRules
from steersman.controllers.autoscaling.history import Bounds, History, limited


def rules(
    *policies: tuple[str, int, int], select: str = "Max", window: int = 0, **down: Any
) -> HorizontalPodAutoscalerBehavior:
    given = [HPAScalingPolicy(type=type_, value=value, period_seconds=period) for type_, value, period in policies]
    one = HPAScalingRules(select_policy=select, policies=given, stabilization_window_seconds=window)
    other = HPAScalingRules(select_policy=select, policies=given, stabilization_window_seconds=down.get("down", window))
    return HorizontalPodAutoscalerBehavior(scale_up=one, scale_down=other)


def test_the_highest_recommendation_of_the_window_holds() -> None:
    history = History()
    history.record_initial(5, 0)
    assert history.stabilized(2, 300, 15) == 5
    assert history.stabilized(3, 300, 290) == 5
    assert history.stabilized(1, 300, 301) == 3
    assert len(history.recommendations) == 3
    assert history.stabilized(1, 300, 10_000) == 1
    assert len(history.recommendations) == 3, "old ones are overwritten"


@pytest.mark.parametrize(
    ("wanted", "bounds", "expected"),
    [
        (10, Bounds(2, 1, 20), (4, "ScaleUpLimit")),
        (10, Bounds(1, 1, 20), (4, "ScaleUpLimit")),
        (30, Bounds(15, 1, 20), (20, "TooManyReplicas")),
        (0, Bounds(3, 2, 20), (2, "TooFewReplicas")),
        (4, Bounds(3, 2, 20), (4, "DesiredWithinRange")),
    ],
)
def test_without_rules_a_number_at_most_doubles(wanted: int, bounds: Bounds, expected: tuple[int, str]) -> None:
    assert limited(wanted, bounds)[:2] == expected


def test_rules_allow_what_their_policies_do() -> None:
    bounds, history = Bounds(10, 1, 100), History()
    either = rules(("Pods", 4, 60), ("Percent", 50, 60))
    assert history.limited_by(either, 50, bounds, 0)[:2] == (15, "ScaleUpLimit")
    assert history.limited_by(rules(("Pods", 4, 60), ("Percent", 50, 60), select="Min"), 50, bounds, 0).replicas == 14
    assert history.limited_by(rules(("Pods", 4, 60), select="Disabled"), 50, bounds, 0)[:2] == (10, "ScaleUpLimit")
    assert history.limited_by(either, 1, bounds, 0)[:2] == (5, "ScaleDownLimit")
    assert history.limited_by(either, 12, bounds, 0)[:2] == (12, "DesiredWithinRange")
    assert history.limited_by(rules(("Pods", 400, 60)), 500, bounds, 0)[:2] == (100, "TooManyReplicas")
    assert history.limited_by(rules(("Percent", 100, 60)), 0, bounds, 0)[:2] == (1, "TooFewReplicas")


def test_what_was_done_in_a_period_counts() -> None:
    history, given = History(), rules(("Pods", 4, 60))
    history.scaled(given, 10, 14, 100)
    assert history.limited_by(given, 50, Bounds(14, 1, 100), 130)[:2] == (14, "ScaleUpLimit")
    assert history.limited_by(given, 50, Bounds(14, 1, 100), 161)[:2] == (18, "ScaleUpLimit")
    history.scaled(given, 14, 18, 161)
    assert len(history.added) == 1
    history.scaled(None, 18, 20, 170)
    assert len(history.added) == 1


def test_windows_of_both_directions_hold() -> None:
    history, given = History(), rules(window=60, down=300)
    history.record_initial(5, 0)
    assert history.stabilized_by(given, 9, 5, 10)[:2] == (5, "ScaleUpStabilized")
    assert history.stabilized_by(given, 9, 5, 61).replicas == 9
    assert history.stabilized_by(given, 2, 9, 80)[:2] == (9, "ScaleDownStabilized")
    assert history.stabilized_by(given, 2, 9, 400).replicas == 2
