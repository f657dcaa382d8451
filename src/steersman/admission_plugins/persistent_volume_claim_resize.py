"""PersistentVolumeClaimResize: only bound claims may grow, and only if their StorageClass allows expansion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from steersman.admission.interface import OBJECT_ALONE, UPDATE, Attributes, Plugin
from steersman.admission_plugins.declaration import Declaration, PluginDependencies
from steersman.machinery.built_in.classes import storage_class_of
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.values.quantity import Quantity, parse
from steersman.rest.objects import Reading

_CLAIMS: Final = GroupResource("", "persistentvolumeclaims")


class PersistentVolumeClaimResize(Plugin):
    """Checks larger requests of claims. `find` returns a StorageClass by name, None if it does not exist."""

    name = "PersistentVolumeClaimResize"
    operations = frozenset({UPDATE})
    resources = frozenset({_CLAIMS})
    subresources = OBJECT_ALONE
    validates = True

    def __init__(self, find: Callable[[str], Any | None]) -> None:
        self._find = find

    async def validate(self, attributes: Attributes) -> None:
        new, old = attributes.obj, attributes.old
        if _size(new) <= _size(old):
            return
        if old.status.phase != "Bound":
            raise attributes.forbid("Only bound persistent volume claims can be expanded")
        name = storage_class_of(new)
        storage_class = self._find(name) if name and name == storage_class_of(old) else None
        if storage_class is None or not storage_class.allow_volume_expansion:
            raise attributes.forbid(
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must "
                "support resize"
            )


def _size(claim: Any) -> Quantity:
    return parse(claim.spec.resources.requests.get("storage", "0"))


_CLASS: Final = Reading(lambda obj: obj, "allowVolumeExpansion")


def _make(dependencies: PluginDependencies) -> PersistentVolumeClaimResize:
    classes = dependencies.objects("storage.k8s.io", "storageclasses")
    return PersistentVolumeClaimResize(lambda name: classes.read_cached("", name, _CLASS))


PERSISTENT_VOLUME_CLAIM_RESIZE: Final = Declaration(PersistentVolumeClaimResize, on_by_default=True, make=_make)
