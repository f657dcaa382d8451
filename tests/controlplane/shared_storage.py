"""Several servers on one store, each with its own view, which may be behind the others'."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from steersman.controlplane.control_plane import PARTS
from steersman.controlplane.options import Options
from steersman.controlplane.parts.storing import OpenStorage
from steersman.storage.interface import Changes, Deliver, Event, KeyValue, Lost, Range, Subscription
from steersman.storage.memory import MemoryStorage
from steersman.work.parts import Part


class View:
    """One server's view of a store that others write to.

    While the view is `held`, writes of others arrive late: when this server waits for them, or after a write of its
    own, as all writes are in one stream of events.
    """

    knows_newest = False
    has_other_servers = True
    seals = False
    keeps_records = False
    refusal = ""

    def __init__(self, store: MemoryStorage) -> None:
        self._store = store
        self.refusals = store.refusals
        self._late: list[tuple[_Subscription, Sequence[Event]]] = []
        self._seen: int | None = None
        self.waited = 0
        """Number of times the server has waited for writes of others."""

    def hold(self) -> None:
        """Delay writes of others from now on."""
        self._seen = self._store.revision

    def release(self) -> None:
        """Deliver writes of others at once from now on."""
        self._deliver()
        self._seen = None

    def take(self, subscription: _Subscription, events: Sequence[Event]) -> None:
        self._late.append((subscription, events))
        if self._seen is None:
            self._deliver()

    def _deliver(self) -> None:
        late, self._late = self._late, []
        for subscription, events in late:
            if not subscription.cancelled:
                subscription.deliver(events)
        if self._seen is not None:
            self._seen = self._store.revision

    @property
    def revision(self) -> int:
        return self._store.revision if self._seen is None else self._seen

    async def current_revision(self) -> int:
        return self._store.revision

    @property
    def compact_revision(self) -> int:
        return self._store.compact_revision

    async def history(self, prefix: str, *, is_key: bool = False, before: int = 0, limit: int) -> Changes:
        return await self._store.history(prefix, is_key=is_key, before=before, limit=limit)

    async def revision_at(self, seconds: float) -> int:
        return 0

    async def is_stale(self, key: str) -> bool:
        return False

    async def get(self, key: str, *, revision: int = 0) -> KeyValue | None:
        return await self._store.get(key, revision=revision)

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0, count: bool = False
    ) -> Range:
        return await self._store.range(prefix, start=start, limit=limit, revision=revision, count=count)

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> KeyValue:
        made = await self._store.create(key, value, ttl=ttl)
        self._deliver()
        return made

    async def update(self, key: str, value: bytes, *, expected_revision: int, ttl: int = 0) -> KeyValue:
        made = await self._store.update(key, value, expected_revision=expected_revision, ttl=ttl)
        self._deliver()
        return made

    async def delete(self, key: str, *, expected_revision: int) -> Event:
        event = await self._store.delete(key, expected_revision=expected_revision)
        self._deliver()
        return event

    async def subscribe(
        self, prefix: str, *, after_revision: int, deliver: Deliver, lost: Lost | None = None
    ) -> Subscription:
        made = _Subscription(self, deliver)
        made.inner = await self._store.subscribe(prefix, after_revision=after_revision, deliver=made.late, lost=lost)
        return made

    async def wait_until(self, revision: int) -> None:
        await self._store.wait_until(revision)
        if self._seen is not None and revision > self._seen:
            self.waited += 1
            self._deliver()

    async def compact(self, revision: int) -> None:
        await self._store.compact(revision)

    async def close(self) -> None:
        """Do nothing: other servers still use the store."""


class _Subscription:
    inner: Subscription | None = None
    cancelled = False

    def __init__(self, view: View, deliver: Deliver) -> None:
        self._view = view
        self.deliver = deliver

    def late(self, events: Sequence[Event]) -> None:
        self._view.take(self, events)

    def cancel(self) -> None:
        self.cancelled = True
        if self.inner is not None:
            self.inner.cancel()


def parts_on(open_it: Callable[[Options], Awaitable[Any]]) -> tuple[type[Part], ...]:
    """Return the parts of a control plane whose storage is opened by `open_it`."""

    class WorkerSettings(OpenStorage):
        async def open(self) -> Any:
            return await open_it(self.options)

    return tuple(WorkerSettings if each is OpenStorage else each for each in PARTS)
