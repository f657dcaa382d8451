"""Jobs: pods that run until enough of them have succeeded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from steersman.api.batch.v1 import Job, JobSpec
from steersman.api.meta.v1 import DeleteOptions, LabelSelector
from steersman.kinds.built_in import built_in
from steersman.machinery.codec.serializer import empty_to_null
from steersman.machinery.errors.field import FieldError, Path
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.machinery.validation.selectors import label_selector_has_invalid_label_value
from steersman.machinery.values import times
from steersman.registry.batch.job_status_validation import is_true, validate_job_status_update
from steersman.registry.batch.job_validation import (
    CONTROLLER_UID_LABELS,
    JOB_NAME_LABELS,
    validate_job,
    validate_job_spec_update,
)
from steersman.registry.columns import label_selector_text
from steersman.registry.pod_template.columns import container_columns
from steersman.registry.pod_template.defaults import set_pod_template_defaults
from steersman.registry.pod_template.workload import (
    WorkloadStrategy,
    template_warnings,
)
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy

PODS_ARE_KEPT: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them "
    "or set propagationPolicy=Orphan to suppress this warning"
)


def set_defaults(job: Job) -> None:
    """Set the defaults: one completion, one pod at a time, six retries."""
    spec = job.spec
    if spec.parallelism is None:
        if spec.completions is None:
            spec.completions = 1
        spec.parallelism = 1
    if spec.backoff_limit is None:
        spec.backoff_limit = 6 if spec.backoff_limit_per_index is None else 2**31 - 1
    if spec.template.metadata.labels and not job.metadata.labels:
        # The dict itself is kept, so that prepare_for_create can see that the labels are not the client's own.
        job.metadata.labels = spec.template.metadata.labels
    spec.completion_mode = spec.completion_mode or "NonIndexed"
    if spec.suspend is None:
        spec.suspend = False
    if spec.pod_replacement_policy is None:
        spec.pod_replacement_policy = "TerminatingOrFailed" if spec.pod_failure_policy is None else "Failed"
    if spec.manual_selector is None:
        spec.manual_selector = False
    set_job_spec_defaults(spec)


def set_job_spec_defaults(spec: JobSpec) -> None:
    """Set the defaults of a job's spec, in jobs and cron jobs."""
    if spec.pod_failure_policy is not None:
        for rule in spec.pod_failure_policy.rules or ():
            for pattern in rule.on_pod_conditions:
                pattern.status = pattern.status or "True"
    set_pod_template_defaults(spec.template)


def generate_selector(job: Job) -> None:
    """Generate the selector for exactly this job's pods, and the labels of the template that it selects."""
    labels = job.spec.template.metadata.labels
    for label in JOB_NAME_LABELS:
        labels.setdefault(label, job.metadata.name)
    for label in CONTROLLER_UID_LABELS:
        labels.setdefault(label, job.metadata.uid)
    if job.spec.selector is None:
        job.spec.selector = LabelSelector()
    job.spec.selector.match_labels.setdefault(CONTROLLER_UID_LABELS[1], job.metadata.uid)


def _template_is_mutable(job: Job) -> bool:
    """Return True if the job is suspended and has no pods, so that its future pods may differ."""
    status = job.status
    idle = status.start_time is None or is_true(status, "Suspended")
    return bool(job.spec.suspend) and idle and status.active == 0


