"""Conditions of statuses."""

from __future__ import annotations

import pytest

from steersman.api.core.v1 import PodCondition
from steersman.machinery.values import conditions, times

OLD = "2020-01-01T00:00:00Z"


def of(type_: str, status: str, time: str | None = OLD, reason: str = "") -> PodCondition:
    return PodCondition(type=type_, status=status, last_transition_time=time, reason=reason)


def test_the_time_changes_with_the_status_only() -> None:
    before = [of("Ready", "False"), of("Other", "True")]
    same = conditions.with_condition(before, of("Ready", "False", None, "New"))
    assert [(each.type, each.reason, each.last_transition_time) for each in same] == [
        ("Ready", "New", OLD),
        ("Other", "", OLD),
    ]
    changed = conditions.with_condition(before, of("Ready", "True", None))
    assert times.parse(changed[0].last_transition_time or "").year > 2020
    assert [each.status for each in before] == ["False", "True"]


def test_a_new_condition_stands_at_the_end_with_its_own_time() -> None:
    (first, last) = conditions.with_condition([of("Ready", "False")], of("Other", "True", "2021-01-01T00:00:00Z"))
    assert (first.type, last.type, last.last_transition_time) == ("Ready", "Other", "2021-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("given", "expected"), [([], False), ([of("Ready", "Unknown")], False), ([of("Ready", "True")], True)]
)
def test_a_condition_is_true_if_it_says_so(given: list[PodCondition], expected: bool) -> None:
    assert conditions.is_condition_true(given, "Ready") is expected
    assert conditions.without_conditions(given, "Ready") == []
