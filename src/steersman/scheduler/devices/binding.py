"""Writes what claims get, and for whom they are, before a pod is bound (PreBind of DynamicResources)."""

from __future__ import annotations

from typing import Final

import msgspec

from steersman.api.core.v1 import Pod
from steersman.api.resource.v1 import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from steersman.client.client import Client
from steersman.client.errors import is_conflict
from steersman.client.resources import RESOURCE_CLAIMS
from steersman.machinery.built_in.resource_claims import DELETE_PROTECTION, is_reserved_for
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times
from steersman.scheduler.devices.pod_claims import ClaimPlan
from steersman.scheduler.devices.store import DeviceStore

_TRIES: Final = 5


class ClaimBinder:
    """Assumes what is planned, and writes it."""

    def __init__(self, client: Client, store: DeviceStore) -> None:
        self._client = client
        self._store = store

    def assume(self, plan: ClaimPlan) -> None:
        """The devices are taken from now on."""
        for uid, allocation in plan.allocations.items():
            self._store.set_pending(uid, allocation)

    def revert(self, plan: ClaimPlan) -> None:
        """What was not written counts no more."""
        for uid in plan.allocations:
            self._store.remove_pending(uid)

    async def bind(self, plan: ClaimPlan, pod: Pod) -> None:
        """Writes the claims. Raises StatusError, Unreachable."""
        for claim in plan.claims:
            await self._bind(claim, plan.allocations.get(claim.metadata.uid), pod)
        self.revert(plan)

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
