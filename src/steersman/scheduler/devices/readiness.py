"""Devices that are made ready after a claim has got them: binding conditions (plugins/dynamicresources)."""

from __future__ import annotations

from typing import Final, NamedTuple

from steersman.api.resource.v1 import AllocatedDeviceStatus, DeviceRequestAllocationResult, ResourceClaim
from steersman.machinery.errors.field import quote
from steersman.machinery.values import times

TIMEOUT: Final = 600.0
"""Seconds that drivers have, from the allocation on."""


class DevicesNotReady(Exception):
    """Devices will not become ready: the pod has to be decided anew."""


class Readiness(NamedTuple):
    """Whether a claim's devices are ready, or else why they will never be; both may not be known yet."""

    is_ready: bool
    failure: str = ""


def has_conditions(results: list[DeviceRequestAllocationResult]) -> bool:
    """Whether any of these devices has to be made ready."""
    return any(each.binding_conditions for each in results)


def readiness_of(claim: ResourceClaim) -> Readiness:
    """What drivers have said of a claim's devices."""
    allocation = claim.status.allocation
    if allocation is None:
        return Readiness(False)
    for result in allocation.devices.results:
        if not result.binding_conditions:
            continue
        said = {each.type: each for each in _status_of(claim, result).conditions or ()}
        for name in result.binding_failure_conditions:
            failed = said.get(name)
            if failed is not None and failed.status == "True":
                which = f"claim={claim.metadata.name}, reason={failed.reason}, message={quote(failed.message)}"
                return Readiness(False, f"device binding failed: {which}")
        if any(name not in said or said[name].status != "True" for name in result.binding_conditions):
            return Readiness(False)
    return Readiness(True)


def is_late(claim: ResourceClaim) -> bool:
    """Whether drivers have had their time."""
    allocation = claim.status.allocation
    if allocation is None or not allocation.allocation_timestamp or not has_conditions(allocation.devices.results):
        return False
    return times.unix(allocation.allocation_timestamp) + TIMEOUT < times.unix_now()


def is_lost(claim: ResourceClaim) -> bool:
    """Whether an allocation is no good any more."""
    found = readiness_of(claim)
    return bool(found.failure) or (not found.is_ready and is_late(claim))


def _status_of(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> AllocatedDeviceStatus:
    wanted = result.driver, result.pool, result.device
    found = (each for each in claim.status.devices if (each.driver, each.pool, each.device) == wanted)
    return next(found, AllocatedDeviceStatus())
