"""Tests of a Job's back-off."""

from __future__ import annotations

import pytest

from steersman.api.core.v1 import Pod, PodCondition
from steersman.api.meta.v1 import ObjectMeta
from steersman.controllers.job.backoff import Failures, finish_time, seconds_left
from steersman.machinery.values import times

DAY = "2024-01-01T00:{:02d}:00Z"


def pod_ended_at(minute: int) -> Pod:
    pod = Pod(metadata=ObjectMeta(creation_timestamp="2024-01-01T00:00:00Z"))
    pod.status.conditions = [PodCondition(type="Ready", status="False", last_transition_time=DAY.format(minute))]
    return pod


@pytest.mark.parametrize(("failures", "seconds"), [(0, 0), (1, 10), (2, 20), (3, 40), (7, 600), (100, 600)])
def test_the_wait_doubles_up_to_ten_minutes(failures: int, seconds: int) -> None:
    assert seconds_left(failures, 1000, 1000) == seconds
    assert seconds_left(failures, 1000, 1000 + seconds) == 0


def test_failures_count_from_the_last_success_on() -> None:
    failures = Failures().after([], [pod_ended_at(1), pod_ended_at(3)])
    assert failures == Failures(2, times.unix(DAY.format(3)))
    assert failures.after([], []) == failures
    assert failures.after([pod_ended_at(5)], [pod_ended_at(4), pod_ended_at(6)]) == Failures(
        1, times.unix(DAY.format(6))
    )
    assert failures.after([pod_ended_at(5)], []) == Failures()


def test_the_end_of_a_pod_is_that_of_its_deletion_if_nothing_else_is_known() -> None:
    metadata = ObjectMeta(deletion_timestamp=DAY.format(2), deletion_grace_period_seconds=30)
    assert finish_time(Pod(metadata=metadata)) == times.unix(DAY.format(2)) - 30
