"""Jobs that do not finish, and CronJobs that do not start jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from steersman.api.batch.v1 import CronJob, Job
from steersman.client.api_resource import APIResource
from steersman.client.resources import CRON_JOBS, JOBS
from steersman.explain.commands import kubectl, patch, why
from steersman.explain.explainer import Explainer
from steersman.explain.finding import Finding, Suggestion, at_condition, at_field, error, note, reference, warning
from steersman.explain.owned import creation_failures, owned_by, owned_pods
from steersman.explain.pod_problems import problems_of
from steersman.explain.warnings import age_of
from steersman.explain.world import World
from steersman.machinery.cron.schedules import Schedule, ScheduleError, check_time_zone, parse_schedule
from steersman.machinery.values.conditions import find_condition
from steersman.machinery.values.times import format_time, human_duration, unix

_LATE: Final = 120.0
"""Seconds after a scheduled time at which a job should have been started."""
_FAILURES: Final = {
    "BackoffLimitExceeded": ".spec.backoffLimit",
    "DeadlineExceeded": ".spec.activeDeadlineSeconds",
    "PodFailurePolicy": ".spec.podFailurePolicy",
    "FailedIndexes": ".spec.backoffLimitPerIndex",
    "MaxFailedIndexesExceeded": ".spec.maxFailedIndexes",
}
"""Reasons of failed jobs, and the fields that set their limits."""


def _completions(job: Job) -> str:
    return "" if job.spec.completions is None else f" of {job.spec.completions}"


def _summarize(job: Job) -> str:
    status = job.status
    ended = next((each.type for each in status.conditions if each.status == "True" and each.type in _ENDS), None)
    state = ended or ("Suspended" if job.spec.suspend else "Running")
    return f"{state}, {status.succeeded}{_completions(job)} succeeded, {status.failed} failed, {status.active} active"


_ENDS: Final = ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet")


def job_fault(job: Job) -> str:
    """Return the reason why a Job is unhealthy, "" if it is not."""
    failed = find_condition(job.status.conditions, "Failed")
    if failed is not None and failed.status == "True":
        return f"failed: {failed.reason}: {failed.message}"
    if job.status.failed and not job.status.completion_time:
        return f"{job.status.failed} pods have failed"
    return ""


async def _check_state(_: World, resource: APIResource[Any], job: Job) -> AsyncIterator[Finding]:
    subject, spec = reference(resource, job), job.spec
    failed = find_condition(job.status.conditions, "Failed")
    if failed is not None and failed.status == "True":
        evidence = [at_condition(subject, failed)]
        if field := _FAILURES.get(failed.reason):
            evidence.append(at_field(subject, field, _limit(job, field)))
        logs = kubectl("logs", f"job/{job.metadata.name}", namespace=subject.namespace)
        text = f"failed for good: {failed.reason}: {failed.message}"
        yield error(failed.reason or "JobFailed", text, *evidence, suggestions=(Suggestion("read the logs", logs),))
    if spec.suspend:
        resume = patch("resume it", subject, {"spec": {"suspend": False}})
        text = "it is suspended: it starts no pods"
        yield warning("Suspended", text, at_field(subject, ".spec.suspend", value=True), suggestions=(resume,))
    if spec.parallelism == 0:
        yield warning("NoParallelism", "parallelism is 0: it starts no pods", at_field(subject, ".spec.parallelism", 0))
    if spec.managed_by and spec.managed_by != "kubernetes.io/job-controller":
        text = f"it is managed by {spec.managed_by}, not by the job controller"
        yield note("ManagedBy", text, at_field(subject, ".spec.managedBy", spec.managed_by))


def _limit(job: Job, field: str) -> Any:
    return {
        ".spec.backoffLimit": job.spec.backoff_limit,
        ".spec.activeDeadlineSeconds": job.spec.active_deadline_seconds,
        ".spec.podFailurePolicy": job.spec.pod_failure_policy,
        ".spec.backoffLimitPerIndex": job.spec.backoff_limit_per_index,
        ".spec.maxFailedIndexes": job.spec.max_failed_indexes,
    }[field]


async def _check_pods(world: World, resource: APIResource[Any], job: Job) -> AsyncIterator[Finding]:
    for each in problems_of(await owned_pods(world, job)):
        yield each
    if job.status.completion_time or any(each.type == "Failed" for each in job.status.conditions):
        return
    subject = reference(resource, job)
    limit = job.spec.backoff_limit
    if job.status.failed and limit is not None:
        text = f"{job.status.failed} pods have failed; the job fails after more than {limit}"
        yield note(
            "Backoff",
            text,
            at_field(subject, ".status.failed", job.status.failed),
            at_field(subject, ".spec.backoffLimit", limit),
        )
    if not job.status.active and not job.spec.suspend:
        for each in await creation_failures(world, resource, job):
            yield each


JOB: Final = Explainer(JOBS, _summarize, (_check_state, _check_pods), job_fault)


def _summarize_cron(cron_job: CronJob) -> str:
    zone = f" ({cron_job.spec.time_zone})" if cron_job.spec.time_zone else ""
    state = "suspended" if cron_job.spec.suspend else f"{len(cron_job.status.active)} active"
    last = cron_job.status.last_schedule_time or "never"
    return f"schedule {cron_job.spec.schedule}{zone}, {state}, last scheduled {last}"


def _schedule_of(cron_job: CronJob) -> Schedule:
    """Return the schedule in its time zone. Raises ScheduleError."""
    zone = cron_job.spec.time_zone
    if zone:
        check_time_zone(zone)
    return parse_schedule(f"TZ={zone} {cron_job.spec.schedule}" if zone else cron_job.spec.schedule)


def cron_job_fault(cron_job: CronJob) -> str:
    """Return the reason why a CronJob is unhealthy, "" if it is not."""
    try:
        _schedule_of(cron_job)
    except ScheduleError as problem:
        return f"invalid schedule: {problem}"
    return ""


async def _check_schedule(world: World, resource: APIResource[Any], cron_job: CronJob) -> AsyncIterator[Finding]:
    subject, spec = reference(resource, cron_job), cron_job.spec
    if spec.suspend:
        resume = patch("resume it", subject, {"spec": {"suspend": False}})
        text = "it is suspended: it starts no jobs"
        yield warning("Suspended", text, at_field(subject, ".spec.suspend", value=True), suggestions=(resume,))
        return
    evidence = [at_field(subject, ".spec.schedule", spec.schedule)]
    if spec.time_zone:
        evidence.append(at_field(subject, ".spec.timeZone", spec.time_zone))
    try:
        schedule = _schedule_of(cron_job)
    except ScheduleError as problem:
        yield error("InvalidSchedule", f"the schedule cannot be used: {problem}", *evidence)
        return
    following = schedule.next(int(world.now))
    if following is None:
        yield error("NeverScheduled", "the schedule has no time within five years", *evidence)
        return
    moment = format_time(datetime.fromtimestamp(following, UTC))
    zone = f" by the clock of {spec.time_zone}" if spec.time_zone else " by the clock of kube-controller-manager"
    yield note("NextTime", f"the next time is {moment}, in {human_duration(following - world.now)},{zone}", *evidence)
    for each in _missed(world, cron_job, schedule):
        yield each


def _missed(world: World, cron_job: CronJob, schedule: Schedule) -> Sequence[Finding]:
    """Return the finding that the last scheduled time has passed without a job."""
    subject = reference(CRON_JOBS, cron_job)
    try:
        since = unix(cron_job.status.last_schedule_time or cron_job.metadata.creation_timestamp or "")
    except ValueError:
        return ()
    due = schedule.next(since)
    if due is None or world.now - due < _LATE or _is_blocked(cron_job):
        return ()
    at_last = at_field(subject, ".status.lastScheduleTime", cron_job.status.last_schedule_time)
    deadline = cron_job.spec.starting_deadline_seconds
    at_deadline = at_field(subject, ".spec.startingDeadlineSeconds", deadline)
    text = f"the time {format_time(datetime.fromtimestamp(due, UTC))} has passed without a job"
    if deadline is not None and deadline < 10:
        text += f": startingDeadlineSeconds is {deadline}, and the controller looks every 10 s"
    elif deadline is not None and world.now - due > deadline:
        text += f", by more than startingDeadlineSeconds ({deadline})"
    return (warning("MissedTime", text, at_last, at_deadline),)


def _is_blocked(cron_job: CronJob) -> bool:
    return cron_job.spec.concurrency_policy == "Forbid" and bool(cron_job.status.active)


async def _check_jobs(world: World, resource: APIResource[Any], cron_job: CronJob) -> AsyncIterator[Finding]:
    subject = reference(resource, cron_job)
    jobs = owned_by(cron_job, await world.list(JOBS, cron_job.metadata.namespace))
    if _is_blocked(cron_job):
        names = ", ".join(each.name for each in cron_job.status.active[:3])
        active = [each for each in jobs if each.metadata.name == cron_job.status.active[0].name]
        since = age_of(world, active[0].status.start_time) if active else None
        age = "" if since is None else f", for {human_duration(since)}"
        yield warning(
            "ConcurrencyForbidden",
            f"no job starts while {names} runs{age} (concurrencyPolicy Forbid)",
            at_field(subject, ".status.active", [each.name for each in cron_job.status.active]),
            at_field(subject, ".spec.concurrencyPolicy", "Forbid"),
            suggestions=tuple(Suggestion("look at the job", why(reference(JOBS, each))) for each in active),
        )
    newest = max(jobs, key=lambda each: each.metadata.creation_timestamp or "", default=None)
    if newest is not None and (fault := job_fault(newest)):
        of_job = reference(JOBS, newest)
        yield error(
            "LastJobFailed",
            f"the last job, {newest.metadata.name}, {fault}",
            at_field(of_job, ".status.failed", newest.status.failed),
            suggestions=(Suggestion("look at the job", why(of_job)),),
        )


CRON_JOB: Final = Explainer(CRON_JOBS, _summarize_cron, (_check_schedule, _check_jobs), cron_job_fault)
