"""Resources with measured usage: the measure, and the changes of objects that release usage."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from steersman.api.core.v1 import PersistentVolumeClaim, Pod, Service
from steersman.api.resource.v1 import DeviceClass, ResourceClaim
from steersman.client.api_resource import Object
from steersman.client.informer import Informer, Informers
from steersman.client.resources import (
    DEVICE_CLASSES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    SERVICES,
)
from steersman.controllers.resource_quota.sums import Scopes, Sum, Sums
from steersman.machinery.built_in.pod_resources import Amounts
from steersman.machinery.built_in.quota import resource_claims
from steersman.machinery.built_in.quota.measure import Measure, counting
from steersman.machinery.built_in.quota.pods import PodMeasure, has_ended, is_terminating, pod_usage
from steersman.machinery.built_in.quota.services import ServiceMeasure
from steersman.machinery.built_in.quota.volume_claims import VolumeClaimMeasure, volume_attributes_classes

O = TypeVar("O", bound=Object)  # noqa: E741

_BY_POD: Final = "uid of the pod that a claim was made for"


class MeasuredResource(Struct, Generic[O], frozen=True):
    """A resource whose objects have more usage than their number."""

    measure: Measure[O]
    objects: Informer[O]
    may_release: Callable[[O, O], bool]
    """Function (old, new) that returns True if the change may reduce or shift the usage."""
    sums: Sums[O] | None
    """Sums of usage, None if the usage of an object also depends on other objects."""

    @classmethod
    def with_sums(
        cls, measure: Measure[O], objects: Informer[O], gives_back: Callable[[O, O], bool]
    ) -> MeasuredResource[O]:
        """Return a resource with sums that follow its objects."""
        sums = Sums(measure)
        objects.on_change(sums.change)
        return cls(measure, objects, gives_back, sums)

    async def used(self, names: Collection[str], namespace: str, scopes: Scopes) -> Amounts:
        """Return the usage of `names` by the objects of a namespace that are in all scopes; 0 for unused names."""
        objects = self.objects.list
        if self.sums is None:
            return await Sum(self.measure, scopes, objects(namespace)).used(names)
        return await self.sums.get(namespace, scopes, objects).used(names)

    def forget(self, namespace: str = "") -> None:
        """Drop the sums of a namespace, or of all, so that they are measured again."""
        if self.sums is not None:
            self.sums.forget(namespace)


def measured_resources(informers: Informers) -> tuple[MeasuredResource[Any], ...]:
    """Return the resources with measured usage, and ResourceQuotas, so that the known quotas are counted from the
    informer.
    """
    pods, claims = informers.for_resource(PODS), informers.for_resource(RESOURCE_CLAIMS)
    return (
        MeasuredResource.with_sums(PodMeasure(), pods, _pod_may_release),
        MeasuredResource.with_sums(ServiceMeasure(), informers.for_resource(SERVICES), _service_may_release),
        MeasuredResource.with_sums(
            VolumeClaimMeasure(), informers.for_resource(PERSISTENT_VOLUME_CLAIMS), _volume_claim_may_release
        ),
        MeasuredResource(
            _ClaimMeasure(informers.for_resource(DEVICE_CLASSES), pods, claims), claims, lambda *_: False, None
        ),
        MeasuredResource.with_sums(
            counting(RESOURCE_QUOTAS.group_resource), informers.for_resource(RESOURCE_QUOTAS), lambda *_: False
        ),
    )


def _pod_may_release(old: Pod, new: Pod) -> bool:
    return (
        _is_resized(old, new) or is_terminating(old) != is_terminating(new) or (has_ended(new) and not has_ended(old))
    )


def _is_resized(old: Pod, new: Pod) -> bool:
    """Return True if the resources of an existing container have changed."""
    before = {
        each.name: each.resources for each in (*old.status.container_statuses, *old.status.init_container_statuses)
    }
    now = (*new.status.container_statuses, *new.status.init_container_statuses)
    return any(each.name in before and each.resources != before[each.name] for each in now)


def _service_may_release(old: Service, new: Service) -> bool:
    return old.spec.type != new.spec.type


def _volume_claim_may_release(old: PersistentVolumeClaim, new: PersistentVolumeClaim) -> bool:
    return (
        old.spec.resources.requests != new.spec.resources.requests
        or old.status.allocated_resources != new.status.allocated_resources
        or volume_attributes_classes(old) != volume_attributes_classes(new)
    )


class _ClaimMeasure(Measure[ResourceClaim]):
    """Measure of resource claims and their devices, which depends on device classes and pods."""

    def __init__(self, classes: Informer[DeviceClass], pods: Informer[Pod], claims: Informer[ResourceClaim]) -> None:
        super().__init__(resource_claims.RESOURCE_CLAIMS)
        self._pods = pods
        self._claims = claims
        self._extended: dict[str, str | None] = {}
        classes.on_change(self._class_changed)
        claims.add_index(
            _BY_POD, lambda claim: [uid] if (uid := resource_claims.owning_pod_and_order(claim)[0]) else []
        )

    def _class_changed(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        if new is not None:
            self._extended[new.metadata.name] = new.spec.extended_resource_name
        elif old is not None:
            self._extended.pop(old.metadata.name, None)

    def matching(self, names: Any) -> set[str]:
        return resource_claims.claim_names(names, self._extended)

    def usage(self, obj: ResourceClaim) -> Amounts:
        return resource_claims.claim_usage(obj, self._extended, self._charged_to_pod(obj))

    def _charged_to_pod(self, claim: ResourceClaim) -> Amounts:
        owner = resource_claims.pod_of(claim)
        pod = None if owner is None else self._pods.get(claim.metadata.namespace, owner.name)
        if owner is None or pod is None or pod.metadata.uid != owner.uid:
            return {}
        charged = resource_claims.is_charged(pod, claim)
        if charged is None:
            _, mine = resource_claims.owning_pod_and_order(claim)
            charged = all(
                mine <= resource_claims.owning_pod_and_order(each)[1]
                for each in self._claims.indexed(_BY_POD, owner.uid)
            )
        return pod_usage(pod) if charged else {}
