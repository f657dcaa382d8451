"""Usage of quotas by persistent volume claims: their number and requested storage, also by storage class."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from steersman.api.core.v1 import PersistentVolumeClaim, ScopedResourceSelectorRequirement
from steersman.machinery.built_in.pod_resources import Amounts
from steersman.machinery.built_in.quota.measure import ONE, Measure, select_name
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.values.quantity import parse

_BY_STORAGE_CLASS: Final = ".storageclass.storage.k8s.io/"
_STORAGE_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"


class VolumeClaimMeasure(Measure[PersistentVolumeClaim]):
    """The usage of quotas by persistent volume claims: their number and requested storage, also by storage class."""

    def __init__(self) -> None:
        super().__init__(GroupResource("", "persistentvolumeclaims"))
        self.names = frozenset({self.count, "persistentvolumeclaims", "requests.storage"})

    def matching(self, names: Iterable[str]) -> set[str]:
        by_class = (f"{_BY_STORAGE_CLASS}persistentvolumeclaims", f"{_BY_STORAGE_CLASS}requests.storage")
        return {name for name in names if name in self.names or name.endswith(by_class)}

    def in_scope(self, selector: ScopedResourceSelectorRequirement, obj: PersistentVolumeClaim) -> bool:
        if selector.scope_name != "VolumeAttributesClass":
            return False
        classes = volume_attributes_classes(obj)
        return bool(classes) if selector.operator == "Exists" else select_name(selector, classes)

    def usage(self, obj: PersistentVolumeClaim) -> Amounts:
        used = {"persistentvolumeclaims": ONE, self.count: ONE}
        storage_class = obj.metadata.annotations.get(_STORAGE_CLASS_ANNOTATION, obj.spec.storage_class_name)
        if storage_class:
            used[f"{storage_class}{_BY_STORAGE_CLASS}persistentvolumeclaims"] = ONE
        requested = obj.spec.resources.requests.get("storage")
        if requested is None:
            return used
        storage = parse(requested)
        allocated = obj.status.allocated_resources.get("storage")
        if allocated is not None:
            storage = max(storage, parse(allocated))
        used["requests.storage"] = storage = storage.round_up(0)
        if storage_class:
            used[f"{storage_class}{_BY_STORAGE_CLASS}requests.storage"] = storage
        return used


def volume_attributes_classes(claim: PersistentVolumeClaim) -> set[str]:
    """Return the volume attributes classes that a claim requests, has, or is being changed to."""
    status = claim.status
    names = {claim.spec.volume_attributes_class_name, status.current_volume_attributes_class_name}
    if status.modify_volume_status is not None:
        names.add(status.modify_volume_status.target_volume_attributes_class_name)
    return {name for name in names if name}
