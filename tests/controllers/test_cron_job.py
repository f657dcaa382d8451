"""Tests of the CronJob controller."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from steersman.api.batch.v1 import CronJob, CronJobSpec, CronJobStatus, Job, JobCondition, JobSpec, JobTemplateSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.resources import CRON_JOBS, EVENTS, JOBS
from steersman.controllers import cron_job as controller
from steersman.controllers.cron_job import CronJobController, MissedTimes, missed_times
from steersman.machinery.cron.schedules import Schedule, ScheduleError, parse_schedule
from steersman.machinery.values import times
from tests.controllers.kubelet import template
from tests.controllers.waiting import Run, eventually

NEW_YEAR = times.unix(f"{times.now()[:4]}-01-01T00:00:00Z")


async def create_old(client: Client, name: str = "c", **spec: Any) -> None:
    """Create a CronJob that has not been reconciled for years."""
    spec.setdefault("schedule", "@yearly")
    job = JobTemplateSpec(
        metadata=ObjectMeta(labels={"a": "b"}), spec=JobSpec(template=template(restart_policy="Never"))
    )
    given = CronJobSpec(job_template=job, suspend=True, **spec)
    await client.create(CRON_JOBS, CronJob(metadata=ObjectMeta(name=name, namespace="default"), spec=given))
    await reset_last_schedule(client, name)


async def reset_last_schedule(client: Client, name: str = "c") -> None:
    """Make the controller look at the last years once more."""
    status = {"status": {"lastScheduleTime": "2020-01-01T00:00:00Z"}}
    await client.patch(CRON_JOBS, name, "default", {"spec": {"suspend": True}})
    await client.patch(CRON_JOBS, name, "default", status, subresource="status")
    await client.patch(CRON_JOBS, name, "default", {"spec": {"suspend": False}})


async def get_cron_job(client: Client) -> CronJob:
    return await client.get(CRON_JOBS, "c", "default")


async def jobs(client: Client) -> list[Job]:
    return (await client.list(JOBS, "default")).items


async def active_jobs(client: Client) -> list[str]:
    return [each.name for each in (await get_cron_job(client)).status.active]


async def message_of_event(client: Client, reason: str) -> str:
    found = [each.message for each in (await client.list(EVENTS, "default")).items if each.reason == reason]
    return found[0] if found else ""


async def finish(client: Client, job: Job) -> None:
    job.status.start_time = job.status.completion_time = times.now()
    job.status.conditions = [
        JobCondition(type=each, status="True", last_transition_time=times.now())
        for each in ("SuccessCriteriaMet", "Complete")
    ]
    await client.update_status(JOBS, job)


async def test_the_last_time_that_was_missed_is_made_up_for(run: Run) -> None:
    client = await run(CronJobController)
    await create_old(client)
    name = f"c-{NEW_YEAR // 60}"
    await eventually(lambda: active_jobs(client))
    (job,) = await jobs(client)
    assert job.metadata.name == name
    assert job.metadata.labels["a"] == "b"
    annotation = job.metadata.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert times.unix(annotation) == NEW_YEAR
    assert (await get_cron_job(client)).status.last_schedule_time == annotation
    assert await eventually(lambda: message_of_event(client, "SuccessfulCreate")) == f"Created job {name}"
    await finish(client, job)

    async def is_inactive() -> bool:
        status = (await get_cron_job(client)).status
        return not status.active and bool(status.last_successful_time)

    await eventually(is_inactive)
    expected = f"Saw completed job: {name}, condition: Complete"
    assert await eventually(lambda: message_of_event(client, "SawCompletedJob")) == expected


async def test_times_are_those_of_the_zone(run: Run) -> None:
    client = await run(CronJobController)
    await create_old(client, schedule="30 12 1 1 *", time_zone="America/New_York")
    (job,) = await eventually(lambda: jobs(client))
    annotation = job.metadata.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert annotation.endswith("-01-01T12:30:00-05:00")


async def test_a_job_that_runs_forbids_another(run: Run) -> None:
    client = await run(CronJobController)
    await create_old(client, concurrency_policy="Forbid")
    await eventually(lambda: active_jobs(client))
    await client.patch(CRON_JOBS, "c", "default", {"spec": {"suspend": True, "schedule": "0 0 2 1 *"}})
    await reset_last_schedule(client)
    text = "Not starting job because prior execution is running and concurrency policy is Forbid"
    assert await eventually(lambda: message_of_event(client, "JobAlreadyActive")) == text
    assert len(await jobs(client)) == 1


async def test_a_job_that_runs_is_replaced(run: Run) -> None:
    client = await run(CronJobController)
    await create_old(client, concurrency_policy="Replace")
    (first,) = await eventually(lambda: active_jobs(client))
    await client.patch(CRON_JOBS, "c", "default", {"spec": {"suspend": True, "schedule": "0 0 2 1 *"}})
    await reset_last_schedule(client)

    async def replaced() -> bool:
        found = await active_jobs(client)
        return len(found) == 1 and found != [first] and [job.metadata.name for job in await jobs(client)] == found

    await eventually(replaced)


async def test_old_jobs_go_when_the_history_is_full(run: Run) -> None:
    client = await run(CronJobController)
    await create_old(client, successful_jobs_history_limit=0)
    (job,) = await eventually(lambda: jobs(client))
    await finish(client, job)

    async def are_deleted() -> bool:
        return not await jobs(client)

    await eventually(are_deleted)


async def test_a_long_schedule_is_read_once_and_beside_the_loop(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[str, bool]] = []

    def noted(text: str) -> Schedule:
        read.append((text, threading.current_thread() is threading.main_thread()))
        return parse_schedule(text)

    monkeypatch.setattr(controller, "parse_schedule", noted)
    client = await run(CronJobController)
    long = "0," * 1000 + "0 0 1 1 *"
    await create_old(client, schedule=long, time_zone="Etc/UTC")
    await eventually(lambda: active_jobs(client))
    assert read == [(f"TZ=Etc/UTC {long}", False)]


async def test_what_has_come_of_a_new_schedule_is_not_made_up_for(run: Run) -> None:
    client = await run(CronJobController)
    await create_old(client, schedule="0 0 30 2 *")
    await eventually(lambda: message_of_event(client, "InvalidSchedule"))
    await client.patch(CRON_JOBS, "c", "default", {"spec": {"schedule": "@yearly"}})
    await create_old(client, "later")
    assert [each.metadata.name for each in await eventually(lambda: jobs(client))] == [f"later-{NEW_YEAR // 60}"]


async def test_a_schedule_that_never_comes_is_told_of(run: Run) -> None:
    client = await run(CronJobController)
    await create_old(client, schedule="0 0 30 2 *")
    text = "invalid schedule: 0 0 30 2 * : time difference between two schedules is less than 1 second"
    assert await eventually(lambda: message_of_event(client, "InvalidSchedule")) == text


def cron_job(last: str, deadline: int | None = None) -> CronJob:
    spec = CronJobSpec(starting_deadline_seconds=deadline)
    return CronJob(spec=spec, status=CronJobStatus(last_schedule_time=last))


@pytest.mark.parametrize(
    ("now", "missed"),
    [
        ("2024-01-01T00:30:00Z", None),
        ("2024-01-01T01:30:00Z", ("2024-01-01T01:00:00Z", 0)),
        ("2024-01-01T05:30:00Z", ("2024-01-01T05:00:00Z", 5)),
        ("2024-01-08T00:00:00Z", ("2024-01-08T00:00:00Z", 168)),
    ],
)
def test_times_that_have_come_are_counted(now: str, missed: tuple[str, int] | None) -> None:
    last = "2024-01-01T00:00:00Z"
    found = missed_times(cron_job(last), parse_schedule("@hourly"), times.unix(now), with_deadline=True)
    expected = (times.unix(missed[0]), missed[1]) if missed else (None, 0)
    assert found == MissedTimes(times.unix(last), *expected)


def test_a_deadline_bounds_how_far_back_is_looked() -> None:
    now = times.unix("2024-01-08T00:10:00Z")
    schedule = parse_schedule("@hourly")
    last = cron_job("2024-01-01T00:00:00Z", 600)
    assert missed_times(last, schedule, now, with_deadline=True).last is None
    assert missed_times(last, schedule, now, with_deadline=False).count == 168
    with pytest.raises(ScheduleError):
        missed_times(last, parse_schedule("0 0 30 2 *"), now, with_deadline=True)
