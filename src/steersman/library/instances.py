"""Objects of a declared resource as instances of its classes, in the version that one asks for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from steersman.api.meta.v1 import ObjectMeta
from steersman.kinds.open import OpenObject
from steersman.library.declaration import Declaration, Version
from steersman.library.models import Plain, instance_of, member_names, plain_of
from steersman.machinery.codec.serializer import deep_copy, from_plain, to_plain
from steersman.rest.objects import Objects

_METADATA: Final = "metadata"


class Instances:
    """The instances of one resource."""

    def __init__(self, declaration: Declaration) -> None:
        self._hub = declaration.stored
        self._versions = {each.name: each for each in declaration.versions}
        self._members = {each.name: member_names(each.model) for each in declaration.versions}

    def of_hub(self, obj: OpenObject, version: str) -> Any:
        """An object of a version as an instance of the class that is stored. Raises ModelError."""
        given = self._versions[version]
        instance = self._instance(given, obj)
        if given is self._hub:
            return instance
        if _converts(given):
            return instance.convert_to()
        return self._again(self._hub, plain_of(instance))

    def of_stored(self, obj: OpenObject) -> Any:
        """An object of the stored version as an instance. Raises ModelError."""
        return self._instance(self._hub, obj)

    def opened(self, instance: Any) -> OpenObject:
        """An instance of the class that is stored as an object, with the metadata that it has."""
        plain = plain_of(instance)
        meta = plain.pop(_METADATA, None)
        return OpenObject(ObjectMeta() if meta is None else from_plain(ObjectMeta, meta), plain)

    def content(self, instance: Any, version: str) -> Plain:
        """What an instance of the class that is stored is in a version, without metadata. Raises ModelError."""
        wanted = self._versions[version]
        if wanted is not self._hub:
            model: Any = wanted.model
            if _converts(wanted):
                instance = model.convert_from(instance)
            else:
                instance = self._again(wanted, plain_of(instance))
        plain = plain_of(instance)
        plain.pop(_METADATA, None)
        return plain

    def converted(self, obj: OpenObject, source: str, target: str) -> Plain:
        """The content of an object of one version in another. Raises ModelError."""
        given, wanted = self._versions[source], self._versions[target]
        if not _converts(given) and not _converts(wanted):
            return dict(deep_copy(obj.content))
        return self.content(self.of_hub(obj, source), target)

    def _instance(self, version: Version, obj: OpenObject) -> Any:
        plain = obj.content
        if _METADATA in self._members[version.name]:
            plain = {**plain, _METADATA: to_plain(obj.metadata)}
        return instance_of(version.model, plain)

    def _again(self, version: Version, plain: Plain) -> Any:
        return instance_of(version.model, plain)


class StoredInstances:
    """See hooks.Objects."""

    def __init__(self, instances: Instances, stored: Objects) -> None:
        self._instances = instances
        self._stored = stored

    async def find(self, name: str, namespace: str = "") -> Any:
        """See hooks.Objects."""
        found = await self._stored.find(namespace, name)
        return None if found is None else self._instances.of_stored(found)

    async def every(self, namespace: str = "") -> AsyncIterator[Any]:
        """See hooks.Objects."""
        async for found, _ in self._stored.every(namespace):
            yield self._instances.of_stored(found)


def _converts(version: Version) -> bool:
    return hasattr(version.model, "convert_to")
