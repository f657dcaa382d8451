"""Controller of CronJobs: it creates Jobs at the scheduled times (pkg/controller/cronjob)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from email.utils import format_datetime
from typing import Final
from zoneinfo import ZoneInfo

from msgspec import Struct

from steersman.api.batch.v1 import CronJob, Job
from steersman.api.core.v1 import ObjectReference
from steersman.api.meta.v1 import DeleteOptions, ObjectMeta
from steersman.client.errors import is_already_exists, is_namespace_terminating
from steersman.client.events import reference
from steersman.client.informer import Key, key_of, new_or_old
from steersman.client.resources import CRON_JOBS, JOBS
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.controllers.job.state import finished
from steersman.controllers.workloads.controller_ref import (
    add_controller_index,
    controlled_by,
    controller_of,
    is_controlled_by,
    new_controller_ref,
    resolve,
)
from steersman.controllers.workloads.copies import mutable_copy
from steersman.machinery.cron.schedules import Schedule, ScheduleError, check_time_zone, parse_schedule
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times
from steersman.work.offloading import offload_if
from steersman.work.work_queue import TryLater

_SCHEDULED_AT: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_SLACK: Final = 0.1
"""Seconds after a scheduled time when the CronJob is reconciled."""
_TOO_MANY_MISSED: Final = 100
"""Number of missed times above which a warning event is recorded."""


_MAX_INLINE: Final = 1000
"""Longest schedule in characters that is parsed on the event loop; it takes less than a millisecond."""


class _ParsedSchedule(Struct, frozen=True):
    """A long schedule text with its time zone, and its parsed schedule or error."""

    text: str
    found: Schedule | ScheduleError


class MissedTimes(Struct, frozen=True):
    """Scheduled times that have passed.

    `since` is the start of the period in seconds since 1970, `last` the latest scheduled time in it (None if there is
    none), `count` the number of scheduled times in it if there are several.
    """

    since: int
    last: int | None = None
    count: int = 0


class CronJobController(Controller[Key]):
    """Creates and cleans up Jobs of CronJobs. A key is the namespace and name of a CronJob."""

    name = "cronjob-controller"
    account = "cronjob-controller"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._cron_jobs = self.informers.for_resource(CRON_JOBS)
        self._jobs = self.informers.for_resource(JOBS)
        self._schedules: dict[Key, _ParsedSchedule] = {}
        """Parsed schedules of CronJobs whose schedule text is long."""
        self._rescheduled: set[Key] = set()
        """CronJobs whose schedule or time zone has changed since their last reconciliation."""
        add_controller_index(self._jobs)
        self._cron_jobs.on_change(self._changed)
        self._jobs.on_change(self._job_changed)

    def _changed(self, old: CronJob | None, new: CronJob | None) -> None:
        key = key_of(new_or_old(old, new))
        if new is None:
            self._schedules.pop(key, None)
            self._rescheduled.discard(key)
        elif old is not None and _timing(old) != _timing(new):
            self._rescheduled.add(key)
        self.queue.add(key)

    def _job_changed(self, old: Job | None, new: Job | None) -> None:
        for each in (old, new):
            if each is not None:
                owner = resolve(self._cron_jobs, each.metadata.namespace, controller_of(each))
                if owner is not None:
                    self.queue.add(key_of(owner))

    async def sync(self, key: Key) -> None:
        cached = self._cron_jobs.get(*key)
        if cached is None:
            return
        cron_job = mutable_copy(cached)
        jobs = controlled_by(self._jobs, cached.metadata.uid)
        error: StatusError | TryLater | None = None
        seconds: float | None = None
        await self._clean_up(cron_job, jobs)
        try:
            await self._update_active_jobs(cron_job, jobs)
            if key in self._rescheduled:
                seconds = await self._until_next(cron_job)
                self._rescheduled.discard(key)
            else:
                seconds = await self._start_due_job(cron_job)
        except (StatusError, TryLater) as failure:
            error = failure
        if cron_job.status != cached.status:
            await self.client.update_status(CRON_JOBS, cron_job)
        if error is not None:
            raise error
        if seconds is not None:
            self.queue.add_after(key, seconds)

    async def _clean_up(self, cron_job: CronJob, jobs: Sequence[Job]) -> None:
        """Delete the oldest finished Jobs beyond the history limits."""
        spec = cron_job.spec
        limits = (("Complete", spec.successful_jobs_history_limit), ("Failed", spec.failed_jobs_history_limit))
        for type_, limit in limits:
            ended = sorted(
                (job for job in jobs if (end := finished(job)) is not None and end.type == type_), key=_start_key
            )
            for job in ended[: max(len(ended) - limit, 0)] if limit is not None else ():
                await self._delete(cron_job, job)

    async def _delete(self, cron_job: CronJob, job: Job) -> bool:
        name, background = job.metadata.name, DeleteOptions(propagation_policy="Background")
        try:
            await self.client.delete(JOBS, name, job.metadata.namespace, background)
        except StatusError as error:
            self._record_event(cron_job, "Warning", "FailedDelete", f"Deleted job: {error}")
            return False
        _remove_active(cron_job, job.metadata.uid)
        self._record_event(cron_job, "Normal", "SuccessfulDelete", f"Deleted job {name}")
        return True

    async def _update_active_jobs(self, cron_job: CronJob, jobs: Sequence[Job]) -> None:
        """Update the status's list of active Jobs from the Jobs that exist."""
        status = cron_job.status
        for job in jobs:
            is_listed, end = _is_active(cron_job, job.metadata.uid), finished(job)
            if end is None:
                if not is_listed:
                    await self._warn_of_unlisted_job(cron_job, job)
                continue
            if is_listed:
                _remove_active(cron_job, job.metadata.uid)
                text = f"Saw completed job: {job.metadata.name}, condition: {end.type}"
                self._record_event(cron_job, "Normal", "SawCompletedJob", text)
            ended = job.status.completion_time
            if end.type == "Complete" and ended and ended > (status.last_successful_time or ""):
                status.last_successful_time = ended
        cached = {job.metadata.uid for job in jobs}
        for each in [each for each in status.active if each.uid not in cached]:
            if await self.client.find(JOBS, each.name, each.namespace) is None:
                self._record_event(cron_job, "Normal", "MissingJob", f"Active job went missing: {each.name}")
                _remove_active(cron_job, each.uid)

    async def _warn_of_unlisted_job(self, cron_job: CronJob, job: Job) -> None:
        fresh = await self.client.get(CRON_JOBS, cron_job.metadata.name, cron_job.metadata.namespace)
        if not _is_active(fresh, job.metadata.uid):
            text = f"Saw a job that the controller did not create or forgot: {job.metadata.name}"
            self._record_event(cron_job, "Warning", "UnexpectedJob", text)

    async def _until_next(self, cron_job: CronJob) -> float | None:
        """Return the seconds until the next time of a changed schedule, None if the schedule cannot be parsed.

        Times before now are skipped: no Job is created for a time that had passed when the schedule changed.
        """
        try:
            schedule = await self._schedule_of(cron_job)
        except ScheduleError:
            text = f"unparseable schedule for cronjob: {_shortened(cron_job.spec.schedule)}"
            self._record_event(cron_job, "Warning", "UnParseableCronJobSchedule", text)
            return None
        return _seconds_to_next(cron_job, schedule, _now())

    async def _start_due_job(self, cron_job: CronJob) -> float | None:
        """Create the Job that is due, if any. Return the seconds until the next scheduled time, None if none is
        expected.
        """
        spec = cron_job.spec
        zone = self._zone(cron_job)
        if cron_job.metadata.deletion_timestamp or zone is None or spec.suspend:
            return None
        schedule = await self._schedule(cron_job)
        if schedule is None:
            return None
        now = _now()
        try:
            missed = missed_times(cron_job, schedule, int(now), with_deadline=True)
        except ScheduleError as error:
            self._record_event(
                cron_job, "Warning", "InvalidSchedule", f"invalid schedule: {_shortened(spec.schedule)} : {error}"
            )
            return None
        scheduled = missed.last
        if scheduled is not None and missed.count > _TOO_MANY_MISSED:
            text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            self._record_event(cron_job, "Warning", "TooManyMissedTimes", text)
        if scheduled is not None and self._may_start(cron_job, scheduled, now):
            await self._replace(cron_job)
            if not await self._create(cron_job, scheduled, zone):
                return None
        return _seconds_to_next(cron_job, schedule, now)

    def _zone(self, cron_job: CronJob) -> tzinfo | None:
        """Return the time zone of a CronJob, None (with a warning event) if the zone does not exist."""
        name = cron_job.spec.time_zone
        if not name:
            return UTC
        try:
            check_time_zone(name)
        except ScheduleError as error:
            self._record_event(cron_job, "Warning", "UnknownTimeZone", f"invalid timeZone: {quote(name)}: {error}")
            return None
        return ZoneInfo(name)

    async def _schedule(self, cron_job: CronJob) -> Schedule | None:
        text = cron_job.spec.schedule
        if "TZ" in text:
            warning = (
                f"CRON_TZ or TZ used in schedule {quote(_shortened(text))} is not officially supported, see "
                "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
            )
            self._record_event(cron_job, "Warning", "UnsupportedSchedule", warning)
        try:
            return await self._schedule_of(cron_job)
        except ScheduleError as error:
            problem = f"unparseable schedule: {quote(_shortened(text))} : {_shortened(str(error))}"
            self._record_event(cron_job, "Warning", "UnparseableSchedule", problem)
            return None

    async def _schedule_of(self, cron_job: CronJob) -> Schedule:
        """Return the parsed schedule. A long text is parsed once, in a worker thread. Raises ScheduleError."""
        text = _schedule_text(cron_job)
        if len(text) <= _MAX_INLINE:
            return parse_schedule(text)
        key, cached = key_of(cron_job), self._schedules.get(key_of(cron_job))
        if cached is None or cached.text != text:
            cached = _ParsedSchedule(text, await offload_if(True, _schedule_or_error, text))
            if self._cron_jobs.get(*key) is not None:
                self._schedules[key] = cached
        if isinstance(cached.found, ScheduleError):
            raise cached.found
        return cached.found

    def _may_start(self, cron_job: CronJob, scheduled: int, now: float) -> bool:
        """Return True if the Job of this time is still to be created and the concurrency policy allows it."""
        spec, status = cron_job.spec, cron_job.status
        deadline = spec.starting_deadline_seconds
        if deadline is not None and scheduled + deadline < now:
            moment = format_datetime(datetime.fromtimestamp(scheduled, UTC))
            self._record_event(cron_job, "Warning", "MissSchedule", f"Missed scheduled time to start a job: {moment}")
            return False
        name, last = _name_of_job(cron_job, scheduled), status.last_schedule_time
        if (last and times.unix(last) == scheduled) or any(each.name == name for each in status.active):
            return False
        if spec.concurrency_policy == "Forbid" and status.active:
            text = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._record_event(cron_job, "Normal", "JobAlreadyActive", text)
            return False
        return True

    async def _replace(self, cron_job: CronJob) -> None:
        """Delete the active Jobs if the concurrency policy is Replace."""
        if cron_job.spec.concurrency_policy != "Replace":
            return
        for each in list(cron_job.status.active):
            try:
                job = await self.client.get(JOBS, each.name, each.namespace)
            except StatusError as error:
                self._record_event(cron_job, "Warning", "FailedGet", f"Get job: {error}")
                raise
            if not await self._delete(cron_job, job):
                raise TryLater(f"could not replace job {each.namespace}/{each.name}")

    async def _create(self, cron_job: CronJob, scheduled: int, zone: tzinfo) -> bool:
        """Create the Job of a scheduled time. Return True if it is the CronJob's and was not in the active list before."""
        desired = _job_of(cron_job, scheduled, zone)
        try:
            job = await self.client.create(JOBS, desired)
        except StatusError as error:
            if not is_already_exists(error):
                if not is_namespace_terminating(error):
                    self._record_event(cron_job, "Warning", "FailedCreate", f"Error creating job: {error}")
                raise
            job = await self.client.get(JOBS, desired.metadata.name, desired.metadata.namespace)
            if not is_controlled_by(job, cron_job) or _is_active(cron_job, job.metadata.uid):
                return False
        else:
            self._record_event(cron_job, "Normal", "SuccessfulCreate", f"Created job {job.metadata.name}")
        status = cron_job.status
        status.active = [*status.active, reference(JOBS, job)]
        status.last_schedule_time = times.format_time(datetime.fromtimestamp(scheduled, UTC))
        return True

    def _record_event(self, cron_job: CronJob, type_: str, reason: str, message: str) -> None:
        self.recorder.event(reference(CRON_JOBS, cron_job), type_, reason, message)


