"""Reconciliation of StatefulSets (pkg/controller/statefulset)."""

from __future__ import annotations

import msgspec

from steersman.api.apps.v1 import ControllerRevision, StatefulSet, StatefulSetStatus
from steersman.api.core.v1 import Pod
from steersman.client.errors import is_conflict
from steersman.client.informer import Key, key_of, new_or_old
from steersman.client.resources import CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.controllers.stateful_set import history
from steersman.controllers.stateful_set.identity import is_member
from steersman.controllers.stateful_set.pods import StatefulPods
from steersman.controllers.stateful_set.update import Update, complete_rolling_update
from steersman.controllers.workloads.controller_ref import (
    Claims,
    add_controller_index,
    controlled_by,
    orphans,
    owners_of_change,
    possible_owners,
)
from steersman.controllers.workloads.expectations import TIMEOUT
from steersman.controllers.workloads.own_writes import OwnWrites
from steersman.controllers.workloads.selectors import compile_selector, may_own
from steersman.machinery.built_in.pod_state import next_availability
from steersman.machinery.errors.status import StatusError
from steersman.machinery.selectors.labels import Selector
from steersman.machinery.values import times


class StatefulSetController(Controller[Key]):
    """Reconciles StatefulSets. A key is the namespace and name of a StatefulSet."""

    name = "statefulset-controller"
    account = "statefulset-controller"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._sets = self.informers.for_resource(STATEFUL_SETS)
        self._pods = self.informers.for_resource(PODS)
        self._revisions = self.informers.for_resource(CONTROLLER_REVISIONS)
        claims = self.informers.for_resource(PERSISTENT_VOLUME_CLAIMS)
        self._stateful_pods = StatefulPods(self.client, self.recorder, claims)
        self._own_writes: OwnWrites[Key] = OwnWrites()
        add_controller_index(self._pods)
        add_controller_index(self._revisions)
        self._sets.on_change(self._changed)
        self._pods.on_change(self._pod_changed)

    def _changed(self, old: StatefulSet | None, new: StatefulSet | None) -> None:
        key = key_of(new_or_old(old, new))
        if old is None:
            self._stateful_pods.expected.forget(key)
        elif new is None:
            self._forget(key)
        self.queue.add(key)

    def _forget(self, key: Key) -> None:
        self._stateful_pods.expected.forget(key)
        self._own_writes.forget(key)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new_or_old(old, new)
        for owner in owners_of_change(self._sets, old, new):
            if owner is not None:
                self._observe_pod(key_of(owner), pod, is_new=old is None, goes=new is None)
        for candidate in () if new is None else possible_owners(self._sets, may_own, old, new):
            self.queue.add(key_of(candidate))

    def _observe_pod(self, key: Key, pod: Pod, *, is_new: bool, goes: bool) -> None:
        if is_new:
            self._stateful_pods.expected.observe_creation(key)
        if goes or pod.metadata.deletion_timestamp:
            self._stateful_pods.expected.observe_deletion(key, pod.metadata.uid)
        self.queue.add(key)

    async def sync(self, key: Key) -> None:
        stateful_set = self._sets.get(*key)
        if stateful_set is None:
            self._forget(key)
        elif not self._stateful_pods.expected.are_satisfied(key):
            self.queue.add_after(key, TIMEOUT + 1)
        elif not self._own_writes.is_stale(key, stateful_set):
            await self._sync(key, stateful_set)

    async def _sync(self, key: Key, stateful_set: StatefulSet) -> None:
        selector = await compile_selector(stateful_set.spec.selector)
        revisions = await self._own_revisions(stateful_set, selector)
        pods = await self._claim_pods(stateful_set, selector)
        found_revisions = await history.find_revisions(self.client, stateful_set, revisions)
        now = times.unix(times.now())
        self._stateful_pods.expected.forget(key)
        update = Update(self._stateful_pods, stateful_set, found_revisions, pods, now)
        try:
            await update.run()
        finally:
            complete_rolling_update(stateful_set, update.status)
            await self._write_status(key, stateful_set, update.status)
        await history.truncate(self.client, stateful_set, revisions, found_revisions, pods)
        seconds = stateful_set.spec.min_ready_seconds
        if seconds > 0 and update.status.ready_replicas != update.status.available_replicas:
            self.queue.add_after(key, next_availability(pods, seconds, now) or seconds)

    async def _own_revisions(self, stateful_set: StatefulSet, selector: Selector) -> list[ControllerRevision]:
        """Return the revisions of a set, after adopting those without a controller."""
        claims = Claims(
            self.client,
            STATEFUL_SETS,
            stateful_set,
            CONTROLLER_REVISIONS,
            lambda each: selector.matches(each.metadata.labels),
        )
        own = controlled_by(self._revisions, stateful_set.metadata.uid)
        adopted = await claims.claim(orphans(self._revisions, stateful_set.metadata.namespace))
        return [*(each for each in own if selector.matches(each.metadata.labels)), *adopted]

    async def _claim_pods(self, stateful_set: StatefulSet, selector: Selector) -> list[Pod]:
        def matches(pod: Pod) -> bool:
            return selector.matches(pod.metadata.labels) and is_member(stateful_set, pod)

        claims = Claims(self.client, STATEFUL_SETS, stateful_set, PODS, matches)
        uid, namespace = stateful_set.metadata.uid, stateful_set.metadata.namespace
        return await claims.claim((*controlled_by(self._pods, uid), *orphans(self._pods, namespace)))

    async def _write_status(self, key: Key, stateful_set: StatefulSet, status: StatefulSetStatus) -> None:
        """Update the status if it has changed. After a conflict, retry once on the newest version of the set."""
        if not _has_changed(stateful_set.status, status):
            return
        replace = msgspec.structs.replace
        try:
            written = await self.client.update_status(STATEFUL_SETS, replace(stateful_set, status=status))
        except StatusError as error:
            if not is_conflict(error):
                raise
            fresh = await self.client.get(STATEFUL_SETS, key[1], key[0])
            written = await self.client.update_status(STATEFUL_SETS, replace(fresh, status=status))
        self._own_writes.record(key, written)


def _has_changed(old: StatefulSetStatus, new: StatefulSetStatus) -> bool:
    """Return True if the status must be written. A changed collision count alone is not written."""
    if new.observed_generation > old.observed_generation:
        return True
    ignored = {"collision_count": None, "observed_generation": 0}
    return msgspec.structs.replace(old, **ignored) != msgspec.structs.replace(new, **ignored)
