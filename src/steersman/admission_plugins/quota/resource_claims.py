"""What a resource claim uses of a quota: devices, by their class and by the extended resource the class stands for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from steersman.admission.interface import CREATE, UPDATE, Attributes
from steersman.admission_plugins.quota.evaluators import ONE, Evaluator
from steersman.admission_plugins.quota.pods import IMPLICIT_CLASS, REQUESTS, is_quota_extended_resource, pod_usage
from steersman.api.meta.v1 import OwnerReference
from steersman.api.resource.v1 import DeviceClass, DeviceRequest, ResourceClaim
from steersman.machinery.built_in.pod_resources import Amounts
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.large_work.slow_lane import SlowLane
from steersman.machinery.values.quantity import Quantity
from steersman.rest.objects import Objects, Reading

EXTENDED_CLAIM: Final = "resource.kubernetes.io/extended-resource-claim"
"""Annotation of a claim that was made for the extended resources of a pod."""

_BY_CLASS: Final = ".deviceclass.resource.k8s.io/devices"
_NO_AMOUNT: Final = Quantity(0)
_MOST_DEVICES: Final = 32
"""As many as one request can be given, which is what a request for all is taken for (AllocationResultsMaxSize)."""


class ResourceClaimEvaluator(Evaluator):
    """Counts claims and the devices that they may be given. The device classes, pods and claims that there are say what
    is an extended resource, and what a pod was charged for already."""

    reads_only_the_object = False

    def __init__(self, device_classes: Objects, pods: Objects, claims: Objects) -> None:
        super().__init__(GroupResource("resource.k8s.io", "resourceclaims"))
        self._device_classes = device_classes
        self._pods = pods
        self._claims = claims
        self._changed = -1
        self._extended: Mapping[str, str | None] = {}

    def handles(self, attributes: Attributes) -> bool:
        return not attributes.action.subresource and attributes.operation in (CREATE, UPDATE)

    def matching(self, names: Iterable[str]) -> set[str]:
        extended = self._extended_resources()
        known = {REQUESTS + name for name in extended.values() if name} | {
            REQUESTS + IMPLICIT_CLASS + name for name in extended
        }
        return {
            name
            for name in names
            if name == self.count
            or name.endswith(_BY_CLASS)
            or (is_quota_extended_resource(name) and name in known)
        }  # fmt: skip

    def _extended_resources(self) -> Mapping[str, str | None]:
        """The extended resource that each device class stands for."""
        changed = self._device_classes.changed()
        if changed != self._changed:
            self._extended = dict(self._device_classes.known_all("", _EXTENDED))
            self._changed = changed
        return self._extended

    async def usage(self, obj: ResourceClaim, namespace: str, lane: SlowLane | None = None) -> Amounts:
        devices: dict[str, int] = {}
        for request in obj.spec.devices.requests or ():
            for name, number in _most_devices(request).items():
                devices[name] = devices.get(name, 0) + number
        used = {self.count: ONE} | {name + _BY_CLASS: Quantity(number) for name, number in devices.items()}
        charged = await self._charged_to_pod(obj, namespace)
        extended = self._extended_resources()
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

    async def _charged_to_pod(self, claim: ResourceClaim, namespace: str) -> Amounts:
        """What the pod that the claim was made for has been charged with, if it was made for one."""
        owner = _pod_of(claim)
        if owner is None:
            return {}
        pod: Any = await self._pods.find(namespace, owner.name)
        if pod is None or pod.metadata.uid != owner.uid:
            return {}
        status = pod.status.extended_resource_claim_status
        if status is None:
            if not await self._is_first(claim, namespace, owner.uid):
                return {}
        elif status.resource_claim_name != claim.metadata.name:
            return {}
        return pod_usage(pod)

    async def _is_first(self, claim: ResourceClaim, namespace: str, uid: str) -> bool:
        """Whether no other claim was made for the same pod before, by time and then by name."""
        _, mine = _made_for(claim)
        others = await self._claims.read_all(namespace, _MADE_FOR)
        return not any(pod == uid and theirs < mine for pod, theirs in others)


def _extended_resource(device_class: DeviceClass) -> tuple[str, str | None]:
    return device_class.metadata.name, device_class.spec.extended_resource_name


_EXTENDED: Final = Reading(_extended_resource, "metadata.name", "spec.extendedResourceName")


def _made_for(claim: ResourceClaim) -> tuple[str | None, tuple[str, str]]:
    """The uid of the pod that a claim was made for, None if there is none; and its place among such claims."""
    metadata, owner = claim.metadata, _pod_of(claim)
    return None if owner is None else owner.uid, (metadata.creation_timestamp or "", metadata.name)


_MADE_FOR: Final = Reading(
    _made_for, "metadata.annotations", "metadata.creationTimestamp", "metadata.name", "metadata.ownerReferences"
)


def _pod_of(claim: ResourceClaim) -> OwnerReference | None:
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
