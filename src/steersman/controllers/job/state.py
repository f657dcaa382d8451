"""Snapshot of a Job and its pods, and the numbers that follow from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from steersman.api.batch.v1 import Job, JobCondition
from steersman.api.core.v1 import Pod
from steersman.controllers.job import intervals
from steersman.controllers.job.backoff import Failures, finish_time
from steersman.controllers.job.intervals import Indexes
from steersman.controllers.job.policies import evaluate_failure
from steersman.machinery.built_in.pod_state import is_active, is_ready, is_terminating
from steersman.machinery.values import times
from steersman.work.patterns import late_pattern

FINALIZER: Final = "batch.kubernetes.io/job-tracking"
"""Finalizer that keeps a pod until its Job has counted it."""
INDEX: Final = "batch.kubernetes.io/job-completion-index"
FAILURE_COUNT: Final = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURE_COUNT: Final = "batch.kubernetes.io/job-index-ignored-failure-count"

SUCCESS_CRITERIA_MET: Final = "SuccessCriteriaMet"
FAILURE_TARGET: Final = "FailureTarget"
_NUMBER: Final = late_pattern(r"\+?[0-9]{1,10}", re.ASCII)


def is_tracked(pod: Pod) -> bool:
    """Return True if the Job has not counted the pod yet."""
    return FINALIZER in pod.metadata.finalizers


def is_indexed(job: Job) -> bool:
    """Return True if the pods of a Job have completion indexes."""
    return job.spec.completion_mode == "Indexed"


def is_suspended(job: Job) -> bool:
    """Return True if a Job is suspended, so that it should have no pods."""
    return bool(job.spec.suspend)


def condition(type_: str, status: str, reason: str, message: str) -> JobCondition:
    """Return a condition with the current time."""
    now = times.now()
    return JobCondition(
        type=type_, status=status, reason=reason, message=message, last_probe_time=now, last_transition_time=now
    )


def finished(job: Job) -> JobCondition | None:
    """Return the condition that marks the Job as finished (Complete or Failed), None if it is not finished."""
    for each in job.status.conditions:
        if each.type in ("Complete", "Failed") and each.status == "True":
            return each
    return None


def only_replaces_failed(job: Job) -> bool:
    """Return True if terminating pods must have ended before they are replaced."""
    return job.spec.pod_replacement_policy == "Failed" or job.spec.pod_failure_policy is not None


def has_failed(pod: Pod, job: Job) -> bool:
    """Return True if a pod counts as failed."""
    if pod.status.phase == "Failed":
        return True
    if only_replaces_failed(job):
        return False
    return pod.metadata.deletion_timestamp is not None and pod.status.phase != "Succeeded"


def index_of(pod: Pod) -> int | None:
    """Return the completion index of a pod, None if it has none."""
    return _number(pod, INDEX)


def _number(pod: Pod, annotation: str) -> int | None:
    text = pod.metadata.annotations.get(annotation, "")
    return int(text) if _NUMBER.fullmatch(text) else None


def failure_count(pod: Pod) -> int:
    """Return the number of counted failures of the pod's index before this pod."""
    return _number(pod, FAILURE_COUNT) or 0


def ignored_failure_count(pod: Pod) -> int:
    """Return the number of ignored failures of the pod's index before this pod."""
    return _number(pod, IGNORED_FAILURE_COUNT) or 0


