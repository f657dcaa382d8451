"""Controller of ReplicaSets: it keeps the desired number of pods (pkg/controller/replicaset).

ReplicationControllers use the same base class, see `replication_controller`.
"""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final, Generic, TypeVar

import msgspec

from steersman.api.apps.v1 import ReplicaSet, ReplicaSetCondition
from steersman.api.core.v1 import Pod, PodTemplateSpec, ReplicationController
from steersman.client.api_resource import APIResource
from steersman.client.errors import ignoring, is_namespace_terminating, is_not_found
from steersman.client.informer import Key, key_of, new_or_old
from steersman.client.resources import PODS, REPLICA_SETS
from steersman.client.transport import Unreachable
from steersman.controllers.controller import Controller, ControllerDependencies
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
from steersman.controllers.workloads.expectations import Expectations
from steersman.controllers.workloads.pod_control import PodControl, pod_from_template, run_all, slow_start
from steersman.controllers.workloads.pod_ranking import pods_to_delete
from steersman.controllers.workloads.selectors import compile_selector, may_select
from steersman.machinery.built_in.pod_state import (
    is_active,
    is_available,
    is_ready,
    is_terminating,
    next_availability,
)
from steersman.machinery.errors.status import StatusError
from steersman.machinery.selectors.labels import Selector, from_label_selector
from steersman.machinery.values import times
from steersman.machinery.values.conditions import find_condition, without_conditions
from steersman.work import simulated_time
from steersman.work.work_queue import TryLater
from steersman.work.yielding import time_sliced

logger = logging.getLogger(__name__)

R = TypeVar("R", ReplicaSet, ReplicationController)

STATUS_INTERVAL: Final = 2.0
"""Seconds between two updates of the status while pods are being created."""
_BURST: Final = 500
"""Most pods that one reconciliation creates or deletes."""
_DELAY_PER_POD: Final = 50e-6
"""Seconds for each replica that a reconciliation is delayed after a change of a pod.

A reconciliation takes about this time. So a large set is reconciled less often while many of its pods change.
"""
_MAX_DELAY: Final = 0.5


