"""Controller of Jobs: it runs pods until enough of them have succeeded (pkg/controller/job)."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from steersman.api.batch.v1 import Job, JobCondition, UncountedTerminatedPods
from steersman.api.core.v1 import Pod
from steersman.client.errors import ignoring, is_not_found
from steersman.client.events import reference
from steersman.client.informer import Key, key_of, new_or_old
from steersman.client.resources import JOBS, PODS
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.controllers.job.backoff import Failures
from steersman.controllers.job.pods import JobPods
from steersman.controllers.job.policies import evaluate_failure, met_success_rule
from steersman.controllers.job.state import (
    FAILURE_TARGET,
    FINALIZER,
    SUCCESS_CRITERIA_MET,
    State,
    condition,
    finished,
    has_failed,
    is_indexed,
    is_suspended,
    is_tracked,
)
from steersman.controllers.job.tracking import Tracker, ensure_condition, failed_condition
from steersman.controllers.workloads.controller_ref import (
    Claims,
    add_controller_index,
    controlled_by,
    controller_of,
    is_controlled_by,
    orphans,
    owners_of_change,
    possible_owners,
    resolve,
)
from steersman.controllers.workloads.copies import mutable_copy
from steersman.controllers.workloads.own_writes import OwnWrites
from steersman.controllers.workloads.pod_control import PodControl
from steersman.controllers.workloads.selectors import compile_selector, may_own
from steersman.machinery.codec.serializer import deep_copy
from steersman.machinery.values import times
from steersman.machinery.values.conditions import find_condition
from steersman.work.work_queue import WorkQueue

_OWN_NAME: Final = "kubernetes.io/job-controller"
_BASE_DELAY: Final = 1.0
_MAX_DELAY: Final = 60.0
"""Longest back-off in seconds of a Job whose reconciliation failed."""


class OrphanPod(Struct, frozen=True):
    """Key of a pod with a finalizer that no Job will count any more."""

    namespace: str
    name: str


class JobController(Controller[Key | OrphanPod]):
    """Reconciles Jobs. A key is the namespace and name of a Job, or a pod whose finalizer is to be removed."""

    name = "job-controller"
    account = "job-controller"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self.queue = WorkQueue(base_delay=_BASE_DELAY, max_delay=_MAX_DELAY)
        self._period = dependencies.settings.job_sync_period
        self._pods_of_jobs = JobPods(self.client, PodControl(self.client, self.recorder, JOBS), self._enqueue_after)
        self._tracker = Tracker(self._pods_of_jobs, self._write_status)
        self._failures: dict[Key, Failures] = {}
        self._own_writes: OwnWrites[Key] = OwnWrites()
        self._jobs = self.informers.for_resource(JOBS)
        self._pods = self.informers.for_resource(PODS)
        add_controller_index(self._pods)
        self._jobs.on_change(self._job_changed)
        self._pods.on_change(self._pod_changed)

    def _enqueue_after(self, key: Key, seconds: float) -> None:
        self.queue.add_after(key, max(seconds, self._period))

    def _job_changed(self, old: Job | None, new: Job | None) -> None:
        job = new_or_old(old, new)
        key = key_of(job)
        if new is None:
            self._forget(key)
            self._enqueue_orphans(job)
        elif old is not None and finished(new):
            self._enqueue_orphans(new)
        elif old is None or old.metadata.generation != new.metadata.generation:
            if old is None:
                self._pods_of_jobs.expected.forget(key)
            self.queue.add(key)
        else:
            self.queue.add_after(key, self._period)

    def _forget(self, key: Key) -> None:
        self._pods_of_jobs.expected.forget(key)
        self._tracker.forget(key)
        self._own_writes.forget(key)
        self._failures.pop(key, None)

    def _enqueue_orphans(self, job: Job) -> None:
        for pod in controlled_by(self._pods, job.metadata.uid):
            self._enqueue_orphan(pod)

    def _enqueue_orphan(self, pod: Pod) -> None:
        if is_tracked(pod):
            self.queue.add(OrphanPod(pod.metadata.namespace, pod.metadata.name))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new_or_old(old, new)
        if new is None or new.metadata.deletion_timestamp:
            self._pod_deleted(pod, is_gone=new is None)
            return
        former, job = owners_of_change(self._jobs, old, new)
        self._observe(pod, former)
        if job is not None and old is None:
            self._pods_of_jobs.expected.observe_creation(key_of(job))
        self._observe(pod, job)
        if controller_of(new) is None:
            self._enqueue_orphan(new)
        for candidate in possible_owners(self._jobs, may_own, old, new):
            self.queue.add_after(key_of(candidate), self._period)

    def _observe(self, pod: Pod, job: Job | None) -> None:
        if job is not None:
            if not is_tracked(pod):
                self._tracker.finalizer_removed(key_of(job), pod.metadata.uid)
            self.queue.add_after(key_of(job), self._period)

    def _pod_deleted(self, pod: Pod, *, is_gone: bool) -> None:
        job = resolve(self._jobs, pod.metadata.namespace, controller_of(pod))
        if job is None or finished(job):
            self._enqueue_orphan(pod)
            return
        key = key_of(job)
        self._pods_of_jobs.expected.observe_deletion(key, pod.metadata.uid)
        if is_gone or not is_tracked(pod):
            self._tracker.finalizer_removed(key, pod.metadata.uid)
        self.queue.add_after(key, self._period)

    async def sync(self, key: Key | OrphanPod) -> None:
        if isinstance(key, OrphanPod):
            await self._release_orphan(key)
            return
        cached = self._jobs.get(*key)
        if cached is None:
            self._forget(key)
        elif finished(cached):
            self._failures.pop(key, None)
        elif cached.spec.managed_by in (None, _OWN_NAME) and not self._own_writes.is_stale(key, cached):
            await self._sync(key, mutable_copy(cached))

    async def _release_orphan(self, key: OrphanPod) -> None:
        pod = self._pods.get(key.namespace, key.name)
        if pod is None:
            return
        owner = controller_of(pod)
        if owner is not None:
            if (owner.kind, owner.api_version) != (JOBS.kind, JOBS.api_version):
                return
            job = resolve(self._jobs, key.namespace, owner)
            if job is not None and (job.spec.managed_by not in (None, _OWN_NAME) or not finished(job)):
                return
        with ignoring(is_not_found):
            await self._pods_of_jobs.release(pod)

    async def _sync(self, key: Key, job: Job) -> None:
        if job.spec.completion_mode not in (None, "NonIndexed", "Indexed"):
            text = "Skipped Job sync because completion mode is unknown"
            self.recorder.event(reference(JOBS, job), "Warning", "UnknownCompletionMode", text)
            return
        if job.status.uncounted_terminated_pods is None:
            job.status.uncounted_terminated_pods = UncountedTerminatedPods()
        may_act = self._pods_of_jobs.expected.are_satisfied(key)
        pods = await self._claim_pods(job)
        state = State(job, pods, self._tracker.released(key), self._failures.get(key, Failures()))
        if not job.status.start_time and not is_suspended(job):
            job.status.start_time = times.now()
        await self._determine_outcome(key, state)
        active, has_changed, error = await self._manage_pods(key, state, may_act=may_act)
        status = job.status
        has_changed |= (status.active, status.ready, status.terminating) != (active, state.ready, state.terminating)
        status.active, status.ready, status.terminating = active, state.ready, state.terminating
        if await self._tracker.track(key, state, has_changed=has_changed):
            self._record_end(state)
        if error is not None:
            raise error

    async def _claim_pods(self, job: Job) -> list[Pod]:
        selector = await compile_selector(job.spec.selector)
        claims = Claims(
            self.client, JOBS, job, PODS, lambda pod: selector.matches(pod.metadata.labels), finalizers=(FINALIZER,)
        )
        uid, namespace = job.metadata.uid, job.metadata.namespace
        claimed = await claims.claim((*controlled_by(self._pods, uid), *orphans(self._pods, namespace)))
        return [pod if is_controlled_by(pod, job) else _with_finalizer(pod) for pod in claimed]

    async def _determine_outcome(self, key: Key, state: State) -> None:
        """Determine if the Job has failed or met its success criteria, and store that in `state.finished`."""
        job = state.job
        target = find_condition(job.status.conditions, FAILURE_TARGET)
        state.finished = find_condition(job.status.conditions, SUCCESS_CRITERIA_MET)
        if state.finished is None and target is not None and target.status == "True":
            state.finished = failed_condition(target)
        if state.finished is None:
            state.finished = _fails_by_policy(state) or _fails_by_limits(state)
        deadline = job.spec.active_deadline_seconds
        if state.finished is None and deadline is not None and not is_suspended(job):
            self.queue.add_after(key, deadline - _seconds_since(job.status.start_time))
        if is_indexed(job):
            state.compute_indexes()
            if job.spec.backoff_limit_per_index is not None:
                state.finished = state.finished or _fails_by_indexes(state)
                state.compute_delayed()
            message = await met_success_rule(job.spec.success_policy, state.completions, state.succeeded_indexes)
            if state.finished is None and message is not None:
                state.finished = condition(SUCCESS_CRITERIA_MET, "True", "SuccessPolicy", message)

    async def _manage_pods(self, key: Key, state: State, *, may_act: bool) -> tuple[int, bool, Exception | None]:
        """Create and delete pods.

        Return the number of active pods then, True if conditions have changed, and the first error.
        """
        active = len(state.active)
        if state.finished is not None:
            deleted, error = await self._pods_of_jobs.delete_active(state)
            if deleted != active or not may_act:
                state.finished = None  # some pods may still be active
            state.terminating += deleted
            return active - deleted, False, error
        has_changed, error = False, None
        manages = may_act and not state.job.metadata.deletion_timestamp
        if manages:
            active, error = await self._pods_of_jobs.manage(key, state)
        completions = state.job.spec.completions
        is_complete = state.succeeded > 0 if completions is None else state.succeeded >= completions
        if is_complete and active == 0:
            text = "Reached expected number of succeeded pods"
            state.finished = condition(SUCCESS_CRITERIA_MET, "True", "CompletionsReached", text)
        elif manages:
            has_changed = self._update_suspension(state.job)
        return active, has_changed, error

    def _update_suspension(self, job: Job) -> bool:
        suspended = is_suspended(job)
        reason_and_message = ("JobSuspended", "Job suspended") if suspended else ("JobResumed", "Job resumed")
        conditions, changed = ensure_condition(
            job, condition("Suspended", "True" if suspended else "False", *reason_and_message)
        )
        if changed:
            job.status.conditions = conditions
            job.status.start_time = None if suspended else times.now()
            reason = "Suspended" if suspended else "Resumed"
            self.recorder.event(reference(JOBS, job), "Normal", reason, reason_and_message[1])
        return changed

    async def _write_status(self, key: Key, state: State) -> None:
        state.job = await self.client.update_status(JOBS, state.job)
        self._own_writes.record(key, state.job)
        self._failures[key] = state.failures

    def _record_end(self, state: State) -> None:
        job, found = state.job, state.finished
        assert found is not None
        about = reference(JOBS, job)
        if found.type != "Complete":
            self.recorder.event(about, "Warning", found.reason, found.message)
            return
        if job.spec.completions is not None and job.status.succeeded > job.spec.completions:
            text = "Too many succeeded pods running after completion count reached"
            self.recorder.event(about, "Warning", "TooManySucceededPods", text)
        self.recorder.event(about, "Normal", "Completed", "Job completed")


def _with_finalizer(pod: Pod) -> Pod:
    """Return a pod with the tracking finalizer, as after its adoption."""
    if is_tracked(pod):
        return pod
    pod = deep_copy(pod)
    pod.metadata.finalizers = [*pod.metadata.finalizers, FINALIZER]
    return pod


def _seconds_since(moment: str | None) -> int:
    return times.unix(times.now()) - times.unix(moment) if moment else 0


def _failure(reason: str, message: str) -> JobCondition:
    return condition(FAILURE_TARGET, "True", reason, message)


def _fails_by_policy(state: State) -> JobCondition | None:
    """Return the condition of a Job that fails by its pod failure policy, None if it does not fail."""
    policy = state.job.spec.pod_failure_policy
    for pod in state.pods if policy else ():
        if has_failed(pod, state.job):
            verdict = evaluate_failure(policy, pod)
            if verdict.action == "FailJob":
                return _failure("PodFailurePolicy", verdict.message)
    return None


def _fails_by_limits(state: State) -> JobCondition | None:
    job, spec = state.job, state.job.spec
    if state.failed > (spec.backoff_limit or 0) or _restarts_too_often(state):
        return _failure("BackoffLimitExceeded", "Job has reached the specified backoff limit")
    deadline = spec.active_deadline_seconds
    if deadline is None or not job.status.start_time or is_suspended(job):
        return None
    if _seconds_since(job.status.start_time) < deadline:
        return None
    return _failure("DeadlineExceeded", "Job was active longer than specified deadline")


def _restarts_too_often(state: State) -> bool:
    spec = state.job.spec
    if spec.template.spec.restart_policy != "OnFailure":
        return False
    restarts = sum(
        status.restart_count
        for pod in state.pods
        if pod.status.phase in ("Running", "Pending")
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)
    )
    return restarts >= max(spec.backoff_limit or 0, 1)


def _fails_by_indexes(state: State) -> JobCondition | None:
    failed, most = len(state.failed_indexes or ()), state.job.spec.max_failed_indexes
    if most is not None and failed > most:
        text = "Job has exceeded the specified maximal number of failed indexes"
        return _failure("MaxFailedIndexesExceeded", text)
    if failed and failed + len(state.succeeded_indexes) >= state.completions:
        return _failure("FailedIndexes", "Job has failed indexes")
    return None
