"""CronJobs: jobs made by the clock."""

from __future__ import annotations

import time
from collections.abc import Iterator

from steersman.api.batch.v1 import CronJob, CronJobStatus
from steersman.machinery import times
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.apps.columns import container_columns, label_selector_text
from steersman.registry.apps.warnings import name_warnings
from steersman.registry.batch.jobs import set_job_spec_defaults
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy, Strategy


def set_defaults(cron_job: CronJob) -> None:
    """Runs may overlap; three jobs that succeeded and one that failed are kept."""
    spec = cron_job.spec
    spec.concurrency_policy = spec.concurrency_policy or "Allow"
    if spec.suspend is None:
        spec.suspend = False
    if spec.successful_jobs_history_limit is None:
        spec.successful_jobs_history_limit = 3
    if spec.failed_jobs_history_limit is None:
        spec.failed_jobs_history_limit = 1
    set_job_spec_defaults(spec.job_template.spec)


class CronJobStrategy(Strategy[CronJob]):
    def prepare_for_create(self, ctx: Context, cron_job: CronJob) -> None:
        cron_job.status = CronJobStatus()
        cron_job.metadata.generation = 1

    def warnings_on_create(self, ctx: Context, cron_job: CronJob) -> Iterator[str]:
        yield from name_warnings(cron_job.metadata.name)

    def prepare_for_update(self, ctx: Context, new: CronJob, old: CronJob) -> None:
        new.status = old.status
        if new.spec != old.spec:
            new.metadata.generation = old.metadata.generation + 1

    def warnings_on_update(self, ctx: Context, new: CronJob, old: CronJob) -> Iterator[str]:
        if "TZ" in new.spec.schedule:
            yield (
                "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
                "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
            )


class CronJobStatusStrategy(StatusStrategy[CronJob]):
    pass


def suspend(cron_job: CronJob) -> str:
    """Whether it is held, as the text of a flag."""
    return "<unset>" if cron_job.spec.suspend is None else str(cron_job.spec.suspend)


def last_schedule(cron_job: CronJob) -> str:
    """How long ago it made a job."""
    last = cron_job.status.last_schedule_time
    return "<none>" if last is None else times.age(last, time.time())


CRON_JOBS = Resource(
    kind=CronJob,
    group="batch",
    plural="cronjobs",
    short_names=("cj",),
    categories=("all",),
    strategy=CronJobStrategy(),
    name_validator=name_is_dns_subdomain,
    default=set_defaults,
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
