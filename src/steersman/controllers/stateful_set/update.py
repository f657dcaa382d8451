"""One reconciliation step of a StatefulSet's pods (stateful_set_control.go)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import chain
from typing import Final, overload

from steersman.api.apps.v1 import StatefulSet, StatefulSetStatus
from steersman.api.core.v1 import Pod
from steersman.controllers.stateful_set.history import Revisions
from steersman.controllers.stateful_set.identity import (
    has_identity,
    has_storage,
    new_pod,
    ordinal_of,
    ordinals,
    replicas_of,
    revision_of,
)
from steersman.controllers.stateful_set.pods import StatefulPods
from steersman.controllers.workloads.pod_control import slow_start
from steersman.machinery.built_in.pod_state import is_available, is_ready, is_terminal
from steersman.work.yielding import TimeSlice

_STOP: Final = True
"""Result of an action after which the other pods must wait."""


class _Replicas(Sequence[Pod]):
    """Pods of a range of ordinals, in order.

    A missing pod is created as an object only while it is processed, because a set may have 2^31-1 replicas.
    """

    def __init__(self, numbers: range, present: Mapping[int, Pod], make: Callable[[int], Pod]) -> None:
        """Create the sequence; `make` returns the new pod of an ordinal that is not in `present`."""
        self._numbers = numbers
        self._present = present
        self._make = make

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, at: int) -> Pod: ...

    @overload
    def __getitem__(self, at: slice) -> _Replicas: ...

    def __getitem__(self, at: int | slice) -> Pod | _Replicas:
        numbers = self._numbers[at]
        if isinstance(numbers, range):
            return _Replicas(numbers, self._present, self._make)
        return self._present.get(numbers) or self._make(numbers)


class Update:
    """Snapshot of a StatefulSet and its pods: the replicas in order, and the condemned pods in reverse order."""

    def __init__(
        self, pods: StatefulPods, stateful_set: StatefulSet, found: Revisions, present: Sequence[Pod], now: int
    ) -> None:
        self._pods = pods
        self._set = stateful_set
        self._found = found
        self._now = now
        numbers = ordinals(stateful_set)
        of_number = {ordinal_of(pod): pod for pod in present}
        self._replicas = _Replicas(numbers, of_number, self._new_pod)
        self._kept = [pod for number, pod in of_number.items() if number in numbers]
        """Existing pods that are replicas."""
        self._condemned = sorted(
            (pod for number, pod in of_number.items() if number >= 0 and number not in numbers),
            key=ordinal_of,
            reverse=True,
        )
        self.status = self._status(present)

    def _new_pod(self, number: int) -> Pod:
        """Return a new pod: of the current revision below the partition or during an update, else of the update
        revision.
        """
        found, strategy = self._found, self._set.spec.update_strategy
        start = ordinals(self._set).start
        if strategy.rolling_update is None:
            old = number - start < self._set.status.current_replicas and strategy.type == "RollingUpdate"
        else:
            old = number - start < (strategy.rolling_update.partition or 0)
        if old:
            return new_pod(found.current_set, number, found.current.metadata.name)
        return new_pod(found.update_set, number, found.update.metadata.name)

    def _status(self, pods: Sequence[Pod]) -> StatefulSetStatus:
        current, update = self._found.current.metadata.name, self._found.update.metadata.name
        present = [pod for pod in pods if pod.status.phase]
        revisions = [revision_of(pod) for pod in present if not pod.metadata.deletion_timestamp]
        ready = [pod for pod in pods if pod.status.phase == "Running" and is_ready(pod)]
        return StatefulSetStatus(
            observed_generation=self._set.metadata.generation,
            current_revision=current,
            update_revision=update,
            collision_count=self._found.collision_count,
            conditions=self._set.status.conditions,
            replicas=len(present),
            ready_replicas=len(ready),
            available_replicas=sum(map(self._is_available, ready)),
            current_replicas=revisions.count(current),
            updated_replicas=revisions.count(update),
        )

    def _is_available(self, pod: Pod) -> bool:
        return is_available(pod, self._set.spec.min_ready_seconds, self._now)

    def _is_unavailable(self, pod: Pod) -> bool:
        return pod.metadata.deletion_timestamp is not None or not self._is_available(pod)

    @property
    def _one_by_one(self) -> bool:
        return self._set.spec.pod_management_policy != "Parallel"

    async def run(self) -> None:
        """Create, restore and delete the pods that can be processed now. Raises StatusError, Unreachable, TryLater.

        `status` is up to date in any case.
        """
        if self._set.metadata.deletion_timestamp:
            return
        try:
            if await self._for_all(self._replicas, self._replica):
                return
            if await self._for_all(self._condemned, self._claims_of_condemned):
                return
            waited_for = self._first_unavailable()
            if await self._for_all(self._condemned, lambda pod: self._condemn(pod, waited_for)):
                return
        finally:
            self.status = self._status([*self._kept, *self._condemned])
        if self._set.spec.update_strategy.type != "OnDelete":
            await self._delete_last_outdated()

    async def _for_all(self, pods: Sequence[Pod], act: Callable[[Pod], Awaitable[bool]]) -> bool:
        """Call `act` for pods, one at a time until a call returns _STOP, or for all with the policy Parallel.

        Return True if a call returned _STOP.
        """
        if not self._one_by_one:
            _, error = await slow_start(len(pods), lambda number: act(pods[number]))
            if error is not None:
                raise error
            return False
        time_slice = TimeSlice()
        for pod in pods:
            if await act(pod) is _STOP:
                return _STOP
            await time_slice.pause_if_over()
        return False

    def _first_unavailable(self) -> Pod | None:
        everything = chain(self._replicas, reversed(self._condemned))
        return next(filter(self._is_unavailable, everything), None)

    async def _replica(self, pod: Pod) -> bool:
        """Create or restore a replica. Return _STOP if the pods after it must wait."""
        stateful_set = self._set
        if is_terminal(pod):
            if not pod.metadata.deletion_timestamp:
                await self._pods.delete(stateful_set, pod)
            return _STOP
        if not pod.status.phase:
            if self._pods.has_stale_claims(stateful_set, pod):
                return _STOP
            await self._pods.create(stateful_set, pod)
            if self._one_by_one:
                return _STOP
        elif pod.status.phase == "Pending":
            await self._pods.create_missing(stateful_set, pod)
        if self._one_by_one and (
            pod.metadata.deletion_timestamp or pod.status.phase != "Running" or not self._is_available(pod)
        ):
            return _STOP
        update_set = self._found.update_set
        is_right = has_identity(pod) and has_storage(stateful_set, pod)
        if pod.status.phase and not (is_right and self._pods.owners_are_right(update_set, pod)):
            await self._pods.restore(update_set, pod)
        return False

    async def _claims_of_condemned(self, pod: Pod) -> bool:
        await self._pods.put_owners(self._found.update_set, pod)
        return False

    async def _condemn(self, pod: Pod, waited_for: Pod | None) -> bool:
        """Delete a condemned pod, once the pods before it are available. Return _STOP if the other pods must wait."""
        if pod.metadata.deletion_timestamp:
            return self._one_by_one
        serves = pod.status.phase == "Running" and self._is_available(pod)
        if not serves and self._one_by_one and pod is not waited_for:
            return _STOP
        await self._pods.delete(self._set, pod)
        return _STOP

    async def _delete_last_outdated(self) -> None:
        """Delete the last pod that is not of the update revision, if all pods after it are available."""
        rolling = self._set.spec.update_strategy.rolling_update
        partition = (rolling.partition or 0) if rolling else 0
        time_slice = TimeSlice()
        for at in reversed(range(partition, len(self._replicas))):
            pod = self._replicas[at]
            if revision_of(pod) != self._found.update.metadata.name and not pod.metadata.deletion_timestamp:
                await self._pods.delete(self._set, pod)
                self.status.current_replicas -= 1
                return
            if self._is_unavailable(pod):
                return
            await time_slice.pause_if_over()


def complete_rolling_update(stateful_set: StatefulSet, status: StatefulSetStatus) -> None:
    """Make the update revision the current one, if all pods have it and are ready."""
    desired = replicas_of(stateful_set)
    if stateful_set.spec.update_strategy.type == "RollingUpdate" and (
        status.updated_replicas == status.ready_replicas == status.replicas == desired
    ):
        status.current_replicas = status.updated_replicas
        status.current_revision = status.update_revision
