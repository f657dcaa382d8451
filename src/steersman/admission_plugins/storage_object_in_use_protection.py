"""StorageObjectInUseProtection: what holds storage stays until nobody uses it any more.

The finalizers are taken off by controllers of kube-controller-manager, once the claim is in no pod, the volume bound to
no claim, the class of no claim or volume.
"""

from __future__ import annotations

from typing import Final

from steersman.admission.interface import CREATE, OBJECT_ALONE, Attributes, Plugin
from steersman.admission_plugins.declaration import Declaration
from steersman.machinery.identity.schema import GroupResource

FINALIZERS: Final = {
    GroupResource("", "persistentvolumes"): "kubernetes.io/pv-protection",
    GroupResource("", "persistentvolumeclaims"): "kubernetes.io/pvc-protection",
    GroupResource("storage.k8s.io", "volumeattributesclasses"): "kubernetes.io/vac-protection",
}


class StorageObjectInUseProtection(Plugin):
    """Puts a finalizer on volumes, claims and classes of volume attributes."""

    name = "StorageObjectInUseProtection"
    operations = frozenset({CREATE})
    resources = frozenset(FINALIZERS)
    subresources = OBJECT_ALONE
    mutates = True

    async def admit(self, attributes: Attributes) -> None:
        finalizer = FINALIZERS[attributes.action.group_resource]
        metadata = attributes.obj.metadata
        if finalizer not in metadata.finalizers:
            metadata.finalizers = [*metadata.finalizers, finalizer]


STORAGE_OBJECT_IN_USE_PROTECTION: Final = Declaration(
    StorageObjectInUseProtection, on_by_default=True, make=lambda server: StorageObjectInUseProtection()
)
