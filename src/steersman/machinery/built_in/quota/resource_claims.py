"""What a resource claim uses of a quota: devices, by their class and by the extended resource the class stands for.

Follows pkg/quota/v1/evaluator/core/resource_claims.go. Which classes, pods and other claims there are is looked up by
whoever measures: admission in storage, the controller in what it follows.
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
"""Annotation of a claim that was made for the extended resources of a pod."""
ExtendedResources = Mapping[str, str | None]
"""The extended resource that each device class stands for, by the name of the class."""

_COUNT: Final = count_of(RESOURCE_CLAIMS)
_BY_CLASS: Final = ".deviceclass.resource.k8s.io/devices"
_NO_AMOUNT: Final = Quantity(0)
_MOST_DEVICES: Final = 32
"""As many as one request can be given, which is what a request for all is taken for (AllocationResultsMaxSize)."""


def claim_names(names: Iterable[str], extended: ExtendedResources) -> set[str]:
    """Those of a quota's resources that claims use."""
    known = {REQUESTS + name for name in extended.values() if name} | {
        REQUESTS + IMPLICIT_CLASS + name for name in extended
    }
    return {
        name
        for name in names
        if name == _COUNT or name.endswith(_BY_CLASS) or (is_quota_extended_resource(name) and name in known)
    }


def claim_usage(claim: ResourceClaim, extended: ExtendedResources, charged: Amounts) -> Amounts:
    """What a claim uses beyond what the pod that it was made for has been `charged` with."""
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
    """Whether a pod has been charged for the devices of a claim that was made for it; None if its first claim is."""
    status = pod.status.extended_resource_claim_status
    return None if status is None else status.resource_claim_name == claim.metadata.name


def made_for(claim: ResourceClaim) -> tuple[str | None, tuple[str, str]]:
    """The uid of the pod that a claim was made for, None if there is none; and its place among such claims."""
    metadata, owner = claim.metadata, pod_of(claim)
    return None if owner is None else owner.uid, (metadata.creation_timestamp or "", metadata.name)


def pod_of(claim: ResourceClaim) -> OwnerReference | None:
    """The pod for whose extended resources the claim was made."""
    if claim.metadata.annotations.get(EXTENDED_CLAIM) != "true":
        return None
    for owner in claim.metadata.owner_references:
        if owner.controller:
            return owner if (owner.kind, owner.api_version) == ("Pod", "v1") else None
    return None


def _most_devices(request: DeviceRequest) -> dict[str, int]:
    """How many devices of which class a request may be given at most; of alternatives only one is chosen."""
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
    """A mode of which nothing is known does not count."""
    return {"ExactCount": count, "All": _MOST_DEVICES}.get(allocation_mode, 0)
