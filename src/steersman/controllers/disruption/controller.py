"""Controller of PodDisruptionBudgets' status, which also clears stale DisruptionTarget conditions
(pkg/controller/disruption).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, NamedTuple

import msgspec

from steersman.api.core.v1 import Pod, PodCondition
from steersman.api.policy.v1 import PodDisruptionBudget
from steersman.client.errors import is_conflict
from steersman.client.events import reference
from steersman.client.indexes import BY_LABEL, by_label, with_labels
from steersman.client.informer import Key, key_of, new_or_old
from steersman.client.resources import POD_DISRUPTION_BUDGETS, PODS
from steersman.client.transport import Unreachable
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.controllers.disruption.budgets import (
    PodCounts,
    desired_healthy,
    failed_status,
    needs_scale,
    new_status,
    unmanaged_message,
)
from steersman.controllers.disruption.scales import Scales
from steersman.controllers.workloads.controller_ref import controller_of
from steersman.controllers.workloads.selectors import compile_selector
from steersman.machinery.built_in.pod_state import is_terminal
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.status import StatusError
from steersman.machinery.selectors.labels import Selector
from steersman.machinery.values import times
from steersman.machinery.values.conditions import find_condition, with_condition
from steersman.work.work_queue import TryLater
from steersman.work.yielding import time_sliced

STALE_AFTER: Final = 120.0
"""Seconds after which the DisruptionTarget condition of a pod that is not being deleted is stale."""
_TARGET: Final = "DisruptionTarget"
_BY_KUBELET: Final = "TerminationByKubelet"
_DELAY_PER_POD: Final = 200e-6
"""Seconds for each pod of a budget that a reconciliation is delayed after a change of a pod."""
_MAX_DELAY: Final = 0.5


class DisruptionKey(NamedTuple):
    """Key of a budget, or of a pod with a DisruptionTarget condition."""

    is_budget: bool
    namespace: str
    name: str


class DisruptionController(Controller[DisruptionKey]):
    """Keeps the status of budgets, and clears stale conditions. A key is a budget or a pod."""

    name = "disruption-controller"
    account = "disruption-controller"
    component = "controllermanager"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._scales = Scales(self.client, self.informers)
        self._selectors: dict[Key, Selector] = {}
        self._sizes: dict[Key, int] = {}
        """Number of pods of each budget at its last reconciliation."""
        self._budgets = self.informers.for_resource(POD_DISRUPTION_BUDGETS)
        self._pods = self.informers.for_resource(PODS)
        self._pods.add_index(BY_LABEL, by_label)
        self._budgets.on_change(self._budget_changed)
        self._pods.on_change(self._pod_changed)

    def _budget_changed(self, old: PodDisruptionBudget | None, new: PodDisruptionBudget | None) -> None:
        key = key_of(new_or_old(old, new))
        if new is None:
            self._selectors.pop(key, None)
            self._sizes.pop(key, None)
        elif old is None or old.spec != new.spec:
            self._selectors.pop(key, None)
        self.queue.add(DisruptionKey(True, *key))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new_or_old(old, new)
        key = self._budget_of(pod)
        if key is not None:
            wait = min(self._sizes.get(key, 0) * _DELAY_PER_POD, _MAX_DELAY)
            self.queue.add_after(DisruptionKey(True, *key), wait)
        stays_after = seconds_to_stay(pod) if new is not None else None
        if stays_after is not None:
            self.queue.add_after(DisruptionKey(False, *key_of(pod)), stays_after)

    def _budget_of(self, pod: Pod) -> Key | None:
        """Return the budget of a pod. If several match, any of them is returned, and an event is recorded."""
        labels, namespace = pod.metadata.labels, pod.metadata.namespace
        keys = [
            key
            for each in self._budgets.list(namespace)
            if (selector := self._selectors.get(key := key_of(each))) is not None and selector.matches(labels)
        ]
        if len(keys) > 1:
            text = (
                f"Pod {quote(namespace)}/{quote(pod.metadata.name)} matches multiple PodDisruptionBudgets.  "
                f"Chose {quote(keys[0][1])} arbitrarily."
            )
            self.recorder.event(reference(PODS, pod), "Warning", "MultiplePodDisruptionBudgets", text)
        return keys[0] if keys else None

    async def sync(self, key: DisruptionKey) -> None:
        if not key.is_budget:
            await self._clear_condition(key)
            return
        budget = self._budgets.get(key.namespace, key.name)
        if budget is None:
            return
        try:
            await self._sync(budget)
        except (StatusError, TryLater, Unreachable) as error:
            if isinstance(error, StatusError) and is_conflict(error):
                raise
            failed = failed_status(budget, str(error))
            await self.client.update_status(POD_DISRUPTION_BUDGETS, msgspec.structs.replace(budget, status=failed))

    async def _sync(self, budget: PodDisruptionBudget) -> None:
        """Count the pods of a budget and update its status. Raises StatusError, Unreachable, TryLater."""
        about, key = reference(POD_DISRUPTION_BUDGETS, budget), key_of(budget)
        counted, now = PodCounts(), times.unix_now()
        owned: dict[str, Pod] = {}
        size, has_unmanaged = 0, False
        async for pod in self._pods_of(budget):
            size += 1
            counted.add(pod, budget.status.disrupted_pods, now)
            owner = controller_of(pod)
            if owner is None:
                has_unmanaged = True
            else:
                owned.setdefault(owner.uid, pod)
        self._sizes[key] = size
        if not size:
            self.recorder.event(about, "Normal", "NoPods", "No matching pods found")
        expected = size
        if needs_scale(budget):
            try:
                expected = await self._expected(owned)
            except (StatusError, TryLater, Unreachable) as error:
                text = f"Failed to calculate the number of expected pods: {error}"
                self.recorder.event(about, "Warning", "CalculateExpectedPodCountFailed", text)
                raise
            if has_unmanaged:
                self.recorder.event(about, "Warning", "UnmanagedPods", unmanaged_message(budget.spec.selector))
        for pod in counted.late:
            text = (
                f"Pod was expected by PDB {key[0]}/{key[0]} to be deleted but it wasn't"  # as upstream: namespace twice
            )
            self.recorder.event(reference(PODS, pod), "Warning", "NotDeleted", text)
        status = new_status(budget, counted, desired_healthy(budget, expected), expected)
        if status is not None:
            await self.client.update_status(POD_DISRUPTION_BUDGETS, msgspec.structs.replace(budget, status=status))
        if counted.next_timeout is not None:
            self.queue.add_after(DisruptionKey(True, *key), counted.next_timeout)

    async def _selector_of(self, budget: PodDisruptionBudget) -> Selector:
        """Return the selector of a budget.

        The selector is cached before the budget's pods are listed, so that no change of a pod is missed.
        """
        key = key_of(budget)
        cached = self._selectors.get(key)
        if cached is None:
            cached = await compile_selector(budget.spec.selector)
            if (current := self._budgets.get(*key)) is not None and current.spec == budget.spec:
                self._selectors[key] = cached
        return cached

    async def _pods_of(self, budget: PodDisruptionBudget) -> AsyncIterator[Pod]:
        """Yield the pods that a budget selects, in time slices."""
        matches = (await self._selector_of(budget)).matches
        selector = budget.spec.selector
        labels = {} if selector is None else selector.match_labels
        async for pod in time_sliced(with_labels(self._pods, budget.metadata.namespace, labels)):
            if matches(pod.metadata.labels):
                yield pod

    async def _expected(self, owned: dict[str, Pod]) -> int:
        """Return the number of pods that the owners of these pods request. Raises StatusError, Unreachable, TryLater."""
        scales: dict[str, int] = {}
        for pod in owned.values():
            owner = controller_of(pod)
            assert owner is not None
            if owner.uid in scales:
                continue
            scale = await self._scales.get(owner, pod.metadata.namespace)
            if scale is None:
                raise TryLater(f"found no controllers for pod {quote(pod.metadata.name)}")
            scales[scale[0]] = scale[1]
        return sum(scales.values())

    async def _clear_condition(self, key: DisruptionKey) -> None:
        """Set the DisruptionTarget condition of a pod to False once it is stale."""
        pod = self._pods.get(key.namespace, key.name)
        wait = seconds_to_stay(pod) if pod is not None else None
        if pod is None or wait is None:
            return
        if wait > 0:
            self.queue.add_after(key, wait)
            return
        cleared = PodCondition(type=_TARGET, status="False", observed_generation=pod.metadata.generation)
        conditions = with_condition(pod.status.conditions, cleared)
        replace = msgspec.structs.replace
        await self.client.update_status(PODS, replace(pod, status=replace(pod.status, conditions=conditions)))


def seconds_to_stay(pod: Pod) -> float | None:
    """Return the seconds until a pod's DisruptionTarget condition is stale.

    Return None if the pod has no such condition, or is being deleted.
    """
    condition = find_condition(pod.status.conditions, _TARGET)
    if (
        pod.metadata.deletion_timestamp
        or condition is None
        or condition.status != "True"
        or condition.reason == _BY_KUBELET
        or is_terminal(pod)
    ):
        return None
    since = times.parse(condition.last_transition_time).timestamp() if condition.last_transition_time else 0.0
    return max(since + STALE_AFTER - times.unix_now(), 0.0)
