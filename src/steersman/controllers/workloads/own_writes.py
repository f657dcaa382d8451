"""What a controller has written and its informer has not seen yet (pkg/controller/util/consistency)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from steersman.client.api_resource import Object

K = TypeVar("K", bound=Hashable)


class OwnWrites(Generic[K]):
    """For each key the version of its object that was written last."""

    def __init__(self) -> None:
        self._written: dict[K, tuple[str, int]] = {}

    def wrote(self, key: K, obj: Object) -> None:
        """The server answered a write with this object."""
        self._written[key] = obj.metadata.uid, int(obj.metadata.resource_version)

    def is_behind(self, key: K, known: Object) -> bool:
        """Whether `known` is older than what was written. A change to it will be told of, so it need not be waited
        for."""
        written = self._written.get(key)
        if written is None or written[0] != known.metadata.uid:
            return False
        if int(known.metadata.resource_version) < written[1]:
            return True
        del self._written[key]
        return False

    def forget(self, key: K) -> None:
        """The object is gone."""
        self._written.pop(key, None)
