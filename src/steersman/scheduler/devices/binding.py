"""Writes of allocations and reservations of claims before a pod is bound (PreBind of DynamicResources)."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from steersman.api.core.v1 import Pod
from steersman.api.meta.v1 import DeleteOptions, Preconditions
from steersman.api.resource.v1 import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from steersman.client.client import Client
from steersman.client.errors import ignoring, is_conflict, is_not_found
from steersman.client.pod_status import patch_pod_status
from steersman.client.resources import RESOURCE_CLAIMS
from steersman.client.transport import Unreachable
from steersman.machinery.built_in.resource_claims import DELETE_PROTECTION, is_reserved_for
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times
from steersman.scheduler.devices.extended_resources import ANNOTATION, ExtendedClaim, status_of
from steersman.scheduler.devices.pod_claims import ClaimPlan
from steersman.scheduler.devices.readiness import (
    TIMEOUT,
    DevicesNotReady,
    has_conditions,
    is_late,
    readiness_of,
)
from steersman.scheduler.devices.store import DeviceStore

_TRIES: Final = 5
"""Attempts to write a claim that others change as well."""
_LOOK_AGAIN: Final = 5.0
"""Seconds between two checks whether devices are ready."""


class ClaimBinder:
    """Assumes planned allocations, and writes them."""

    def __init__(self, client: Client, store: DeviceStore) -> None:
        self._client = client
        self._store = store

    def assume(self, plan: ClaimPlan) -> None:
        """Count the planned devices as allocated."""
        for uid, allocation in plan.allocations.items():
            self._store.set_pending(uid, allocation)

    def revert(self, plan: ClaimPlan) -> None:
        """Undo `assume`."""
        for uid in plan.allocations:
            self._store.remove_pending(uid)

    async def bind(self, plan: ClaimPlan, pod: Pod) -> None:
        """Write the claims of a plan. Raises StatusError, Unreachable."""
        for claim in plan.claims:
            await self._bind(claim, plan.allocations.get(claim.metadata.uid), pod)
        if plan.extended is not None:
            await self._create(plan.extended, plan.allocations[plan.extended.claim.metadata.uid], pod)
        self.revert(plan)

    def must_wait(self, plan: ClaimPlan) -> bool:
        """Return True if drivers have to make devices ready before the pod may be bound."""
        allocations = (plan.allocations.get(each.metadata.uid) or each.status.allocation for each in plan.claims)
        return any(each is not None and has_conditions(each.devices.results) for each in allocations)

    async def wait(self, plan: ClaimPlan) -> None:
        """Wait until all devices are ready. Raises DevicesNotReady."""
        try:
            async with asyncio.timeout(TIMEOUT):
                while not all(map(self._is_ready, plan.claims)):  # noqa: ASYNC110 - drivers write the claims
                    await asyncio.sleep(_LOOK_AGAIN)
        except TimeoutError:
            raise DevicesNotReady("device binding timeout: context deadline exceeded") from None

    def _is_ready(self, claim: ResourceClaim) -> bool:
        metadata = claim.metadata
        now = self._store.claims.get(metadata.namespace, metadata.name)
        if now is None:
            raise DevicesNotReady(f"resourceclaim {metadata.namespace}/{metadata.name} is gone")
        found = readiness_of(now)
        if found.failure:
            raise DevicesNotReady(found.failure)
        if not found.is_ready and is_late(now):
            raise DevicesNotReady(f"device binding timeout: claim={metadata.name}")
        return found.is_ready

    async def release(self, claim: ResourceClaim) -> None:
        """Remove the allocation of a claim, or a claim for extended resources itself.

        Raises StatusError (Conflict) if the claim has changed, Unreachable.
        """
        if claim.metadata.annotations.get(ANNOTATION) == "true":
            await self._delete(claim)
            return
        status = msgspec.structs.replace(claim.status, allocation=None, reserved_for=[], devices=[])
        await self._client.update_status(RESOURCE_CLAIMS, msgspec.structs.replace(claim, status=status))

    async def _create(self, extended: ExtendedClaim, allocation: AllocationResult, pod: Pod) -> None:
        """Create the claim for a pod's extended resources, allocated, and write its name into the pod's status.

        Raises StatusError, Unreachable; the claim is deleted then.
        """
        new = msgspec.structs.replace(extended.claim, metadata=msgspec.structs.replace(extended.claim.metadata, uid=""))
        claim = await self._client.create(RESOURCE_CLAIMS, new)
        try:
            await self._bind(claim, allocation, pod)
            await patch_pod_status(self._client, pod, status_of(claim.metadata.name, extended.mappings))
        except (StatusError, Unreachable):
            await self._delete(claim)
            raise

    async def _delete(self, claim: ResourceClaim) -> None:
        """Delete a claim that the scheduler has made, without its finalizer. Raises StatusError, Unreachable."""
        metadata = claim.metadata
        with ignoring(is_not_found):
            now = await self._client.get(RESOURCE_CLAIMS, metadata.name, metadata.namespace)
            if now.metadata.uid != metadata.uid:
                return
            if DELETE_PROTECTION in now.metadata.finalizers:
                finalizers = [each for each in now.metadata.finalizers if each != DELETE_PROTECTION]
                now.metadata = msgspec.structs.replace(now.metadata, finalizers=finalizers)
                await self._client.update(RESOURCE_CLAIMS, now)
            options = DeleteOptions(preconditions=Preconditions(uid=metadata.uid))
            await self._client.delete(RESOURCE_CLAIMS, metadata.name, metadata.namespace, options)

    async def _bind(self, claim: ResourceClaim, allocation: AllocationResult | None, pod: Pod) -> None:
        metadata = claim.metadata
        for number in range(_TRIES):
            now = await self._client.get(RESOURCE_CLAIMS, metadata.name, metadata.namespace)
            if is_reserved_for(now, pod):
                return
            try:
                if allocation is not None and DELETE_PROTECTION not in now.metadata.finalizers:
                    finalizers = [*now.metadata.finalizers, DELETE_PROTECTION]
                    now.metadata = msgspec.structs.replace(now.metadata, finalizers=finalizers)
                    now = await self._client.update(RESOURCE_CLAIMS, now)
                if allocation is not None:
                    timestamp = times.now()
                    now.status.allocation = msgspec.structs.replace(allocation, allocation_timestamp=timestamp)
                consumer = ResourceClaimConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)
                now.status.reserved_for = [*now.status.reserved_for, consumer]
                await self._client.update_status(RESOURCE_CLAIMS, now)
            except StatusError as error:
                if not is_conflict(error) or number == _TRIES - 1:
                    raise
            else:
                return