def _schedule_or_error(text: str) -> Schedule | ScheduleError:
    try:
        return parse_schedule(text)
    except ScheduleError as error:
        return error


def _shortened(text: str) -> str:
    """Return a text of a CronJob for an event, shortened to 1,000 characters."""
    return text if len(text) <= _MAX_INLINE else f"{text[:_MAX_INLINE]}..."


def _now() -> float:
    return times.parse(times.now_micro()).timestamp()


def _timing(cron_job: CronJob) -> tuple[str, str | None]:
    return cron_job.spec.schedule, cron_job.spec.time_zone


def _schedule_text(cron_job: CronJob) -> str:
    """Return the schedule, preceded by the time zone if that exists."""
    schedule, zone = _timing(cron_job)
    if "TZ" in schedule or not zone:
        return schedule
    try:
        check_time_zone(zone)
    except ScheduleError:
        return schedule
    return f"TZ={zone} {schedule}"


def missed_times(cron_job: CronJob, schedule: Schedule, now: int, *, with_deadline: bool) -> MissedTimes:
    """Return the scheduled times from the last one in the status up to `now`, in seconds since 1970.

    `with_deadline` leaves out times that are past the starting deadline. Raises ScheduleError for a schedule without
    two future times.
    """
    since = times.unix(cron_job.status.last_schedule_time or cron_job.metadata.creation_timestamp or times.now())
    deadline = cron_job.spec.starting_deadline_seconds
    if with_deadline and deadline is not None:
        since = max(since, now - deadline)
    first = schedule.next(since)
    second = None if first is None else schedule.next(first)
    if first is None or second is None:
        raise ScheduleError("time difference between two schedules is less than 1 second")
    if now < first:
        return MissedTimes(since)
    if now < second:
        return MissedTimes(since, first)
    between = second - first
    count = (now - first) // between + 1
    last, missed = schedule.next(first + (count - 2) * between), None
    while last is not None and last <= now:
        last, missed = schedule.next(last), last
    return MissedTimes(since, missed, count)


