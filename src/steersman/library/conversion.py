"""Conversion between the versions of a declared resource, by methods of its classes."""

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
    """Converts objects to the stored version and from there to the target version.

    Between a class without conversion methods and the stored version, fields are copied as far as both have them.
    """

    def __init__(self, declaration: Declaration, kinds: Mapping[str, CustomKind]) -> None:
        super().__init__(kinds)
        self._instances = Instances(declaration)
        self._stored = kinds[f"{declaration.group}/{declaration.stored.name}"]

    def read(self, source: CustomKind, body: bytes) -> OpenObject:
        obj = super().read(source, body)
        # An object that was stored before a default was declared lacks it.
        source.default(obj)
        return obj

    def restore_unsaid(self, obj: OpenObject, value: bytes) -> bytes:
        if obj.unsaid is None:
            return value
        stored = self._stored
        whole = stored.decode(stored.body_of(value))
        whole.content = merged(whole.content, obj.unsaid)
        return stored.value_as_is(whole)

    def convert_object(self, obj: OpenObject, source: CustomKind, target: CustomKind) -> OpenObject:
        """Convert an object. Raises StatusError 500 if the target class cannot represent it."""
        try:
            content = self._instances.convert(obj, source.version, target.version)
        except ModelError as error:
            name = obj.metadata.name
            text = f"{source.api_version} {source.name} {name} cannot be converted to {target.api_version}: {error}"
            raise plain_internal(text) from None
        converted = OpenObject(obj.metadata, content)
        target.structural.fit(converted.content, lenient=True)
        target.default(converted)
        return converted
