"""Tracking of finished pods: each is counted exactly once, then its finalizer is removed.

A pod keeps its finalizer until its uid is in the Job's status. Then the finalizer is removed, and the status counts the
pod instead of listing its uid. After an interruption the finalizer or the uid tells where to continue.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from steersman.api.batch.v1 import Job, JobCondition, JobStatus, UncountedTerminatedPods
from steersman.api.core.v1 import Pod
from steersman.client.errors import is_not_found
from steersman.client.informer import Key
from steersman.controllers.job import intervals
from steersman.controllers.job.pods import JobPods, by_index
from steersman.controllers.job.policies import evaluate_failure
from steersman.controllers.job.state import (
    FAILURE_TARGET,
    SUCCESS_CRITERIA_MET,
    State,
    condition,
    has_failed,
    index_of,
    is_indexed,
    is_tracked,
)
from steersman.controllers.workloads.pod_control import run_all
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values.conditions import find_condition

_MAX_UNCOUNTED: Final = 500
"""Most uids in a status at the same time."""


class Tracker:
    """Counts the pods of all Jobs. `write` updates a Job's status and replaces the Job in the state by the stored one."""

    def __init__(self, pods: JobPods, write: Callable[[Key, State], Awaitable[None]]) -> None:
        self._pods = pods
        self._write = write
        self._released: dict[Key, set[str]] = {}

    def released(self, key: Key) -> frozenset[str]:
        """Return the pods without a finalizer whose change the informer does not have yet."""
        return frozenset(self._released.get(key, ()))

    def finalizer_removed(self, key: Key, uid: str) -> None:
        """Note that the informer has a pod without the finalizer, or has removed the pod."""
        self._released.get(key, set()).discard(uid)

    def forget(self, key: Key) -> None:
        """Drop the state of a deleted Job."""
        self._released.pop(key, None)

    async def track(self, key: Key, state: State, *, has_changed: bool) -> bool:
        """Count finished pods and update the status. Return True if the Job is finished. Raises StatusError,
        Unreachable.
        """
        if is_indexed(state.job):
            state.pods = by_index(state.pods)
        tracked = {pod.metadata.uid for pod in state.pods if is_tracked(pod) and pod.metadata.uid not in state.released}
        has_changed |= _count_gone(state.job.status, tracked)
        chosen = _select(state, tracked)
        has_changed |= chosen.has_changed
        if is_indexed(state.job):
            has_changed |= _update_indexes(state, chosen.succeeded)
        has_changed |= _add_target_condition(state)
        if has_changed:
            await self._write(key, state)
        errors = await self._release(key, chosen.pods, tracked)
        has_changed = _count_gone(state.job.status, tracked)
        if errors:
            if has_changed:
                await self._write(key, state)
            raise errors[0]
        over = not chosen.is_full and _finish(state)
        if has_changed or over:
            await self._write(key, state)
        return over

    async def _release(self, key: Key, pods: Sequence[Pod], tracked: set[str]) -> list[Exception]:
        released = self._released.setdefault(key, set()) if pods else set()
        released.update(pod.metadata.uid for pod in pods)

        async def release(pod: Pod) -> None:
            uid = pod.metadata.uid
            try:
                await self._pods.release(pod)
            except StatusError as error:
                released.discard(uid)
                if not is_not_found(error):
                    raise
            tracked.discard(uid)

        return await run_all([partial(release, pod) for pod in pods])


class _Selection:
    """Pods whose finalizer is to be removed, and the changes of the Job's status that must be written before."""

    def __init__(self) -> None:
        self.pods: list[Pod] = []
        self.succeeded: list[int] = []
        self.has_changed = False
        self.is_full = False


