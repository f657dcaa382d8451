"""Objects of a declared resource as instances of its classes, in any version."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from steersman.api.meta.v1 import ObjectMeta
from steersman.kinds.open import OpenObject
from steersman.library.declaration import Declaration, Version
from steersman.library.merging import merged
from steersman.library.models import Plain, instance_of, member_names, plain_of
from steersman.library.user_code import NoJson, check_values, computing
from steersman.machinery.codec.serializer import deep_copy, from_plain, to_plain
from steersman.machinery.errors.status import plain_internal
from steersman.rest.objects import Objects

logger = logging.getLogger(__name__)

_METADATA: Final = "metadata"


class Instances:
    """Conversion between the objects of one resource and instances of its classes."""

    def __init__(self, declaration: Declaration) -> None:
        self._group, self._kind = declaration.group, declaration.kind
        self._hub = declaration.stored
        self._versions = {each.name: each for each in declaration.versions}
        self._members = {each.name: member_names(each.model) for each in declaration.versions}

    def to_stored_instance(self, obj: OpenObject, version: str) -> Any:
        """Return an object of a version as an instance of the stored version's class.

        Raises ModelError, and StatusError 500 if the class cannot convert it.
        """
        given = self._versions[version]
        instance = self._instance(given, obj)
        if given is self._hub:
            return instance
        if _converts(given):
            instance = self._convert_with(instance.convert_to, "convert_to", given, self._hub, obj)
        else:
            instance = instance_of(self._hub.model, plain_of(instance))
        if obj.unsaid is not None:
            instance = instance_of(self._hub.model, merged(plain_of(instance), obj.unsaid))
        return instance

    def _convert_with(
        self, function: Callable[..., Any], name: str, source: Version, target: Version, obj: OpenObject, *args: Any
    ) -> Any:
        """Return the result of a class's conversion method.

        Raises StatusError 500 if it fails, as with a failing conversion webhook.
        """
        model = (source if name == "convert_to" else target).model
        try:
            with computing(f"{model.__name__}.{name}"):
                found = function(*args)
            if isinstance(found, target.model):
                check_values(found)
                return found
            why = f"returned {type(found).__name__}, not {target.model.__name__}"
        except NoJson as error:
            why = f"has set a value that JSON cannot represent: {error}"
        except Exception as error:
            logger.exception("%s.%s has failed", model.__name__, name)
            why = f"has raised {type(error).__name__}: {error}"
        meta = obj.metadata
        which = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
        raise plain_internal(
            f"conversion for {self._group}/{source.name}, Kind={self._kind} failed: {which} to {target.name}: "
            f"{model.__name__}.{name} {why}"
        )

    def stored_instance(self, obj: OpenObject) -> Any:
        """Return an object of the stored version as an instance. Raises ModelError."""
        return self._instance(self._hub, obj)

    def to_object(self, instance: Any) -> OpenObject:
        """Return an instance of the stored version's class as an object with its metadata."""
        plain = plain_of(instance)
        meta = plain.pop(_METADATA, None)
        return OpenObject(ObjectMeta() if meta is None else from_plain(ObjectMeta, meta), plain)

    def content(self, instance: Any, version: str, obj: OpenObject) -> Plain:
        """Return the content, in a version, of an instance of the stored version's class that was made from `obj`.

        The content has no metadata. Raises ModelError, and StatusError 500 if the class cannot convert it.
        """
        wanted = self._versions[version]
        if wanted is not self._hub:
            model: Any = wanted.model
            if _converts(wanted):
                instance = self._convert_with(model.convert_from, "convert_from", self._hub, wanted, obj, instance)
            else:
                instance = instance_of(model, plain_of(instance))
        plain = plain_of(instance)
        plain.pop(_METADATA, None)
        return plain

    def convert(self, obj: OpenObject, source: str, target: str) -> Plain:
        """Return the content of an object of one version in another version. Raises ModelError."""
        given, wanted = self._versions[source], self._versions[target]
        if not _converts(given) and not _converts(wanted):
            return dict(deep_copy(obj.content))
        return self.content(self.to_stored_instance(obj, source), target, obj)

    def _instance(self, version: Version, obj: OpenObject) -> Any:
        plain = obj.content
        if _METADATA in self._members[version.name]:
            plain = {**plain, _METADATA: to_plain(obj.metadata)}
        return instance_of(version.model, plain)


class StoredInstances:
    """The stored objects of a resource as instances; see hooks.Objects."""

    def __init__(self, instances: Instances, stored: Objects) -> None:
        self._instances = instances
        self._stored = stored

    async def find(self, name: str, namespace: str = "") -> Any:
        """Return an object as an instance; see hooks.Objects."""
        cached = await self._stored.get_cached(namespace, name)
        return None if cached is None else self._instances.stored_instance(cached)

    async def every(self, namespace: str = "") -> AsyncIterator[Any]:
        """Yield every object as an instance; see hooks.Objects."""
        async for found, _ in self._stored.iterate_cached(namespace):
            yield self._instances.stored_instance(found)


def _converts(version: Version) -> bool:
    return hasattr(version.model, "convert_to")