@dataclass(slots=True)
class State:
    """A Job (a copy that the reconciliation changes) with its pods.

    `released` are uids of pods whose finalizer was removed, but whose change the informer does not have yet.
    """

    job: Job
    pods: list[Pod]
    released: frozenset[str]
    failures: Failures
    active: list[Pod] = field(init=False)
    ready: int = field(init=False)
    terminating: int = field(init=False)
    succeeded: int = field(init=False)
    failed: int = field(init=False)
    uncounted_succeeded: frozenset[str] = field(init=False)
    uncounted_failed: frozenset[str] = field(init=False)
    succeeded_before: Indexes = field(default_factory=Indexes)
    """Succeeded indexes in the status."""
    succeeded_indexes: Indexes = field(default_factory=Indexes)
    failed_indexes: Indexes | None = None
    delayed: dict[int, Pod] = field(default_factory=dict)
    """Failed pods by index that are kept until their replacement is created, which may have to wait for its back-off.
    """
    finished: JobCondition | None = None
    """Condition that decides the Job, None while it is undecided."""

    def __post_init__(self) -> None:
        job, uncounted = self.job, self.job.status.uncounted_terminated_pods
        self.uncounted_succeeded = frozenset(uncounted.succeeded if uncounted else ())
        self.uncounted_failed = frozenset(uncounted.failed if uncounted else ())
        self.active = list(filter(is_active, self.pods))
        self.ready = sum(map(is_ready, self.active))
        self.terminating = sum(map(is_terminating, self.pods))
        new = self._uncounted(lambda pod: pod.status.phase == "Succeeded", self.uncounted_succeeded)
        new_failed = self._uncounted(lambda pod: has_failed(pod, job), self.uncounted_failed)
        counted = sum(evaluate_failure(job.spec.pod_failure_policy, pod).counts for pod in new_failed)
        self.failures = self.failures.after(new, new_failed)
        self.succeeded = job.status.succeeded + len(new) + len(self.uncounted_succeeded)
        self.failed = job.status.failed + counted + len(self.uncounted_failed)

    @property
    def completions(self) -> int:
        """Return the number of pods that must succeed."""
        return self.job.spec.completions or 0

    def valid_index(self, pod: Pod) -> int | None:
        """Return the completion index of a pod if it is below the Job's completions, else None."""
        index = index_of(pod)
        return index if index is not None and index < self.completions else None

    def _uncounted(self, matches: Callable[[Pod], bool], counted: Iterable[str] = ()) -> list[Pod]:
        """Return the matching pods that have not been counted yet."""
        indexed = is_indexed(self.job)
        return [
            pod
            for pod in self.pods
            if is_tracked(pod)
            and pod.metadata.uid not in self.released
            and pod.metadata.uid not in counted
            and not (indexed and self.valid_index(pod) is None)
            and matches(pod)
        ]

    def compute_indexes(self) -> None:
        """Determine the succeeded and failed indexes."""
        status = self.job.status
        self.succeeded_before = intervals.parse(status.completed_indexes, self.completions)
        new = (self._tracked_index(pod) for pod in self.pods if pod.status.phase == "Succeeded")
        self.succeeded_indexes = self.succeeded_before | intervals.from_indexes(
            each for each in new if each is not None
        )
        self.succeeded = len(self.succeeded_indexes)
        if self.job.spec.backoff_limit_per_index is not None:
            before = intervals.parse(status.failed_indexes or "", self.completions)
            failed = (self._tracked_index(pod) for pod in self.pods if self._fails_index(pod))
            self.failed_indexes = before | intervals.from_indexes(each for each in failed if each is not None)

    def _tracked_index(self, pod: Pod) -> int | None:
        return self.valid_index(pod) if is_tracked(pod) else None

    def _fails_index(self, pod: Pod) -> bool:
        if not has_failed(pod, self.job):
            return False
        verdict = evaluate_failure(self.job.spec.pod_failure_policy, pod)
        if verdict.action == "FailIndex":
            return True
        return verdict.counts and failure_count(pod) >= (self.job.spec.backoff_limit_per_index or 0)

    def compute_delayed(self) -> None:
        """Determine the last failed pod of each index that is to be retried."""
        failed = self.failed_indexes or Indexes()
        active = set(map(index_of, self.active))
        for pod in self._uncounted(lambda pod: has_failed(pod, self.job)):
            index = self.valid_index(pod)
            if index is None or index in self.succeeded_indexes or index in failed or index in active:
                continue
            delayed = self.delayed.get(index)
            if delayed is None or (
                _all_failures(delayed) <= _all_failures(pod) and finish_time(pod) >= finish_time(delayed)
            ):
                self.delayed[index] = pod

    def pending_indexes(self, count: int) -> list[int]:
        """Return up to `count` lowest indexes that need a pod and have none."""
        taken = {index for pod in self.active if (index := index_of(pod)) is not None}
        if only_replaces_failed(self.job):
            taken.update(index for pod in self.pods if is_terminating(pod) and (index := index_of(pod)) is not None)
        busy = self.succeeded_indexes | intervals.from_indexes(taken)
        if self.failed_indexes is not None:
            busy = busy | self.failed_indexes
        missing = busy.missing(self.completions)
        return [index for _, index in zip(range(count), missing, strict=False)]


def _all_failures(pod: Pod) -> int:
    return failure_count(pod) + ignored_failure_count(pod)


def absolute_failures(pod: Pod) -> int:
    """Return the number of failures of the pod's index, including this pod."""
    return _all_failures(pod) + 1
