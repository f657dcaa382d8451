"""DefaultStorageClass: PersistentVolumeClaims without a class get the default class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from steersman.admission.interface import CREATE, OBJECT_ALONE, Attributes, Plugin
from steersman.admission_plugins.declaration import Declaration, PluginDependencies
from steersman.machinery.built_in.classes import DEFAULT_STORAGE_CLASS, STORAGE_CLASS, DefaultClass
from steersman.machinery.identity.schema import GroupResource
from steersman.rest.objects import Reading

_CLAIMS: Final = GroupResource("", "persistentvolumeclaims")


class DefaultStorageClass(Plugin):
    """Sets the default class. `default` returns its name, None if there is no default class."""

    name = "DefaultStorageClass"
    operations = frozenset({CREATE})
    resources = frozenset({_CLAIMS})
    subresources = OBJECT_ALONE
    mutates = True
    changed_fields = ("spec.storage_class_name",)

    def __init__(self, default: Callable[[], str | None]) -> None:
        self._default = default

    async def admit(self, attributes: Attributes) -> None:
        claim = attributes.obj
        # The class "" is not missing: it requests a volume without a class.
        if claim.spec.storage_class_name is None and STORAGE_CLASS not in claim.metadata.annotations:
            claim.spec.storage_class_name = self._default()


_CLASS: Final = Reading(lambda obj: obj, "metadata.name", "metadata.annotations", "metadata.creationTimestamp")


def _make(dependencies: PluginDependencies) -> DefaultStorageClass:
    classes = dependencies.objects("storage.k8s.io", "storageclasses")
    default = DefaultClass(DEFAULT_STORAGE_CLASS, lambda: classes.read_all_cached("", _CLASS), classes.change_count)
    return DefaultStorageClass(default.name)


DEFAULT_STORAGE_CLASS_PLUGIN: Final = Declaration(DefaultStorageClass, on_by_default=True, make=_make)
