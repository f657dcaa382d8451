"""DefaultStorageClass: claims that name no class get the default one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from steersman.admission.interface import CREATE, Attributes, Plugin
from steersman.machinery.built_in.classes import STORAGE_CLASS
from steersman.machinery.identity.schema import GroupResource

_CLAIMS: Final = GroupResource("", "persistentvolumeclaims")


class DefaultStorageClass(Plugin):
    """`default` gives the name of the default class, None if there is none."""

    name = "DefaultStorageClass"
    operations = frozenset({CREATE})
    resources = frozenset({_CLAIMS})
    mutates = True

    def __init__(self, default: Callable[[], str | None]) -> None:
        self._default = default

    async def admit(self, attributes: Attributes) -> None:
        if attributes.action.subresource:
            return
        claim = attributes.obj
        # a class of "" asks for volumes without one
        if claim.spec.storage_class_name is None and STORAGE_CLASS not in claim.metadata.annotations:
            claim.spec.storage_class_name = self._default()
