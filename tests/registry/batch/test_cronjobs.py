"""CronJobs, their schedules and time zones."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.machinery.cron.schedules import ScheduleError, check_schedule, check_time_zone
from steersman.registry.batch.cronjobs import CRON_JOBS


def cron_job(**spec: Any) -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "nginx"}]}
    template = {"spec": {"template": {"spec": pod}}}
    return {"metadata": {"name": "c"}, "spec": {"schedule": "* * * * *", "jobTemplate": template, **spec}}


@pytest.mark.parametrize(
    "schedule",
    [
        "* * * * *",
        "*/5 0-6 1,15 jan-MAR sun",
        "0 0 ? * 6",
        "@daily",
        "@every 1h30m",
        "5/10 * * * *",
        "TZ=UTC 1 2 3 4 5",
    ],
)
def test_schedules_of_crontab_are_understood(schedule: str) -> None:
    check_schedule(schedule)


@pytest.mark.parametrize(
    ("schedule", "error"),
    [
        ("bad", "expected exactly 5 fields, found 1: [bad]"),
        ("61 * * * *", "end of range (61) above maximum (59): 61"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("9-3 * * * *", "beginning of range (9) beyond end of range (3): 9-3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        ("@never", "unrecognized descriptor: @never"),
        ("TZ=Mars 1 2 3 4 5", "provided bad location Mars: unknown time zone Mars"),
    ],
)
def test_other_schedules_are_refused(schedule: str, error: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        check_schedule(schedule)
    assert str(caught.value) == error


@given(st.text(max_size=40))
def test_any_text_is_a_schedule_or_refused(text: str) -> None:
    with suppress(ScheduleError):
        check_schedule(text)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../etc/passwd", "-x", "a b", "", "a" * 15])
def test_unknown_time_zones_are_refused(zone: str) -> None:
    with pytest.raises(ScheduleError, match="unknown time zone"):
        check_time_zone(zone)


async def test_a_cron_job_is_refused_for_each_thing_that_is_wrong(cluster: Callable[..., Any]) -> None:
    c = await cluster(CRON_JOBS)
    wrong = cron_job(
        schedule="CRON_TZ=UTC * * * * *", timeZone="Local", concurrencyPolicy="Odd", failedJobsHistoryLimit=-1
    )
    wrong["spec"]["jobTemplate"]["spec"]["manualSelector"] = True
    assert await c.faults(c.create("cronjobs", wrong, group="batch")) == [
        'spec.schedule: Invalid value: "CRON_TZ=UTC * * * * *": '
        "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
        'spec.timeZone: Invalid value: "Local": '
        "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
        'spec.concurrencyPolicy: Unsupported value: "Odd": supported values: "Allow", "Forbid", "Replace"',
        'spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false"',
        "spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0",
    ]


async def test_runs_may_overlap_and_few_are_kept_by_default(cluster: Callable[..., Any]) -> None:
    c = await cluster(CRON_JOBS)
    spec = (await c.create("cronjobs", cron_job(), group="batch"))["spec"]
    kept = (spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"])
    assert (spec["concurrencyPolicy"], spec["suspend"], *kept) == ("Allow", False, 3, 1)
    assert "selector" not in spec["jobTemplate"]["spec"]


async def test_the_name_leaves_room_for_those_of_jobs(cluster: Callable[..., Any]) -> None:
    c = await cluster(CRON_JOBS)
    body = cron_job()
    body["metadata"]["name"] = "a" * 53
    (fault,) = await c.faults(c.create("cronjobs", body, group="batch"))
    assert fault.endswith("must be no more than 52 characters")
