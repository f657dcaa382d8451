"""Conversion between the versions of a declared resource, by the functions of its classes."""

from __future__ import annotations

from collections.abc import Mapping

from steersman.apiextensions.local_conversion import LocalConversion
from steersman.kinds.custom import CustomKind
from steersman.kinds.open import OpenObject
from steersman.library.declaration import Declaration
from steersman.library.instances import Instances
from steersman.library.merging import merged
from steersman.library.models import ModelError
from steersman.machinery.errors.status import plain_internal


class ClassConversion(LocalConversion):
    """Objects become those of the stored version, and from there those of another; where a class says nothing they are
    the same in both, as far as each knows them."""

    def __init__(self, declaration: Declaration, kinds: Mapping[str, CustomKind]) -> None:
        super().__init__(kinds)
        self._instances = Instances(declaration)
        self._stored = kinds[f"{declaration.group}/{declaration.stored.name}"]

    def read(self, source: CustomKind, body: bytes) -> OpenObject:
        obj = super().read(source, body)
        # what was stored before a default was declared lacks it
        source.default(obj)
        return obj

    def restore_unsaid(self, obj: OpenObject, value: bytes) -> bytes:
        if obj.unsaid is None:
            return value
        stored = self._stored
        whole = stored.decode(stored.body_of(value))
        whole.content = merged(whole.content, obj.unsaid)
        return stored.value_as_is(whole)

    def made(self, obj: OpenObject, source: CustomKind, target: CustomKind) -> OpenObject:
        """Raises StatusError 500 for an object that its class cannot hold."""
        try:
            content = self._instances.converted(obj, source.version, target.version)
        except ModelError as error:
            name = obj.metadata.name
            text = f"{source.api_version} {source.name} {name} cannot be converted to {target.api_version}: {error}"
            raise plain_internal(text) from None
        converted = OpenObject(obj.metadata, content)
        target.structural.fit(converted.content, lenient=True)
        target.default(converted)
        return converted