class ReplicasController(Controller[Key], Generic[R]):
    """Keeps the desired number of pods. A key is the namespace and name of a set; subclasses define the kind of set."""

    resource: ClassVar[APIResource[Any]]

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._expected: Expectations[Key] = Expectations()
        self._control = PodControl(self.client, self.recorder, self.resource)
        self._sets = self.informers.for_resource(self.resource)
        self._pods = self.informers.for_resource(PODS)
        add_controller_index(self._sets)
        add_controller_index(self._pods)
        self._sets.on_change(self._set_changed)
        self._pods.on_change(self._pod_changed)

    @abstractmethod
    def selector(self, owner: R) -> Selector:
        """Return the selector of the set's pods."""

    async def compile_selector(self, owner: R) -> Selector:
        """Return the selector of the set's pods; a large one is compiled in a worker thread."""
        return self.selector(owner)

    def may_select(self, owner: R, labels: Mapping[str, str]) -> bool:
        """Return True if the set may select pods with these labels; the reconciliation checks it exactly."""
        selector = self.selector(owner)
        return not selector.empty and selector.matches(labels)

    @abstractmethod
    def condition(self, **members: str) -> Any:
        """Return a new condition for the set's status."""

    def with_status(self, owner: R, status: dict[str, Any]) -> R:
        """Return a copy of the set with these members of its status replaced."""
        replace = msgspec.structs.replace
        return replace(owner, status=replace(owner.status, **status))

    def _set_changed(self, old: R | None, new: R | None) -> None:
        key = key_of(new_or_old(old, new))
        if old is None or new is None:
            self._expected.forget(key)
        self.queue.add(key)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is None or new.metadata.deletion_timestamp:
            for each in (old, new):
                if each is not None:
                    self._pod_deleted(each)
            return
        former, owner = owners_of_change(self._sets, old, new)
        if former is not None:
            self.queue.add(key_of(former))
        if owner is not None:
            if old is None:
                self._expected.observe_creation(key_of(owner))
            self._enqueue_soon(owner)
        for candidate in possible_owners(self._sets, self.may_select, old, new):
            self.queue.add(key_of(candidate))

    def _pod_deleted(self, pod: Pod) -> None:
        owner = resolve(self._sets, pod.metadata.namespace, controller_of(pod))
        if owner is not None:
            self._expected.observe_deletion(key_of(owner), pod.metadata.uid)
            self._enqueue_soon(owner)

    def _enqueue_soon(self, owner: R) -> None:
        """Queue a set with a short delay, as more of its pods may change."""
        self.queue.add_after(key_of(owner), min((owner.spec.replicas or 0) * _DELAY_PER_POD, _MAX_DELAY))

    async def sync(self, key: Key) -> None:
        owner = self._sets.get(*key)
        if owner is None:
            self._expected.forget(key)
        else:
            await self._sync(key, owner)

    async def _sync(self, key: Key, owner: R) -> None:
        may_act = self._expected.are_satisfied(key)
        selector = await self.compile_selector(owner)
        pods = (*controlled_by(self._pods, owner.metadata.uid), *orphans(self._pods, key[0]))
        claims = Claims(self.client, self.resource, owner, PODS, lambda pod: selector.matches(pod.metadata.labels))
        active = await claims.claim(filter(is_active, pods))
        terminating = 0
        async for pod in time_sliced(pods):
            going = is_terminating(pod) and is_controlled_by(pod, owner)
            terminating += going and selector.matches(pod.metadata.labels)
        error: Exception | None = None
        if may_act and not owner.metadata.deletion_timestamp:
            began = simulated_time.time()
            error = await self._manage(key, owner, active)
            if simulated_time.time() - began > STATUS_INTERVAL:  # newer status was written meanwhile
                active, terminating = self._current_pods(owner)
        now = times.unix(times.now())
        status = await self._new_status(owner, active, terminating, error, now)
        await self._write_status(owner, status)
        if error is not None:
            raise error
        all_available = status["available_replicas"] == status["ready_replicas"]
        self._enqueue_for_availability(key, owner, active, now, all_available=all_available)

    def _enqueue_for_availability(
        self, key: Key, owner: R, active: Sequence[Pod], now: int, *, all_available: bool
    ) -> None:
        """Queue the set for the moment when the next pod becomes available."""
        seconds = owner.spec.min_ready_seconds
        if seconds > 0 and not all_available:
            self.queue.add_after(key, next_availability(active, seconds, now) or seconds)

    async def _manage(self, key: Key, owner: R, active: Sequence[Pod]) -> Exception | None:
        """Create missing pods or delete surplus pods. Return the first error, None if all succeeded."""
        missing = (owner.spec.replicas or 0) - len(active)
        if missing > 0:
            return await self._create(key, owner, min(missing, _BURST))
        if missing < 0:
            return await self._delete(key, owner, active, min(-missing, _BURST))
        return None

    async def _create(self, key: Key, owner: R, count: int) -> Exception | None:
        self._expected.expect(key, creations=count)
        pod = pod_from_template(owner.spec.template or PodTemplateSpec(), self.resource, owner)

        async def create(_: int) -> None:
            with ignoring(is_namespace_terminating):
                await self._control.create(pod, owner)

        telling = asyncio.create_task(self._update_status_meanwhile(key, owner), name=f"status of {'/'.join(key)}")
        try:
            succeeded, error = await slow_start(count, create)
        finally:
            telling.cancel()
            await asyncio.wait([telling])
        self._expected.observe_creation(key, count - succeeded)
        return error

    def _current_pods(self, owner: R) -> tuple[list[Pod], int]:
        """Return the set's active pods and the number of its terminating pods, by the informer's current state."""
        pods = controlled_by(self._pods, owner.metadata.uid)
        return list(filter(is_active, pods)), sum(map(is_terminating, pods))

    async def _update_status_meanwhile(self, key: Key, owner: R) -> None:
        """Update the status every two seconds while many pods are being created, which may take long on a busy event
        loop.
        """
        while True:
            await simulated_time.sleep(STATUS_INTERVAL)
            current = self._sets.get(*key)
            if current is None or current.metadata.uid != owner.metadata.uid:
                return
            active, terminating = self._current_pods(owner)
            status = await self._new_status(current, active, terminating, None, times.unix(times.now()))
            status["conditions"] = current.status.conditions
            try:
                await self._write_status(current, status)
            except (StatusError, Unreachable) as error:
                logger.debug("%s: status of %s: %s", self.name, key, error)

    async def _delete(self, key: Key, owner: R, active: Sequence[Pod], count: int) -> Exception | None:
        chosen = pods_to_delete(active, self._related(owner), count, times.unix(times.now()))
        self._expected.expect(key, deletions=(pod.metadata.uid for pod in chosen))

        async def delete(pod: Pod) -> None:
            try:
                await self._control.delete(pod, owner)
            except StatusError as error:
                self._expected.observe_deletion(key, pod.metadata.uid)
                if not is_not_found(error):
                    raise TryLater(f"unable to delete pods: {error}") from error
            except Unreachable:
                self._expected.observe_deletion(key, pod.metadata.uid)
                raise

        errors = await run_all([partial(delete, pod) for pod in chosen])
        return errors[0] if errors else None

    def _related(self, owner: R) -> Iterable[Pod]:
        """Yield the pods of all sets that have the same controller as this set."""
        reference = controller_of(owner)
        if reference is None:
            return
        for each in controlled_by(self._sets, reference.uid):
            yield from controlled_by(self._pods, each.metadata.uid)

    async def _write_status(self, owner: R, status: dict[str, Any]) -> None:
        """Update the status if it has changed. After a refusal, retry once on the newest version of the set."""
        changed = self.with_status(owner, status)
        if changed.status == owner.status and owner.metadata.generation == owner.status.observed_generation:
            return
        try:
            await self.client.update_status(self.resource, changed)
        except StatusError:
            fresh = await self.client.get(self.resource, owner.metadata.name, owner.metadata.namespace)
            status["observed_generation"] = owner.metadata.generation
            await self.client.update_status(self.resource, self.with_status(fresh, status))

    async def _new_status(
        self, owner: R, active: Sequence[Pod], terminating: int, error: Exception | None, now: int
    ) -> dict[str, Any]:
        labels = (owner.spec.template.metadata.labels if owner.spec.template else {}).items()
        seconds = owner.spec.min_ready_seconds
        fully_labelled = ready = available = 0
        async for pod in time_sliced(active):
            fully_labelled += labels <= pod.metadata.labels.items()
            if is_ready(pod):
                ready += 1
                available += seconds == 0 or is_available(pod, seconds, now)
        return {
            "replicas": len(active),
            "fully_labeled_replicas": fully_labelled,
            "ready_replicas": ready,
            "available_replicas": available,
            "terminating_replicas": terminating,
            "observed_generation": owner.metadata.generation,
            "conditions": self._conditions(owner, len(active), error),
        }

    def _conditions(self, owner: R, active: int, error: Exception | None) -> list[Any]:
        """Return the conditions; ReplicaFailure reports the first error."""
        conditions: list[Any] = list(owner.status.conditions)
        if error is None:
            return without_conditions(conditions, "ReplicaFailure")
        if find_condition(conditions, "ReplicaFailure") is None:
            more = active - (owner.spec.replicas or 0)
            conditions.append(
                self.condition(
                    type="ReplicaFailure",
                    status="True",
                    last_transition_time=times.now(),
                    message=str(error),
                    reason="FailedCreate" if more < 0 else "FailedDelete" if more > 0 else "",
                )
            )
        return conditions


class ReplicaSetController(ReplicasController[ReplicaSet]):
    """Keeps the desired number of pods of ReplicaSets. A key is the namespace and name of a ReplicaSet."""

    name = "replicaset-controller"
    account = "replicaset-controller"
    resource = REPLICA_SETS

    def selector(self, owner: ReplicaSet) -> Selector:
        return from_label_selector(owner.spec.selector)

    async def compile_selector(self, owner: ReplicaSet) -> Selector:
        return await compile_selector(owner.spec.selector)

    def may_select(self, owner: ReplicaSet, labels: Mapping[str, str]) -> bool:
        return may_select(owner.spec.selector, labels)

    def condition(self, **members: str) -> ReplicaSetCondition:
        return ReplicaSetCondition(**members)