def job_spec_warnings(spec: JobSpec, path: Path) -> Iterator[str]:
    """Yield warnings about a valid job."""
    if spec.completion_mode == "Indexed" and (spec.completions or 0) > 100_000 and (spec.parallelism or 0) > 10_000:
        yield (
            f"{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than "
            "10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        )
    yield from template_warnings(spec.template, path / "template")


class JobStrategy(WorkloadStrategy[Job]):
    garbage_collection = "orphan"

    def prepare_for_create(self, ctx: Context, job: Job) -> None:
        if not job.spec.manual_selector:
            generate_selector(job)
        labels = job.spec.template.metadata.labels
        if job.metadata.labels is labels:
            job.metadata.labels = dict(labels)
        super().prepare_for_create(ctx, job)

    def validate(self, ctx: Context, job: Job) -> Iterator[FieldError]:
        return validate_job(job, self.template_options(None))

    def canonicalize(self, job: Job) -> None:
        # After validation, so that an invalid label is reported once.
        job.metadata.labels = job.metadata.labels or dict(job.spec.template.metadata.labels)

    def prepare_for_update(self, ctx: Context, new: Job, old: Job) -> None:
        empty_to_null(new.spec)  # so that an empty list of rules equals a missing one
        super().prepare_for_update(ctx, new, old)

    def warnings_on_delete(self, ctx: Context, options: DeleteOptions) -> Iterator[str]:
        if options.propagation_policy is None and options.orphan_dependents is None:
            yield PODS_ARE_KEPT

    def validate_update(self, ctx: Context, new: Job, old: Job) -> Iterator[FieldError]:
        options = self.template_options(old.spec.template)
        if label_selector_has_invalid_label_value(old.spec.selector):
            options = replace(options, allow_invalid_selector_values=True)
        labels = old.spec.template.metadata.labels
        prefixed = JOB_NAME_LABELS[1] in labels and CONTROLLER_UID_LABELS[1] in labels
        yield from validate_job(new, options, require_prefixed_labels=prefixed)
        yield from validate_job_spec_update(new.spec, old.spec, options, template_mutable=_template_is_mutable(old))

    def spec_warnings(self, job: Job) -> Iterator[str]:
        return job_spec_warnings(job.spec, Path("spec"))


class JobStatusStrategy(StatusStrategy[Job]):
    def validate_update(self, ctx: Context, new: Job, old: Job) -> Iterator[FieldError]:
        return validate_job_status_update(new, old)


STATUSES: Final = {
    "Complete": "Complete",
    "Failed": "Failed",
    "": "Terminating",
    "Suspended": "Suspended",
    "FailureTarget": "FailureTarget",
    "SuccessCriteriaMet": "SuccessCriteriaMet",
}
"""Condition -> text of the Status column; the first true condition counts, and "" stands for deletion."""


def status(job: Job) -> str:
    """Return the text of the Status column."""
    first: dict[str, str] = {}
    for condition in job.status.conditions:
        first.setdefault(condition.type, condition.status)
    if job.metadata.deletion_timestamp:
        first[""] = "True"
    return next((text for name, text in STATUSES.items() if first.get(name) == "True"), "Running")


def completions(job: Job) -> str:
    """Return the numbers of succeeded and required pods, e.g. `1/3`."""
    spec, succeeded = job.spec, job.status.succeeded
    if spec.completions is not None:
        return f"{succeeded}/{spec.completions}"
    parallelism = spec.parallelism or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def duration(job: Job) -> str:
    """Return the duration of the job, so far if it is running."""
    status = job.status
    if not status.start_time:
        return ""
    end = times.unix(status.completion_time) if status.completion_time else times.unix_now()
    return times.human_duration(end - times.unix(status.start_time))


JOBS = Resource(
    kind=built_in(Job, default=set_defaults),
    plural="jobs",
    categories=("all",),
    strategy=JobStrategy(),
    name_validator=name_is_dns_subdomain,
    revalidates_metadata=True,
    columns=(
        Column("Status", status, description="Status of the job."),
        Column("Completions", completions),
        Column("Duration", duration, description="Time required to complete the job."),
        AGE,
        *container_columns(lambda j: j.spec.template),
        Column("Selector", lambda j: label_selector_text(j.spec.selector), priority=1),
    ),
    selectable_fields={"status.successful": lambda j: str(j.status.succeeded)},
    unknown_field_label='field label "{0}" not supported for Job',
    subresources=(Subresource(name="status", strategy=JobStatusStrategy()),),
    storage_version_hash="mudhfqk/qZY=",
)