def _select(state: State, tracked: set[str]) -> _Selection:
    job, chosen = state.job, _Selection()
    uncounted = job.status.uncounted_terminated_pods
    assert uncounted is not None
    succeeded, failed = list(uncounted.succeeded), list(uncounted.failed)
    indexed = is_indexed(job)
    for pod in state.pods:
        uid = pod.metadata.uid
        fails = has_failed(pod, job)
        if uid not in tracked or not _is_releasable(state, pod, fails=fails):
            continue
        chosen.pods.append(pod)
        if pod.status.phase == "Succeeded" and uid not in state.uncounted_failed:
            index = state.valid_index(pod)
            if indexed:
                if index is not None and index not in state.succeeded_before:
                    chosen.succeeded.append(index)
            elif uid not in state.uncounted_succeeded:
                succeeded.append(uid)
        elif (fails or _is_failing(state.finished)) and uid not in state.uncounted_failed:
            is_valid = not indexed or state.valid_index(pod) is not None
            if is_valid and evaluate_failure(job.spec.pod_failure_policy, pod).counts:
                failed.append(uid)
        if len(chosen.succeeded) + len(succeeded) + len(failed) >= _MAX_UNCOUNTED:
            chosen.is_full = True
            break
    chosen.has_changed = bool(chosen.succeeded) or succeeded != uncounted.succeeded or failed != uncounted.failed
    job.status.uncounted_terminated_pods = UncountedTerminatedPods(succeeded=succeeded, failed=failed)
    return chosen


def _is_failing(finished: JobCondition | None) -> bool:
    return finished is not None and finished.type != SUCCESS_CRITERIA_MET


def _is_releasable(state: State, pod: Pod, *, fails: bool) -> bool:
    if state.job.metadata.deletion_timestamp or state.finished is not None or pod.status.phase == "Succeeded":
        return True
    index = index_of(pod)
    delayed = state.delayed.get(index) if index is not None else None
    return fails and (delayed is None or delayed.metadata.uid != pod.metadata.uid)


def _count_gone(status: JobStatus, tracked: set[str]) -> bool:
    """Count the listed uids of pods that have lost their finalizer. Return True if there were any."""
    uncounted = status.uncounted_terminated_pods
    assert uncounted is not None
    succeeded = [uid for uid in uncounted.succeeded if uid in tracked]
    failed = [uid for uid in uncounted.failed if uid in tracked]
    status.succeeded += len(uncounted.succeeded) - len(succeeded)
    status.failed += len(uncounted.failed) - len(failed)
    changed = len(succeeded) + len(failed) < len(uncounted.succeeded) + len(uncounted.failed)
    if changed:
        status.uncounted_terminated_pods = UncountedTerminatedPods(succeeded=succeeded, failed=failed)
    return changed


def _update_indexes(state: State, succeeded: Sequence[int]) -> bool:
    status = state.job.status
    state.succeeded_indexes |= intervals.from_indexes(succeeded)
    completed = str(state.succeeded_indexes)
    failed = None if state.failed_indexes is None else str(state.failed_indexes)
    changed = completed != status.completed_indexes or failed != status.failed_indexes
    status.succeeded = len(state.succeeded_indexes)
    status.completed_indexes, status.failed_indexes = completed, failed
    return changed


def _add_target_condition(state: State) -> bool:
    """Add the condition that decides the Job. The final condition is added once all pods have ended.

    Return True if the conditions have changed.
    """
    found, job = state.finished, state.job
    if found is None:
        return False
    changed = False
    if found.type == FAILURE_TARGET:
        job.status.conditions = [*job.status.conditions, found]
        state.finished = failed_condition(found)
        changed = True
    elif found.type == SUCCESS_CRITERIA_MET:
        if find_condition(job.status.conditions, SUCCESS_CRITERIA_MET) is None:
            job.status.conditions = [*job.status.conditions, found]
            changed = True
        state.finished = condition("Complete", "True", found.reason, found.message)
    return changed


def failed_condition(target: JobCondition) -> JobCondition:
    """Return the Failed condition for a FailureTarget condition."""
    return condition("Failed", "True", target.reason, target.message)


def _finish(state: State) -> bool:
    """Add the final condition if no pods are left to be counted or to end. Return True if it was added."""
    status, found = state.job.status, state.finished
    uncounted = status.uncounted_terminated_pods
    if found is None or state.terminating or (uncounted and (uncounted.succeeded or uncounted.failed)):
        return False
    status.conditions, _ = ensure_condition(state.job, found)
    if found.type == "Complete":
        status.completion_time = found.last_transition_time
    return True


def ensure_condition(job: Job, desired: JobCondition) -> tuple[list[JobCondition], bool]:
    """Return the conditions including `desired`, and True if they have changed. A new condition that is False is left
    out.
    """
    conditions = list(job.status.conditions)
    for number, each in enumerate(conditions):
        if each.type == desired.type:
            is_new = (each.status, each.reason, each.message) != (desired.status, desired.reason, desired.message)
            if is_new:
                conditions[number] = desired
            return conditions, is_new
    if desired.status == "False":
        return conditions, False
    return [*conditions, desired], True
