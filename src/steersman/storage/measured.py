"""A storage that counts and times calls, under upstream's metric names (k8s.io/apiserver `storage/etcd3/metrics`).

A write ends when its event has been delivered, so its time includes the way back through the watch.
"""

from __future__ import annotations

from collections.abc import Awaitable
from time import perf_counter
from typing import Final, TypeVar

from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.metrics import REQUEST_DURATIONS, Counter, Histogram, Labels, Registry
from steersman.storage.interface import (
    Compacted,
    Deliver,
    Event,
    FutureRevision,
    KeyValue,
    Lost,
    Range,
    Storage,
    StorageUnavailable,
    Subscription,
)
from steersman.storage.wrapping import WrappingStorage

T = TypeVar("T")

_LABELS: Final = ("operation", "group", "resource")


class CallMetrics:
    """Metrics of calls by operation and resource."""

    def __init__(self, registry: Registry) -> None:
        self.seconds: Final = Histogram(
            "etcd_request_duration_seconds",
            "[ALPHA] Etcd request latency in seconds for each operation and object type.",
            REQUEST_DURATIONS,
            _LABELS,
        )
        self.calls: Final = Counter(
            "etcd_requests_total", "[ALPHA] Etcd request counts for each operation and object type.", _LABELS
        )
        self.errors: Final = Counter(
            "etcd_request_errors_total",
            "[ALPHA] Etcd failed request counts for each operation and object type.",
            _LABELS,
        )
        registry.add(self.seconds, self.calls, self.errors)


class MeasuredStorage(WrappingStorage):
    """A wrapper that measures the calls for one resource."""

    def __init__(self, inner: Storage, resource: GroupResource, metrics: CallMetrics) -> None:
        super().__init__(inner)
        self.seals = inner.seals
        self._metrics = metrics
        self._get, self._list, self._list_with_count, self._create, self._update, self._delete = (
            (operation, resource.group, resource.resource)
            for operation in ("get", "list", "listWithCount", "create", "update", "delete")
        )

    async def _timed(self, labels: Labels, call: Awaitable[T]) -> T:
        metrics = self._metrics
        began = perf_counter()
        try:
            return await call
        except (StorageUnavailable, Compacted, FutureRevision):
            metrics.errors.inc(labels)
            raise
        finally:
            metrics.calls.inc(labels)
            metrics.seconds.observe(perf_counter() - began, labels)

    # Measured calls

    async def get(self, key: str, *, revision: int = 0) -> KeyValue | None:
        """Delegate to the storage below, measured as the operation `get`."""
        return await self._timed(self._get, self._inner.get(key, revision=revision))

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0, count: bool = False
    ) -> Range:
        """Delegate to the storage below, measured as the operation `list`, or `listWithCount` with `count`."""
        call = self._inner.range(prefix, start=start, limit=limit, revision=revision, count=count)
        return await self._timed(self._list_with_count if count else self._list, call)

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> KeyValue:
        """Delegate to the storage below, measured as the operation `create`."""
        return await self._timed(self._create, self._inner.create(key, value, ttl=ttl))

    async def update(self, key: str, value: bytes, *, expected_revision: int, ttl: int = 0) -> KeyValue:
        """Delegate to the storage below, measured as the operation `update`."""
        call = self._inner.update(key, value, expected_revision=expected_revision, ttl=ttl)
        return await self._timed(self._update, call)

    async def delete(self, key: str, *, expected_revision: int) -> Event:
        """Delegate to the storage below, measured as the operation `delete`."""
        return await self._timed(self._delete, self._inner.delete(key, expected_revision=expected_revision))

    # Delegated calls

    async def is_stale(self, key: str) -> bool:
        """Delegate to the storage below, unmeasured."""
        return await self._inner.is_stale(key)

    async def subscribe(
        self, prefix: str, *, after_revision: int, deliver: Deliver, lost: Lost | None = None
    ) -> Subscription:
        """Delegate to the storage below, unmeasured."""
        return await self._inner.subscribe(prefix, after_revision=after_revision, deliver=deliver, lost=lost)
