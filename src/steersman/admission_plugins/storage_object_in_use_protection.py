"""StorageObjectInUseProtection: storage objects get a finalizer that protects them while they are in use.

Controllers of kube-controller-manager remove the finalizers: from a claim once no pod uses it, from a volume once no
claim is bound to it, and from a volume attributes class once no claim or volume uses it.
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
    """Adds a finalizer to new volumes, claims and volume attributes classes."""

    name = "StorageObjectInUseProtection"
    operations = frozenset({CREATE})
    resources = frozenset(FINALIZERS)
    subresources = OBJECT_ALONE
    mutates = True
    changed_fields = ("metadata.finalizers",)

    async def admit(self, attributes: Attributes) -> None:
        finalizer = FINALIZERS[attributes.action.group_resource]
        metadata = attributes.obj.metadata
        if finalizer not in metadata.finalizers:
            metadata.finalizers = [*metadata.finalizers, finalizer]


STORAGE_OBJECT_IN_USE_PROTECTION: Final = Declaration(
    StorageObjectInUseProtection, on_by_default=True, make=lambda dependencies: StorageObjectInUseProtection()
)
