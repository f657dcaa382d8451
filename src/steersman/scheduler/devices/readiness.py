"""Binding conditions of devices, which drivers make ready after the allocation (plugins/dynamicresources)."""

from __future__ import annotations

from typing import Final, NamedTuple

from steersman.api.resource.v1 import AllocatedDeviceStatus, DeviceRequestAllocationResult, ResourceClaim
from steersman.machinery.errors.field import quote
from steersman.machinery.values import times

TIMEOUT: Final = 600.0
"""Seconds that drivers have after the allocation."""


class DevicesNotReady(Exception):
    """Devices will not become ready; the pod has to be decided again."""


class Readiness(NamedTuple):
    """Readiness of a claim's devices.

    `failure` is the reason why they will never be ready; "" if they are or may be.
    """

    is_ready: bool
    failure: str = ""


def has_conditions(results: list[DeviceRequestAllocationResult]) -> bool:
    """Return True if any of the devices has binding conditions."""
    return any(each.binding_conditions for each in results)


def readiness_of(claim: ResourceClaim) -> Readiness:
    """Return the readiness of a claim's devices by the conditions that drivers have set."""
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
    """Return True if the time for drivers is over."""
    allocation = claim.status.allocation
    if allocation is None or not allocation.allocation_timestamp or not has_conditions(allocation.devices.results):
        return False
    return times.unix(allocation.allocation_timestamp) + TIMEOUT < times.unix_now()


def is_lost(claim: ResourceClaim) -> bool:
    """Return True if an allocation is unusable, because its devices have failed or are late."""
    found = readiness_of(claim)
    return bool(found.failure) or (not found.is_ready and is_late(claim))


def _status_of(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> AllocatedDeviceStatus:
    wanted = result.driver, result.pool, result.device
    found = (each for each in claim.status.devices if (each.driver, each.pool, each.device) == wanted)
    return next(found, AllocatedDeviceStatus())
