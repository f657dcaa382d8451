"""Quota evaluator of resource claims."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from steersman.admission.interface import CREATE, UPDATE, Attributes
from steersman.admission_plugins.quota.evaluators import Evaluator
from steersman.api.resource.v1 import DeviceClass, ResourceClaim
from steersman.machinery.built_in.pod_resources import Amounts
from steersman.machinery.built_in.quota.measure import counting
from steersman.machinery.built_in.quota.pods import pod_usage
from steersman.machinery.built_in.quota.resource_claims import (
    RESOURCE_CLAIMS,
    ExtendedResources,
    claim_names,
    claim_usage,
    is_charged,
    owning_pod_and_order,
    pod_of,
)
from steersman.rest.objects import Objects, Reading


class ResourceClaimEvaluator(Evaluator):
    """Counts claims and the devices that they may get.

    It looks up device classes, for extended resources, and pods and other claims, for usage that was charged to a pod
    already.
    """

    reads_only_the_object = False

    def __init__(self, device_classes: Objects, pods: Objects, claims: Objects) -> None:
        super().__init__(counting(RESOURCE_CLAIMS))
        self._device_classes = device_classes
        self._pods = pods
        self._claims = claims
        self._changed = -1
        self._extended: ExtendedResources = {}

    def handles(self, attributes: Attributes) -> bool:
        return not attributes.action.subresource and attributes.operation in (CREATE, UPDATE)

    def matching(self, names: Iterable[str]) -> set[str]:
        return claim_names(names, self._extended_resources())

    def _extended_resources(self) -> ExtendedResources:
        changed = self._device_classes.change_count()
        if changed != self._changed:
            self._extended = dict(self._device_classes.read_all_cached("", _EXTENDED))
            self._changed = changed
        return self._extended

    async def usage(self, obj: Any, namespace: str) -> Amounts:
        return claim_usage(obj, self._extended_resources(), await self._charged_to_pod(obj, namespace))

    async def _charged_to_pod(self, claim: ResourceClaim, namespace: str) -> Amounts:
        """Return the usage already charged to the pod that owns the claim, {} without such a pod."""
        owner = pod_of(claim)
        if owner is None:
            return {}
        pod: Any = await self._pods.get_cached(namespace, owner.name)
        if pod is None or pod.metadata.uid != owner.uid:
            return {}
        charged = is_charged(pod, claim)
        if charged is None:
            charged = await self._is_first(claim, namespace, owner.uid)
        return pod_usage(pod) if charged else {}

    async def _is_first(self, claim: ResourceClaim, namespace: str, uid: str) -> bool:
        """Return True if the claim is the first of its pod, by time and then by name."""
        _, mine = owning_pod_and_order(claim)
        others = await self._claims.read_all(namespace, _MADE_FOR)
        return not any(pod == uid and theirs < mine for pod, theirs in others)


def _extended_resource(device_class: DeviceClass) -> tuple[str, str | None]:
    return device_class.metadata.name, device_class.spec.extended_resource_name


_EXTENDED: Final = Reading(_extended_resource, "metadata.name", "spec.extendedResourceName")
_MADE_FOR: Final = Reading(
    owning_pod_and_order,
    "metadata.annotations",
    "metadata.creationTimestamp",
    "metadata.name",
    "metadata.ownerReferences",
)
