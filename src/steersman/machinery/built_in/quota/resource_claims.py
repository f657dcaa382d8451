"""Usage of quotas by resource claims: devices by their class, and by the extended resource of the class.

Follows pkg/quota/v1/evaluator/core/resource_claims.go. The caller looks up device classes, pods and other claims:
admission in storage, the controller in its informers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from steersman.api.core.v1 import Pod
from steersman.api.meta.v1 import OwnerReference
from steersman.api.resource.v1 import DeviceRequest, ResourceClaim
from steersman.machinery.built_in.pod_resources import Amounts
from steersman.machinery.built_in.quota.measure import ONE, count_of
from steersman.machinery.built_in.quota.pods import IMPLICIT_CLASS, REQUESTS, is_quota_extended_resource
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.values.quantity import Quantity

RESOURCE_CLAIMS: Final = GroupResource("resource.k8s.io", "resourceclaims")
EXTENDED_CLAIM: Final = "resource.kubernetes.io/extended-resource-claim"
"""The annotation of a claim that was created for the extended resources of a pod."""
ExtendedResources = Mapping[str, str | None]
"""The extended resource of each device class, by the name of the class."""

_COUNT: Final = count_of(RESOURCE_CLAIMS)
_BY_CLASS: Final = ".deviceclass.resource.k8s.io/devices"
_NO_AMOUNT: Final = Quantity(0)
_MOST_DEVICES: Final = 32
"""The most devices for one request, also assumed for requests of all devices (AllocationResultsMaxSize)."""


def claim_names(names: Iterable[str], extended: ExtendedResources) -> set[str]:
    """Return the names among a quota's resources that claims use."""
    known = {REQUESTS + name for name in extended.values() if name} | {
        REQUESTS + IMPLICIT_CLASS + name for name in extended
    }
    return {
        name
        for name in names
        if name == _COUNT or name.endswith(_BY_CLASS) or (is_quota_extended_resource(name) and name in known)
    }


def claim_usage(claim: ResourceClaim, extended: ExtendedResources, charged: Amounts) -> Amounts:
    """Return the usage of a claim beyond the amounts with which its pod has been `charged`."""
    devices: dict[str, int] = {}
    for request in claim.spec.devices.requests or ():
        for name, number in _most_devices(request).items():
            devices[name] = devices.get(name, 0) + number
    used = {_COUNT: ONE} | {name + _BY_CLASS: Quantity(number) for name, number in devices.items()}
    for name, number in devices.items():
        if not name:
            continue
        resources = [IMPLICIT_CLASS + name]
        if resource := extended.get(name):
            resources.append(resource)
        for each in resources:
            rest = Quantity(number) - charged.get(REQUESTS + each, _NO_AMOUNT)
            if rest.sign > 0:
                used[REQUESTS + each] = rest
    return used


def is_charged(pod: Pod, claim: ResourceClaim) -> bool | None:
    """Return True if the pod has been charged for the devices of a claim that was created for it.

    Returns None if the pod's status names no claim yet: then the first of its claims has been charged.
    """
    status = pod.status.extended_resource_claim_status
    return None if status is None else status.resource_claim_name == claim.metadata.name


def owning_pod_and_order(claim: ResourceClaim) -> tuple[str | None, tuple[str, str]]:
    """Return the uid of the pod for which a claim was created, None if there is none, and a sort key of the claim.

    The sort key orders the claims of a pod by creation.
    """
    metadata, owner = claim.metadata, pod_of(claim)
    return None if owner is None else owner.uid, (metadata.creation_timestamp or "", metadata.name)


def pod_of(claim: ResourceClaim) -> OwnerReference | None:
    """Return the owner reference of the pod for whose extended resources the claim was created."""
    if claim.metadata.annotations.get(EXTENDED_CLAIM) != "true":
        return None
    for owner in claim.metadata.owner_references:
        if owner.controller:
            return owner if (owner.kind, owner.api_version) == ("Pod", "v1") else None
    return None


def _most_devices(request: DeviceRequest) -> dict[str, int]:
    """Return the largest number of devices by class that a request may get; only one of its alternatives is chosen."""
    most: dict[str, int] = {}
    if request.first_available:
        for each in request.first_available:
            number = _number(each.allocation_mode, each.count)
            if number > most.get(each.device_class_name, 0):
                most[each.device_class_name] = number
    elif request.exactly is not None:
        most[request.exactly.device_class_name] = _number(request.exactly.allocation_mode, request.exactly.count)
    return most


def _number(allocation_mode: str, count: int) -> int:
    """Return the number of devices of a request; an unknown allocation mode counts as 0."""
    return {"ExactCount": count, "All": _MOST_DEVICES}.get(allocation_mode, 0)
