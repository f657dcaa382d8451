"""CronJobs: jobs created on a schedule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.batch.v1 import CronJob, CronJobSpec, JobSpec
from steersman.api.core.v1 import PodTemplateSpec
from steersman.kinds.built_in import built_in
from steersman.machinery.cron.schedules import ScheduleError, check_schedule, check_time_zone
from steersman.machinery.errors.field import FieldError, Path, invalid, not_supported, required
from steersman.machinery.validation.leaves import validate_choice, validate_nonnegative
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.machinery.values import times
from steersman.registry.batch.job_validation import validate_spec
from steersman.registry.batch.jobs import job_spec_warnings, set_job_spec_defaults
from steersman.registry.columns import label_selector_text
from steersman.registry.pod_template.columns import container_columns
from steersman.registry.pod_template.validation.options import PodValidationOptions
from steersman.registry.pod_template.workload import WorkloadStrategy
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy

CONCURRENCY_POLICIES: Final = ("Allow", "Forbid", "Replace")
MAX_NAME: Final = 52
"""The names of its jobs are eleven characters longer."""
JOB_SPEC: Final = Path("spec", "jobTemplate", "spec")


def set_defaults(cron_job: CronJob) -> None:
    """Set the defaults: runs may overlap, and three successful jobs and one failed job are kept."""
    spec = cron_job.spec
    spec.concurrency_policy = spec.concurrency_policy or "Allow"
    if spec.suspend is None:
        spec.suspend = False
    if spec.successful_jobs_history_limit is None:
        spec.successful_jobs_history_limit = 3
    if spec.failed_jobs_history_limit is None:
        spec.failed_jobs_history_limit = 1
    set_job_spec_defaults(spec.job_template.spec)


def _validate_spec(spec: CronJobSpec, old: CronJobSpec | None, options: PodValidationOptions) -> Iterator[FieldError]:
    path = Path("spec")
    if not spec.schedule:
        yield required(path / "schedule")
    else:
        yield from _validate_schedule(spec, path / "schedule", zone_allowed=old is not None and "TZ" in old.schedule)
    if spec.starting_deadline_seconds is not None:
        yield from validate_nonnegative(spec.starting_deadline_seconds, path / "startingDeadlineSeconds")
    if old is None or old.time_zone != spec.time_zone:
        yield from _validate_time_zone(spec.time_zone, path / "timeZone")
    yield from validate_choice(spec.concurrency_policy, CONCURRENCY_POLICIES, path / "concurrencyPolicy")
    yield from _validate_job_template(spec.job_template.spec, path.child("jobTemplate", "spec"), options)
    if spec.successful_jobs_history_limit is not None:
        yield from validate_nonnegative(spec.successful_jobs_history_limit, path / "successfulJobsHistoryLimit")
    if spec.failed_jobs_history_limit is not None:
        yield from validate_nonnegative(spec.failed_jobs_history_limit, path / "failedJobsHistoryLimit")


def _validate_schedule(spec: CronJobSpec, path: Path, *, zone_allowed: bool) -> Iterator[FieldError]:
    """Validate the schedule; `zone_allowed` is True for a stored schedule with a time zone from before `timeZone`
    existed.
    """
    try:
        check_schedule(spec.schedule)
    except ScheduleError as error:
        yield invalid(path, spec.schedule, str(error))
    if "TZ" not in spec.schedule:
        return
    if not zone_allowed:
        yield invalid(path, spec.schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
    elif spec.time_zone is not None:
        yield invalid(path, spec.schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule")


def _validate_time_zone(zone: str | None, path: Path) -> Iterator[FieldError]:
    if zone is None:
        return
    if not zone:
        yield invalid(path, zone, "timeZone must be nil or non-empty string")
        return
    try:
        check_time_zone(zone)
    except ScheduleError as error:
        yield invalid(path, zone, str(error))


def _validate_job_template(spec: JobSpec, path: Path, options: PodValidationOptions) -> Iterator[FieldError]:
    yield from validate_spec(spec, path, options)
    if spec.selector is not None:
        yield invalid(path / "selector", spec.selector, "`selector` will be auto-generated")
    if spec.manual_selector:
        yield not_supported(path / "manualSelector", spec.manual_selector, ("nil", "false"))


class CronJobStrategy(WorkloadStrategy[CronJob]):
    def template_of(self, cron_job: CronJob) -> PodTemplateSpec:
        return cron_job.spec.job_template.spec.template

    def validate(self, ctx: Context, cron_job: CronJob) -> Iterator[FieldError]:
        yield from _validate_spec(cron_job.spec, None, self.template_options(None))
        if len(cron_job.metadata.name) > MAX_NAME:
            yield invalid(Path("metadata", "name"), cron_job.metadata.name, "must be no more than 52 characters")

    def validate_update(self, ctx: Context, new: CronJob, old: CronJob) -> Iterator[FieldError]:
        return _validate_spec(new.spec, old.spec, self.template_options(old.spec.job_template.spec.template))

    def spec_warnings(self, cron_job: CronJob) -> Iterator[str]:
        return job_spec_warnings(cron_job.spec.job_template.spec, JOB_SPEC)

    def warnings_on_update(self, ctx: Context, new: CronJob, old: CronJob) -> Iterator[str]:
        yield from super().warnings_on_update(ctx, new, old)
        if "TZ" in new.spec.schedule:
            yield (
                "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
                "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
            )


class CronJobStatusStrategy(StatusStrategy[CronJob]):
    metadata_on_update = "once"


def suspend(cron_job: CronJob) -> str:
    """Return the text of the flag, `<unset>` if it is missing."""
    return "<unset>" if cron_job.spec.suspend is None else str(cron_job.spec.suspend)


def last_schedule(cron_job: CronJob) -> str:
    """Return the age of the last scheduled job."""
    last = cron_job.status.last_schedule_time
    return "<none>" if last is None else times.age(last, times.unix_now())


CRON_JOBS = Resource(
    kind=built_in(CronJob, default=set_defaults),
    plural="cronjobs",
    short_names=("cj",),
    categories=("all",),
    strategy=CronJobStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=(
        Column("Schedule", lambda c: c.spec.schedule),
        Column("Timezone", lambda c: "<none>" if c.spec.time_zone is None else c.spec.time_zone),
        Column("Suspend", suspend, type="boolean"),
        Column("Active", lambda c: len(c.status.active), type="integer"),
        Column("Last Schedule", last_schedule),
        AGE,
        *container_columns(lambda c: c.spec.job_template.spec.template),
        Column("Selector", lambda c: label_selector_text(c.spec.job_template.spec.selector), priority=1),
    ),
    subresources=(Subresource(name="status", strategy=CronJobStatusStrategy()),),
    storage_version_hash="sd5LIXh4Fjs=",
)
