"""Record of a controller's writes that its informer has not shown yet (pkg/controller/util/consistency)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from steersman.client.api_resource import Object

K = TypeVar("K", bound=Hashable)


class OwnWrites(Generic[K]):
    """The resourceVersion of the last write of each key's object."""

    def __init__(self) -> None:
        self._written: dict[K, tuple[str, int]] = {}

    def record(self, key: K, obj: Object) -> None:
        """Record the object that the server returned for a write."""
        self._written[key] = obj.metadata.uid, int(obj.metadata.resource_version)

    def is_stale(self, key: K, cached: Object) -> bool:
        """Return True if `cached` is older than the last write of its key.

        The informer will report the newer version, so that the caller need not retry.
        """
        written = self._written.get(key)
        if written is None or written[0] != cached.metadata.uid:
            return False
        if int(cached.metadata.resource_version) < written[1]:
            return True
        del self._written[key]
        return False

    def forget(self, key: K) -> None:
        """Remove the record of a deleted object."""
        self._written.pop(key, None)
