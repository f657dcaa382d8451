"""Conversions that this process makes itself, object by object."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from steersman.kinds.custom import CustomKind
from steersman.kinds.open import OpenKind, OpenObject
from steersman.machinery.large_work.sizes import is_large
from steersman.rest.conversion import Conversion
from steersman.work.offloading import offload_if
from steersman.work.yielding import time_sliced


class LocalConversion(Conversion):
    """The base of such conversions; a subclass converts one object."""

    def __init__(self, kinds: Mapping[str, CustomKind]) -> None:
        self.kinds = kinds
        self._custom_kinds = kinds

    @abstractmethod
    def convert_object(self, obj: OpenObject, source: CustomKind, target: CustomKind) -> OpenObject:
        """Return an object of `source` converted to `target`. Raises StatusError."""

    def read(self, source: CustomKind, body: bytes) -> OpenObject:
        """Return a stored object."""
        return source.decode(body)

    async def convert_values(self, values: Sequence[bytes], target: OpenKind) -> list[bytes]:
        kind = self._custom_kinds[target.api_version]
        found = []
        async for value in time_sliced(values):
            found.append(await offload_if(is_large(value), self._convert_value, value, kind))
        return found

    def _convert_value(self, value: bytes, target: CustomKind) -> bytes:
        body = target.body_of(value)
        source = self._custom_kinds.get(target.version_of(body), target)
        return target.value_as_is(self.convert_object(self.read(source, body), source, target))

    async def close(self) -> None:
        """Do nothing, as there is nothing to close."""

    def convert(self, obj: OpenObject, source: OpenKind, target: OpenKind) -> OpenObject:
        if source is target:
            return obj
        return self.convert_object(obj, self._custom_kinds[source.api_version], self._custom_kinds[target.api_version])
