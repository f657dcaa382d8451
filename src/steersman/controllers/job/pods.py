"""Creation and deletion of the pods of Jobs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from steersman.api.batch.v1 import Job
from steersman.api.core.v1 import Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod, PodTemplateSpec
from steersman.client.client import STRATEGIC_MERGE_PATCH, Client
from steersman.client.errors import ignoring, is_namespace_terminating, is_not_found
from steersman.client.informer import Key
from steersman.client.resources import JOBS, PODS
from steersman.controllers.job import backoff
from steersman.controllers.job.policies import evaluate_failure
from steersman.controllers.job.state import (
    FAILURE_COUNT,
    FINALIZER,
    IGNORED_FAILURE_COUNT,
    INDEX,
    State,
    absolute_failures,
    failure_count,
    ignored_failure_count,
    index_of,
    is_indexed,
    is_suspended,
    is_tracked,
    only_replaces_failed,
)
from steersman.controllers.workloads.copies import mutable_template_copy
from steersman.controllers.workloads.expectations import Expectations
from steersman.controllers.workloads.pod_control import PodControl, pod_from_template, run_all, slow_start
from steersman.controllers.workloads.pod_ranking import in_deletion_order
from steersman.machinery.built_in.pod_state import is_ready
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times

MAX_AT_ONCE: Final = 500
"""Most pods that one reconciliation creates or deletes."""
_MAX_PREFIX: Final = 58
"""Most characters before the random part of a name."""
_INDEX_VARIABLE: Final = "JOB_COMPLETION_INDEX"


class JobPods:
    """Creates and deletes the pods of all Jobs; `later` queues a key after some seconds."""

    def __init__(self, client: Client, control: PodControl, later: Callable[[Key, float], None]) -> None:
        self._client = client
        self._control = control
        self._later = later
        self.expected: Expectations[Key] = Expectations()

    async def manage(self, key: Key, state: State) -> tuple[int, Exception | None]:
        """Create or delete pods to reach the desired number. Return the number of active pods then, and the first
        error.
        """
        job, active = state.job, len(state.active)
        if is_suspended(job):
            return await self._delete(key, state, list(state.active))
        desired = _desired_active(state)
        surplus = _surplus(state, max(active - desired, 0))[:MAX_AT_ONCE]
        if surplus:
            return await self._delete(key, state, surplus)
        missing = desired - active - (state.terminating if only_replaces_failed(job) else 0)
        if missing <= 0:
            return active, None
        now, per_index = times.unix(times.now()), job.spec.backoff_limit_per_index is not None
        wait = 0 if per_index else state.failures.seconds_left(now)
        indexes: list[int] = []
        missing = min(missing, MAX_AT_ONCE)
        if not wait and is_indexed(job):
            indexes = state.pending_indexes(missing)
            if per_index:
                indexes, wait = _ready_indexes(state, indexes, now)
            missing = len(indexes)
        if wait:
            self._later(key, wait)
            return active, None
        return await self._create(key, state, missing, indexes)

    async def _create(self, key: Key, state: State, count: int, indexes: Sequence[int]) -> tuple[int, Exception | None]:
        job = state.job
        template = _template(job)
        self.expected.expect(key, creations=count)

        async def create(number: int) -> None:
            pod = _indexed(state, template, indexes[number]) if indexes else pod_from_template(template, JOBS, job)
            with ignoring(is_namespace_terminating):
                await self._control.create(pod, job)

        succeeded, error = await slow_start(count, create)
        self.expected.observe_creation(key, count - succeeded)
        return len(state.active) + succeeded, error

    async def _delete(self, key: Key, state: State, pods: Sequence[Pod]) -> tuple[int, Exception | None]:
        """Delete pods without counting them."""
        self.expected.expect(key, deletions=(pod.metadata.uid for pod in pods))

        async def delete(pod: Pod) -> None:
            try:
                await self.release(pod)
                await self._control.delete(pod, state.job)
            except StatusError as error:
                self.expected.observe_deletion(key, pod.metadata.uid)
                if not is_not_found(error):
                    raise

        deleted, error = await self._delete_all(state, pods, delete)
        state.terminating += deleted
        return len(state.active) - deleted, error

    async def delete_active(self, state: State) -> tuple[int, Exception | None]:
        """Delete all active pods of a finished Job. They are counted once they have ended.

        Return the number of deleted pods, and the first error.
        """

        async def delete(pod: Pod) -> None:
            with ignoring(is_not_found):
                await self._control.delete(pod, state.job)

        return await self._delete_all(state, state.active, delete)

    async def _delete_all(
        self, state: State, pods: Sequence[Pod], delete: Callable[[Pod], Awaitable[None]]
    ) -> tuple[int, Exception | None]:
        errors = await run_all([partial(delete, pod) for pod in pods])
        state.ready -= sum(map(is_ready, pods))
        return len(pods) - len(errors), errors[0] if errors else None

    async def release(self, pod: Pod) -> None:
        """Remove the tracking finalizer of a pod. Raises StatusError."""
        if is_tracked(pod):
            patch: dict[str, Any] = {"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
            metadata = pod.metadata
            await self._client.patch(PODS, metadata.name, metadata.namespace, patch, media=STRATEGIC_MERGE_PATCH)


def _desired_active(state: State) -> int:
    """Return the desired number of active pods."""
    spec = state.job.spec
    parallelism = spec.parallelism or 0
    if spec.completions is None:
        return len(state.active) if state.succeeded else parallelism
    return max(min(spec.completions - state.succeeded, parallelism), 0)


def _surplus(state: State, count: int) -> list[Pod]:
    """Return at least `count` pods to delete, always including those with a duplicate or invalid index."""
    if not is_indexed(state.job):
        return in_deletion_order(state.active)[:count]
    of_index: dict[int | None, list[Pod]] = {}
    for pod in state.active:
        of_index.setdefault(state.valid_index(pod), []).append(pod)
    doomed, left = of_index.pop(None, []), []
    for index in sorted(each for each in of_index if each is not None):
        *others, last = in_deletion_order(of_index[index])
        doomed += others
        left.append(last)
    return doomed + in_deletion_order(left)[: max(count - len(doomed), 0)]


def _ready_indexes(state: State, indexes: Sequence[int], now: int) -> tuple[list[int], int]:
    """Return the indexes whose back-off is over; if there are none, also the seconds until the first is."""
    waits = {index: _seconds_left(state, index, now) for index in indexes}
    at_once = [index for index, wait in waits.items() if wait == 0]
    return at_once, 0 if at_once else min(waits.values(), default=0)


def _seconds_left(state: State, index: int, now: int) -> int:
    failed = state.delayed.get(index)
    return 0 if failed is None else backoff.seconds_left(absolute_failures(failed), backoff.finish_time(failed), now)


def _template(job: Job) -> PodTemplateSpec:
    template = mutable_template_copy(job.spec.template)
    if FINALIZER not in template.metadata.finalizers:
        template.metadata.finalizers = [*template.metadata.finalizers, FINALIZER]
    if is_indexed(job):
        template.spec.init_containers = [_with_index(each) for each in template.spec.init_containers]
        template.spec.containers = [_with_index(each) for each in template.spec.containers or ()]
    return template


def _with_index(container: Container) -> Container:
    """Return the container with an environment variable for the completion index."""
    if any(each.name == _INDEX_VARIABLE for each in container.env):
        return container
    source = EnvVarSource(field_ref=ObjectFieldSelector(field_path=f"metadata.labels['{INDEX}']"))
    variable = EnvVar(name=_INDEX_VARIABLE, value_from=source)
    return msgspec.structs.replace(container, env=[*container.env, variable])


def _indexed(state: State, template: PodTemplateSpec, index: int) -> Pod:
    """Return the pod of a completion index."""
    job, part = state.job, f"-{index}-"
    name = job.metadata.name + part
    if len(name) > _MAX_PREFIX:
        name = name[: _MAX_PREFIX - len(part)] + part
    pod = pod_from_template(template, JOBS, job, name)
    metadata = pod.metadata
    metadata.labels[INDEX] = metadata.annotations[INDEX] = str(index)
    if job.spec.backoff_limit_per_index is not None:
        failures, ignored = _failures_before(state, index)
        metadata.annotations[FAILURE_COUNT] = str(failures)
        if ignored:
            metadata.annotations[IGNORED_FAILURE_COUNT] = str(ignored)
    pod.spec = msgspec.structs.replace(template.spec, hostname=f"{job.metadata.name}-{index}")
    return pod


def _failures_before(state: State, index: int) -> tuple[int, int]:
    """Return the numbers of counted and ignored failures of an index so far."""
    failed = state.delayed.get(index)
    if failed is None:
        return 0, 0
    counts = evaluate_failure(state.job.spec.pod_failure_policy, failed).counts
    return failure_count(failed) + counts, ignored_failure_count(failed) + (not counts)


def by_index(pods: Sequence[Pod]) -> list[Pod]:
    """Return pods in the order of their indexes, pods without an index first."""
    return sorted(pods, key=lambda pod: -1 if (index := index_of(pod)) is None else index)