def _seconds_to_next(cron_job: CronJob, schedule: Schedule, now: float) -> float:
    """Return the seconds until the next scheduled time, with a little slack."""
    try:
        missed = missed_times(cron_job, schedule, int(now), with_deadline=False)
    except ScheduleError:
        base = int(now)
    else:
        base = missed.last if missed.last is not None else int(now) if missed.count else missed.since
    following = schedule.next(base)
    return max((following or base) + _SLACK - now, _SLACK)


def _name_of_job(cron_job: CronJob, scheduled: int) -> str:
    return f"{cron_job.metadata.name}-{scheduled // 60}"


def _job_of(cron_job: CronJob, scheduled: int, zone: tzinfo) -> Job:
    template = cron_job.spec.job_template
    moment = datetime.fromtimestamp(scheduled, zone).isoformat(timespec="seconds")
    return Job(
        metadata=ObjectMeta(
            name=_name_of_job(cron_job, scheduled),
            namespace=cron_job.metadata.namespace,
            labels=dict(template.metadata.labels),
            annotations={**template.metadata.annotations, _SCHEDULED_AT: moment.replace("+00:00", "Z")},
            owner_references=[new_controller_ref(CRON_JOBS, cron_job)],
        ),
        spec=template.spec,
    )


def _is_active(cron_job: CronJob, uid: str) -> bool:
    return any(each.uid == uid for each in cron_job.status.active)


def _remove_active(cron_job: CronJob, uid: str) -> None:
    active: list[ObjectReference] = [each for each in cron_job.status.active if each.uid != uid]
    cron_job.status.active = active


def _start_key(job: Job) -> tuple[bool, str, str]:
    start = job.status.start_time
    return not start, start or "", job.metadata.name
