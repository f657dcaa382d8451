"""Controller that deletes pods whose devices have NoExecute taints they do not tolerate.

Follows pkg/controller/devicetainteviction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from steersman.api.core.v1 import ObjectReference, Pod, PodCondition
from steersman.api.meta.v1 import DeleteOptions, Preconditions
from steersman.api.resource.v1 import (
    DeviceRequestAllocationResult,
    DeviceTaint,
    DeviceToleration,
    ResourceClaim,
    ResourceSlice,
)
from steersman.client.errors import ignoring, is_not_found
from steersman.client.informer import Key, key_of
from steersman.client.pod_status import patch_pod_status
from steersman.client.resources import PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.machinery.built_in.resource_claims import (
    ClaimNotCreated,
    is_generated,
    is_owned_by,
    is_reserved_for,
    name_of,
)
from steersman.machinery.codec.serializer import to_plain
from steersman.machinery.values import times
from steersman.machinery.values.conditions import is_condition_true

NO_EXECUTE: Final = "NoExecute"
_BY_POOL: Final = "pool"


class DeviceTaintEviction(Controller[Key]):
    """Deletes pods by device taints. A key is the namespace and name of a pod."""

    name = "device-taint-eviction-controller"
    account = "device-taint-eviction-controller"
    component = "device-taint-eviction-controller"
    workers = 8

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._pods = self.informers.for_resource(PODS)
        self._claims = self.informers.for_resource(RESOURCE_CLAIMS)
        self._slices = self.informers.for_resource(RESOURCE_SLICES)
        self._claims.add_index(_BY_POOL, _pools_of_claim)
        self._slices.add_index(_BY_POOL, lambda each: (_pool(each.spec.driver, each.spec.pool.name),))
        self._due: set[str] = set()
        """Uids of pods whose deletion is scheduled."""
        self._evicted: set[str] = set()
        """Uids of pods that were deleted by this controller."""
        self._claims.on_change(self._claim_changed)
        self._pods.on_change(self._pod_changed)
        self._slices.on_change(self._slice_changed)

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        for claim in (old, new):
            if claim is not None and claim.status.allocation is not None:
                self._add_consumers(claim)

    def _add_consumers(self, claim: ResourceClaim) -> None:
        for each in claim.status.reserved_for:
            if not each.api_group and each.resource == "pods":
                self.queue.add((claim.metadata.namespace, each.name))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is None:
            if old is not None:
                self._due.discard(old.metadata.uid)
                self._evicted.discard(old.metadata.uid)
        elif new.spec.resource_claims and (old is None or _relevant_parts(old) != _relevant_parts(new)):
            self.queue.add(key_of(new))

    def _slice_changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        pools = {_pool(each.spec.driver, each.spec.pool.name) for each in (old, new) if each is not None}
        for pool in pools:
            for claim in self._claims.indexed(_BY_POOL, pool):
                self._add_consumers(claim)

    async def sync(self, key: Key) -> None:
        pod = self._pods.get(*key)
        if pod is None or pod.metadata.uid in self._evicted:
            return
        uid = pod.metadata.uid
        when = self._eviction_time(pod)
        if when is None:
            if uid in self._due:
                self._due.discard(uid)
                self._record_event(pod, "Cancelling deletion")
            return
        self._due.add(uid)
        left = when - times.unix_now()
        if left > 0:
            self.queue.add_after(key, left)
            return
        await self._evict(pod)

    def _eviction_time(self, pod: Pod) -> float | None:
        """Return the time at which a pod has to be deleted, in seconds since 1970; None if it may stay."""
        if not pod.spec.node_name:
            return None
        return min((time for claim in self._claims_of(pod) for time in self._eviction_times(claim)), default=None)

    def _claims_of(self, pod: Pod) -> Iterator[ResourceClaim]:
        """Yield the claims that a pod uses."""
        for pod_claim in pod.spec.resource_claims:
            try:
                name = name_of(pod, pod_claim)
            except ClaimNotCreated:
                continue
            claim = None if name is None else self._claims.get(pod.metadata.namespace, name)
            if claim is None or (is_generated(pod_claim) and not is_owned_by(claim, pod)):
                continue
            if is_reserved_for(claim, pod):
                yield claim

    def _eviction_times(self, claim: ResourceClaim) -> Iterator[float]:
        """Yield the time at which each taint of a claim's devices ends their use."""
        allocation = claim.status.allocation
        for result in allocation.devices.results if allocation is not None else ():
            for taint in self._taints(result):
                time = _tolerated_until(taint, result.tolerations)
                if time is not None:
                    yield time

    def _taints(self, result: DeviceRequestAllocationResult) -> Iterator[DeviceTaint]:
        """Yield the NoExecute taints of a device in the newest slices of its pool."""
        slices = self._slices.indexed(_BY_POOL, _pool(result.driver, result.pool))
        newest = max((each.spec.pool.generation for each in slices), default=0)
        for each in slices:
            if each.spec.pool.generation != newest:
                continue
            for device in each.spec.devices or ():
                if device.name == result.device:
                    yield from (taint for taint in device.taints if taint.effect == NO_EXECUTE)

    async def _evict(self, pod: Pod) -> None:
        namespace, name = key_of(pod)
        uid = pod.metadata.uid
        with ignoring(is_not_found):
            now = await self.client.get(PODS, name, namespace)
            if now.metadata.uid == uid and not now.metadata.deletion_timestamp:
                self._record_event(pod, "Marking for deletion")
                await self._put_condition(now)
                await self.client.delete(PODS, name, namespace, DeleteOptions(preconditions=Preconditions(uid=uid)))
        self._due.discard(uid)
        self._evicted.add(uid)

    async def _put_condition(self, pod: Pod) -> None:
        """Set the condition DisruptionTarget of a pod."""
        condition = PodCondition(
            type="DisruptionTarget",
            status="True",
            reason="DeletionByDeviceTaintManager",
            message="Device Taint manager: deleting due to NoExecute taint",
            last_transition_time=times.now(),
        )
        conditions = pod.status.conditions
        if is_condition_true(conditions, condition.type):
            return
        types = dict.fromkeys([*(each.type for each in conditions), condition.type])
        order = [{"type": each} for each in types]
        change = {"conditions": [to_plain(condition)], "$setElementOrder/conditions": order}
        await patch_pod_status(self.client, pod, change)

    def _record_event(self, pod: Pod, message: str) -> None:
        metadata = pod.metadata
        about = ObjectReference(
            api_version="v1", kind="Pod", namespace=metadata.namespace, name=metadata.name, uid=metadata.uid
        )
        self.recorder.event(about, "Normal", "DeviceTaintManagerEviction", message)


def _tolerated_until(taint: DeviceTaint, tolerations: Iterable[DeviceToleration]) -> float | None:
    """Return the time at which a taint ends the use of a device; None if it is tolerated without limit."""
    since = float(times.unix(taint.time_added)) if taint.time_added else times.unix_now()
    fitting = [each for each in tolerations if each.effect == NO_EXECUTE and _tolerates(each, taint)]
    limits = [each.toleration_seconds for each in fitting if each.toleration_seconds is not None]
    if len(limits) < len(fitting):
        return None
    return since + max(0, min(limits, default=0))


def _tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or toleration.value == taint.value


def _pool(driver: str, pool: str) -> str:
    return f"{driver}/{pool}"


def _pools_of_claim(claim: ResourceClaim) -> Iterable[str]:
    allocation = claim.status.allocation
    return () if allocation is None else {_pool(each.driver, each.pool) for each in allocation.devices.results}


def _relevant_parts(pod: Pod) -> tuple[object, ...]:
    """Return the parts of a pod that the controller depends on."""
    return pod.spec.node_name, pod.status.resource_claim_statuses
