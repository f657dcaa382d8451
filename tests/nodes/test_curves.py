"""Curves over the time of day, and noise."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from steersman.nodes.curves import Curve, Point, noise

HOUR = 3600.0
DAY = [Point(8 * HOUR, 1.0), Point(12 * HOUR, 5.0), Point(20 * HOUR, 1.0)]


def moment(hour: int, minute: int = 0, day: int = 5) -> float:
    return datetime(2026, 1, day, hour, minute, tzinfo=UTC).timestamp()


def test_values_between_points_are_on_a_straight_line() -> None:
    curve = Curve(DAY)
    assert [curve.at(moment(*at)) for at in ((8,), (10,), (12,), (16,), (20,))] == [1.0, 3.0, 5.0, 3.0, 1.0]


def test_the_last_point_leads_to_the_first_of_the_next_day() -> None:
    curve = Curve([Point(6 * HOUR, 0.0), Point(18 * HOUR, 12.0)])
    assert [curve.at(moment(*at)) for at in ((18,), (23,), (0,), (1,), (6,))] == [12.0, 7.0, 6.0, 5.0, 0.0]


def test_steps_keep_a_value_until_the_next_point() -> None:
    curve = Curve(DAY, interpolation="step")
    assert [curve.at(moment(*at)) for at in ((0,), (8,), (11, 59), (12,), (23,))] == [1.0, 1.0, 1.0, 5.0, 1.0]


def test_a_week_begins_on_monday() -> None:
    curve = Curve([Point(0.0, 1.0), Point(5 * 24 * HOUR, 0.2)], 7 * 24 * HOUR, "step")
    assert [curve.at(moment(0, day=day)) for day in (5, 9, 10, 11, 12)] == [1.0, 1.0, 0.2, 0.2, 1.0]


def test_one_point_is_a_constant() -> None:
    assert Curve([Point(HOUR, 3.0)]).at(moment(17)) == 3.0


@pytest.mark.parametrize(
    ("points", "period"),
    [([], 10.0), ([(0.0, 1.0)], 0.0), ([(10.0, 1.0)], 10.0), ([(1.0, 1.0), (1.0, 2.0)], 10.0), ([(-1.0, 1.0)], 10.0)],
)
def test_impossible_points_are_refused(points: list[tuple[float, float]], period: float) -> None:
    with pytest.raises(ValueError, match="point"):
        Curve([Point(*each) for each in points], period)


def test_noise_is_repeatable_and_without_a_bias() -> None:
    values = [noise(1, "pod", moment(0) + 15 * number) for number in range(2000)]
    assert values == [noise(1, "pod", moment(0) + 15 * number + 14.9) for number in range(2000)]
    assert values != [noise(2, "pod", moment(0) + 15 * number) for number in range(2000)]
    assert noise(1, "other", moment(0)) != values[0]
    assert all(-1 <= each <= 1 for each in values)
    assert abs(sum(values) / len(values)) < 0.05
