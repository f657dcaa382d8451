"""Reconciliation of Deployments (pkg/controller/deployment)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from steersman.api.apps.v1 import Deployment, DeploymentStatus, ReplicaSet
from steersman.api.core.v1 import Pod
from steersman.api.meta.v1 import LabelSelector
from steersman.client.errors import ignoring, is_namespace_terminating, is_not_found
from steersman.client.events import reference
from steersman.client.informer import Key, key_of, new_or_old
from steersman.client.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.controllers.deployment import annotation_values, rollout
from steersman.controllers.deployment.fence_posts import (
    MAX_INT32,
    active,
    by_creation,
    has_progress_deadline,
    replicas_of,
)
from steersman.controllers.deployment.replica_sets import DeploymentState, SameTemplate
from steersman.controllers.deployment.status import (
    PROGRESSING,
    TIMED_OUT,
    is_complete,
    progressing,
    rollout_status,
    seconds_left,
    status_of,
)
from steersman.controllers.workloads.controller_ref import (
    Claims,
    add_controller_index,
    controlled_by,
    controller_of,
    orphans,
    owners_of_change,
    possible_owners,
    resolve,
)
from steersman.controllers.workloads.copies import mutable_copy
from steersman.controllers.workloads.selectors import compile_selector, may_own
from steersman.machinery.built_in.pod_state import is_terminal
from steersman.machinery.values.conditions import find_condition

_PAUSED = "DeploymentPaused"


class DeploymentController(Controller[Key]):
    """Reconciles Deployments. A key is the namespace and name of a Deployment."""

    name = "deployment-controller"
    account = "deployment-controller"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._deployments = self.informers.for_resource(DEPLOYMENTS)
        self._sets = self.informers.for_resource(REPLICA_SETS)
        self._pods = self.informers.for_resource(PODS)
        self._is_same_template = SameTemplate()
        add_controller_index(self._sets)
        add_controller_index(self._pods)
        self._deployments.on_change(self._changed)
        self._sets.on_change(self._set_changed)
        self._pods.on_change(self._pod_changed)

    def _changed(self, old: Deployment | None, new: Deployment | None) -> None:
        self.queue.add(key_of(new_or_old(old, new)))

    def _set_changed(self, old: ReplicaSet | None, new: ReplicaSet | None) -> None:
        owners = [*owners_of_change(self._deployments, old, new)]
        if new is not None:
            owners += possible_owners(self._deployments, may_own, old, new)
        for owner in owners:
            if owner is not None:
                self.queue.add(key_of(owner))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Queue a Deployment with strategy Recreate when its last pod is gone."""
        if new is not None or old is None:
            return
        namespace = old.metadata.namespace
        replica_set = resolve(self._sets, namespace, controller_of(old))
        if replica_set is None:
            return
        owner = resolve(self._deployments, namespace, controller_of(replica_set))
        if owner is None or owner.spec.strategy.type != "Recreate":
            return
        sets = controlled_by(self._sets, owner.metadata.uid)
        if not any(controlled_by(self._pods, each.metadata.uid) for each in sets):
            self.queue.add(key_of(owner))

    async def sync(self, key: Key) -> None:
        candidates = self._deployments.get(*key)
        if candidates is None:
            return
        with ignoring(is_namespace_terminating):
            await self._sync(mutable_copy(candidates))

    async def _sync(self, deployment: Deployment) -> None:
        if deployment.spec.selector == LabelSelector():
            await self._refuse_empty_selector(deployment)
            return
        selector = await compile_selector(deployment.spec.selector)
        claims = Claims(
            self.client, DEPLOYMENTS, deployment, REPLICA_SETS, lambda each: selector.matches(each.metadata.labels)
        )
        uid, namespace = deployment.metadata.uid, deployment.metadata.namespace
        candidates = (*controlled_by(self._sets, uid), *orphans(self._sets, namespace))
        sets = by_creation(await claims.claim(candidates))
        state = await DeploymentState.find(
            self.client, self.recorder, self._sets, self._is_same_template, deployment, sets
        )
        if deployment.metadata.deletion_timestamp:
            await state.update_new()
            await self._write_status(state, status_of(state.deployment, state.new, state.all_sets))
            return
        await self._update_pause_condition(state)
        if deployment.spec.paused:
            await state.update_new()
            await self._scale(state)
        elif annotation_values.rollback_to(deployment) is not None:
            await state.update_new()
            await state.create_new()
            await rollout.roll_back(self.client, self.recorder, state)
        else:
            await state.update_new()
            if _was_scaled(state):
                await self._scale(state)
            else:
                await self._roll_out(state)

    async def _refuse_empty_selector(self, deployment: Deployment) -> None:
        text = "This deployment is selecting all pods. A non-empty selector is required."
        self.recorder.event(reference(DEPLOYMENTS, deployment), "Warning", "SelectingAll", text)
        if deployment.status.observed_generation < deployment.metadata.generation:
            deployment.status.observed_generation = deployment.metadata.generation
            await self.client.update_status(DEPLOYMENTS, deployment)

    async def _update_pause_condition(self, state: DeploymentState) -> None:
        """Set the condition Progressing when a Deployment is paused, and when it is resumed."""
        deployment = state.deployment
        condition = find_condition(deployment.status.conditions, PROGRESSING)
        if not has_progress_deadline(deployment) or (condition is not None and condition.reason == TIMED_OUT):
            return
        is_reported = condition is not None and condition.reason == _PAUSED
        if deployment.spec.paused == is_reported:
            return
        reason_and_message = (
            ("DeploymentResumed", "Deployment is resumed") if is_reported else (_PAUSED, "Deployment is paused")
        )
        await state.write_conditions(progressing("Unknown", *reason_and_message))

    async def _scale(self, state: DeploymentState) -> None:
        await rollout.scale(self.client, self.recorder, state)
        if state.deployment.spec.paused and annotation_values.rollback_to(state.deployment) is None:
            await self._clean_up(state)
        await self._write_status(state, status_of(state.deployment, state.new, state.all_sets))

    async def _roll_out(self, state: DeploymentState) -> None:
        if state.deployment.spec.strategy.type == "Recreate":
            moved = await self._recreate(state)
        else:
            await state.create_new()
            moved = await rollout.rolling_update(self.client, self.recorder, state)
        if not moved and is_complete(state.deployment, state.deployment.status):
            await self._clean_up(state)
        status = rollout_status(state.deployment, state.new, state.all_sets)
        if not await self._write_status(state, status):
            self._enqueue_for_deadline(state.deployment, status)

    async def _recreate(self, state: DeploymentState) -> bool:
        """Scale down all old ReplicaSets, then create new pods. Return True while old pods exist."""
        if await rollout.scale_to(self.client, self.recorder, state, {each.metadata.uid: 0 for each in state.old}):
            return True
        if any(each.status.replicas for each in state.old) or self._runs_old_pods(state):
            return True
        await state.create_new()
        assert state.new is not None
        desired = {state.new.metadata.uid: replicas_of(state.deployment)}
        await rollout.scale_to(self.client, self.recorder, state, desired)
        return False

    def _runs_old_pods(self, state: DeploymentState) -> bool:
        return any(not is_terminal(pod) for each in state.old for pod in controlled_by(self._pods, each.metadata.uid))

    def _enqueue_for_deadline(self, deployment: Deployment, status: DeploymentStatus) -> None:
        """Queue the Deployment for the end of its progress deadline."""
        condition = find_condition(deployment.status.conditions, PROGRESSING)
        if not has_progress_deadline(deployment) or condition is None:
            return
        if not is_complete(deployment, status) and condition.reason != TIMED_OUT:
            self.queue.add_after(key_of(deployment), max(seconds_left(deployment, condition), 0) + 1)

    async def _write_status(self, state: DeploymentState, status: DeploymentStatus) -> bool:
        """Update the status if it has changed. Return True if it was written."""
        deployment = state.deployment
        if status == deployment.status:
            return False
        await self.client.update_status(DEPLOYMENTS, msgspec.structs.replace(deployment, status=status))
        return True

    async def _clean_up(self, state: DeploymentState) -> None:
        """Delete the oldest ReplicaSets beyond the history limit."""
        limit = state.deployment.spec.revision_history_limit
        if limit is None or limit == MAX_INT32:
            return
        alive = [each for each in state.old if not each.metadata.deletion_timestamp]
        for each in sorted(alive, key=lambda each: annotation_values.revision_of(each) or 0)[
            : max(len(alive) - limit, 0)
        ]:
            if each.status.replicas or replicas_of(each) or each.metadata.generation > each.status.observed_generation:
                continue
            with ignoring(is_not_found):
                await self.client.delete(REPLICA_SETS, each.metadata.name, each.metadata.namespace)


def _was_scaled(state: DeploymentState) -> bool:
    """Return True if the desired number of pods differs from the one in the annotations of the ReplicaSets."""
    desired = replicas_of(state.deployment)
    sizes: Sequence[int | None] = [annotation_values.desired_replicas(each) for each in active(state.all_sets)]
    return any(size is not None and size != desired for size in sizes)
