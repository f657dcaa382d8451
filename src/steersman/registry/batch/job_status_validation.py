"""Validation of updates of a job's status, as other controllers than the built-in one may manage jobs.

Most rules apply only if their fields change, so that an invalid status can be corrected.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.batch.v1 import Job, JobStatus
from steersman.machinery.errors.field import OMITTED, FieldError, Path, duplicate, invalid, required
from steersman.machinery.validation.leaves import validate_nonnegative
from steersman.registry.batch.indexes import IndexesError, count_indexes, overlap
from steersman.registry.printing.internal_form import internal_text

_STATUS: Final = Path("status")
_CONDITIONS: Final = _STATUS / "conditions"
_COUNTS: Final = ("active", "succeeded", "failed", "ready", "terminating")


def is_true(status: JobStatus, condition_type: str) -> bool:
    """Return True if the condition of this type is true."""
    return any(each.type == condition_type and each.status == "True" for each in status.conditions)


def _is_false(status: JobStatus, condition_type: str) -> bool:
    return any(each.type == condition_type and each.status == "False" for each in status.conditions)


def is_finished(status: JobStatus) -> bool:
    """Return True if the job is complete or has failed."""
    return is_true(status, "Complete") or is_true(status, "Failed")


def validate_job_status_update(new: Job, old: Job) -> Iterator[FieldError]:
    """Validate an update through `/status`."""
    yield from _validate_counts(new.status)
    yield from _validate_conditions(new, old)
    yield from _validate_finished(new, old)
    yield from _validate_indexes(new, old)
    yield from _validate_pods_of_finished(new.status, old.status)
    yield from _validate_success(new)
    yield from _validate_transition(new, old)


def _changed(new: Job, old: Job, condition_type: str) -> bool:
    return is_true(new.status, condition_type) != is_true(old.status, condition_type)


def _validate_counts(status: JobStatus) -> Iterator[FieldError]:
    for name in _COUNTS:
        value = getattr(status, name)
        if value is not None:
            yield from validate_nonnegative(value, _STATUS / name)
    uncounted = status.uncounted_terminated_pods
    if uncounted is None:
        return
    path, seen = _STATUS / "uncountedTerminatedPods", set[str]()
    for name, uids in (("succeeded", uncounted.succeeded), ("failed", uncounted.failed)):
        for index, uid in enumerate(uids):
            if not uid:
                yield invalid((path / name)[index], uid, "must not be empty")
            elif uid in seen:
                yield duplicate((path / name)[index], uid)
            seen.add(uid)


def _validate_conditions(new: Job, old: Job) -> Iterator[FieldError]:
    status = new.status
    complete, failed, target = (is_true(status, each) for each in ("Complete", "Failed", "FailureTarget"))
    complete_changed, failed_changed = _changed(new, old, "Complete"), _changed(new, old, "Failed")
    if (complete_changed or failed_changed) and complete and failed:
        yield invalid(_CONDITIONS, OMITTED, "cannot set Complete=True and Failed=true conditions")
    if (complete_changed or _changed(new, old, "FailureTarget")) and complete and target:
        yield invalid(_CONDITIONS, OMITTED, "cannot set Complete=True and FailureTarget=true conditions")
    yield from _validate_completion_time(new, old)
    indexes_changed = status.failed_indexes != old.status.failed_indexes
    if (failed_changed or indexes_changed) and failed and not target:
        yield invalid(_CONDITIONS, OMITTED, "cannot set Failed=True condition without the FailureTarget=true condition")
    criteria_changed = complete_changed or _changed(new, old, "SuccessCriteriaMet")
    if criteria_changed and complete and not is_true(status, "SuccessCriteriaMet"):
        detail = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        yield invalid(_CONDITIONS, OMITTED, detail)


def _validate_completion_time(new: Job, old: Job) -> Iterator[FieldError]:
    complete, start, end = is_true(new.status, "Complete"), new.status.start_time, new.status.completion_time
    path, end_changed = _STATUS / "completionTime", end != old.status.completion_time
    if _changed(new, old, "Complete") or end_changed:
        if end is not None and not complete:
            yield invalid(path, end, "cannot set completionTime when there is no Complete=True condition")
        if end is None and complete:
            yield required(path, "completionTime is required for Complete jobs")
    # Both times are UTC in text of one width, so the texts compare like the times.
    if (start != old.status.start_time or end_changed) and start and end and end < start:
        yield invalid(path, end, "must be equal to or after `startTime`")


def _validate_finished(new: Job, old: Job) -> Iterator[FieldError]:
    """Require that a finished job has a start time and has no more pods."""
    status, before = new.status, old.status
    if not is_finished(status):
        return
    changed = not is_finished(before)
    if (changed or status.active != before.active) and status.active > 0:
        yield invalid(_STATUS / "active", status.active, "active>0 is invalid for finished job")
    held_empty = new.spec.suspend is True and new.spec.completions == 0
    if (changed or status.start_time != before.start_time) and not held_empty and status.start_time is None:
        yield required(_STATUS / "startTime", "startTime is required for finished job")
    uncounted = status.uncounted_terminated_pods
    checked = changed or uncounted != before.uncounted_terminated_pods
    if checked and uncounted is not None and (uncounted.failed or uncounted.succeeded):
        path = _STATUS / "uncountedTerminatedPods"
        yield invalid(path, internal_text(uncounted), "must be empty for finished job")


def _validate_indexes(new: Job, old: Job) -> Iterator[FieldError]:
    spec, completed, failed = new.spec, new.status.completed_indexes, new.status.failed_indexes
    completed_changed = completed != old.status.completed_indexes
    failed_changed = failed != old.status.failed_indexes
    if completed_changed and spec.completions is not None:
        yield from _validate_format(completed, spec.completions, "completedIndexes")
    per_index = spec.backoff_limit_per_index is not None
    if failed_changed and failed is not None and per_index and spec.completions is not None:
        yield from _validate_format(failed, spec.completions, "failedIndexes")
    if completed_changed and completed and spec.completion_mode != "Indexed":
        detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield invalid(_STATUS / "completedIndexes", completed, detail)
    if failed_changed and spec.backoff_limit_per_index is None and failed is not None:
        detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield invalid(_STATUS / "failedIndexes", failed, detail)
    if (failed_changed or completed_changed) and spec.completions is not None and failed is not None:
        common = overlap(completed, failed, spec.completions)
        if common is not None:
            detail = f"failedIndexes and completedIndexes overlap at index: {common}"
            yield invalid(_STATUS / "failedIndexes", failed, detail)


def _validate_format(indexes: str, completions: int, name: str) -> Iterator[FieldError]:
    try:
        count_indexes(indexes, completions)
    except IndexesError as error:
        yield invalid(_STATUS / name, indexes, f"error parsing {name}: {error}")


def _validate_pods_of_finished(new: JobStatus, old: JobStatus) -> Iterator[FieldError]:
    finished = is_finished(new)
    changed = finished != is_finished(old) or new.terminating != old.terminating
    if changed and finished and new.terminating is not None and new.terminating > 0:
        yield invalid(_STATUS / "terminating", new.terminating, "terminating>0 is invalid for finished job")
    changed = new.ready != old.ready or new.active != old.active
    if changed and new.ready is not None and new.ready > new.active:
        yield invalid(_STATUS / "ready", new.ready, "cannot set more ready pods than active")


def _validate_success(job: Job) -> Iterator[FieldError]:
    status = job.status
    met = is_true(status, "SuccessCriteriaMet")
    if met and is_true(status, "Failed"):
        yield invalid(_CONDITIONS, OMITTED, "cannot set SuccessCriteriaMet=True and Failed=true conditions")
    if met and is_true(status, "FailureTarget"):
        yield invalid(_CONDITIONS, OMITTED, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
    if job.spec.success_policy is not None and not met and is_true(status, "Complete"):
        detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        yield invalid(_CONDITIONS, OMITTED, detail)


def _validate_transition(new: Job, old: Job) -> Iterator[FieldError]:
    status, before = new.status, old.status
    for condition_type in ("Failed", "Complete", "FailureTarget"):
        if is_true(before, condition_type) and not is_true(status, condition_type):
            yield invalid(_CONDITIONS, OMITTED, f"cannot disable the terminal {condition_type}=True condition")
    if status.failed < before.failed:
        yield invalid(_STATUS / "failed", status.failed, "cannot decrease the failed counter")
    scalable = new.spec.completion_mode == "Indexed" and new.spec.completions == new.spec.parallelism
    if status.succeeded < before.succeeded and not scalable:
        yield invalid(_STATUS / "succeeded", status.succeeded, "cannot decrease the succeeded counter")
    if status.completion_time and before.completion_time and status.completion_time != before.completion_time:
        yield invalid(_STATUS / "completionTime", status.completion_time, "field is immutable")
    resuming = is_true(before, "Suspended") and _is_false(status, "Suspended")
    if status.start_time != before.start_time and not resuming and before.start_time and not new.spec.suspend:
        detail = "field is immutable for unsuspended job once set"
        yield invalid(_STATUS / "startTime", status.start_time, detail)
    met_before, met = is_true(before, "SuccessCriteriaMet"), is_true(status, "SuccessCriteriaMet")
    if met_before and not met:
        yield invalid(_CONDITIONS, OMITTED, "cannot disable the SuccessCriteriaMet=True condition")
    if is_true(before, "Complete") and not met_before and met:
        detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        yield invalid(_CONDITIONS, OMITTED, detail)
