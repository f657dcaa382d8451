"""Conversion between the versions of a declared resource, by the functions of its classes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Final

from steersman.kinds.custom import CustomKind
from steersman.kinds.open import OpenKind, OpenObject
from steersman.library.declaration import Declaration
from steersman.library.instances import Instances
from steersman.library.models import ModelError
from steersman.machinery.errors.status import plain_internal
from steersman.machinery.large_work.slow_lane import SlowLane, done, is_large
from steersman.rest.conversion import Conversion

_TURN: Final = 0.004
"""Seconds for which objects are converted before others have the loop."""


class ClassConversion(Conversion):
    """Objects become those of the stored version, and from there those of another; where a class says nothing they are
    the same in both, as far as each knows them."""

    def __init__(self, declaration: Declaration, kinds: Mapping[str, CustomKind], lane: SlowLane) -> None:
        self.kinds = kinds
        self._customs = kinds
        self._instances = Instances(declaration)
        self._lane = lane

    async def values(self, values: Sequence[bytes], target: OpenKind, lane: SlowLane | None) -> list[bytes]:
        kind = self._customs[target.api_version]
        found = []
        began = perf_counter()
        for value in values:
            if perf_counter() - began > _TURN:
                await asyncio.sleep(0)
                began = perf_counter()
            own_lane = self._lane if lane is None and is_large(value) else lane
            found.append(await done(own_lane, self._converted_value, value, kind))
        return found

    def _converted_value(self, value: bytes, target: CustomKind) -> bytes:
        body = target.body_of(value)
        source = self._customs.get(target.version_of(body), target)
        obj = source.decode(body)
        # what was stored before a default was declared lacks it
        source.default(obj)
        return target.value_as_is(self._converted(obj, source, target))

    def _converted(self, obj: OpenObject, source: CustomKind, target: CustomKind) -> OpenObject:
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

    def converted(self, obj: OpenObject, source: OpenKind, target: OpenKind) -> OpenObject:
        if source is target:
            return obj
        return self._converted(obj, self._customs[source.api_version], self._customs[target.api_version])

    async def close(self) -> None:
        """Keeps nothing."""
