"""Base classes of storages that dispatch their own events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable
from typing import Final

from steersman.storage.dispatch import Dispatcher, Registration
from steersman.storage.interface import (
    Changes,
    Compacted,
    Conflict,
    Deliver,
    Event,
    FutureRevision,
    KeyValue,
    Lost,
    StorageUnavailable,
    Subscription,
)
from steersman.storage.keys import check_write
from steersman.storage.progress import Progress
from steersman.storage.refusals import Account
from steersman.storage.replayed_history import replayed_history
from steersman.work.single_flight import Flight

CLOSED: Final = "the store is closed"


class DispatchingStorage(ABC):
    """Revisions, subscriptions and closing of a `Storage`.

    A subclass dispatches each event with `_dispatcher`, then sets `_revision` and reports it to `_progress`. It extends
    `_shut_down`, and `_catch_up` if it learns of revisions later than its clients.
    """

    knows_newest = False
    has_other_servers = False
    seals = False
    keeps_records = False

    def __init__(self, revision: int = 0, refusals: Account | None = None) -> None:
        self._revision = revision
        self._dispatcher = Dispatcher()
        self._progress = Progress()
        self._closed: Flight[None] | None = None
        self.refusals = refusals or Account()

    @property
    def revision(self) -> int:
        """Return the newest revision whose events have been delivered to every subscriber."""
        return self._revision

    async def current_revision(self) -> int:
        """Return the same as `revision`, for a storage that nobody else writes."""
        return self._revision

    @property
    @abstractmethod
    def compact_revision(self) -> int:
        """Return the revision of the last compaction, 0 without one."""

    async def is_stale(self, key: str) -> bool:
        """Return False, as values are stored as given."""
        return False

    async def subscribe(
        self, prefix: str, *, after_revision: int, deliver: Deliver, lost: Lost | None = None
    ) -> Subscription:
        """Register the subscriber and replay the events since `after_revision`.

        Raises Compacted, FutureRevision, StorageUnavailable.
        """
        self._check_open()
        if after_revision > self._revision:
            await self._catch_up(after_revision)
        if after_revision < self.compact_revision:
            raise Compacted(self.compact_revision)
        registration = self._dispatcher.add(prefix, deliver, lost)
        if after_revision < self._revision:
            registration.hold()
            try:
                await self._replay(registration, after_revision, self._revision)
            except BaseException:
                registration.cancel()
                raise
            registration.release()
        return registration

    async def _catch_up(self, revision: int) -> None:
        """Wait until events up to a later revision have been delivered. Raises FutureRevision if nobody has written it."""
        raise FutureRevision(revision, self._revision)

    @abstractmethod
    async def _replay(self, registration: Registration, after_revision: int, last: int) -> None:
        """Deliver the stored events up to `last`; newer events are held back meanwhile. Raises StorageUnavailable."""

    @abstractmethod
    async def get(self, key: str, *, revision: int = 0) -> KeyValue | None:
        """See interface.Storage."""

    async def history(self, prefix: str, *, is_key: bool = False, before: int = 0, limit: int) -> Changes:
        """Return a page of writes by a replay of the kept events. Raises StorageUnavailable."""
        return await replayed_history(self, prefix, before, limit, is_key=is_key)

    async def revision_at(self, seconds: float) -> int:
        """Return 0, as times of writes are not known."""
        return 0

    async def wait_until(self, revision: int) -> None:
        """Wait for a future revision. Raises StorageUnavailable once the storage is closed."""
        self._check_open()
        if revision > self._revision:
            await self._progress.wait(revision)

    async def close(self) -> None:
        """Finish accepted requests and release everything, once for all callers."""
        if self._closed is None:
            self._closed = Flight(self._shut_down)
        await self._closed

    async def _shut_down(self) -> None:
        """End subscriptions and waiting."""
        self._dispatcher.clear()
        self._progress.fail(StorageUnavailable(CLOSED))

    def _check_open(self) -> None:
        """Raise StorageUnavailable if the storage is closed."""
        if self._closed is not None:
            raise StorageUnavailable(CLOSED)


class WritingStorage(DispatchingStorage):
    """Storage whose writes are requests to a thread or to another process."""

    @abstractmethod
    def _write(self, key: str, value: bytes | None, expected_revision: int, ttl: int) -> Awaitable[Event]:
        """Return the event of a create (`expected_revision` 0), an update, or a delete (no `value`).

        The awaitable raises KeyExists, Conflict, StorageUnavailable.
        """

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> KeyValue:
        """Create a key. Raises KeyExists, StorageUnavailable."""
        check_write(key, value)
        event = await self._write(key, value, 0, ttl)
        assert event.current is not None
        return event.current

    async def update(self, key: str, value: bytes, *, expected_revision: int, ttl: int = 0) -> KeyValue:
        """Replace a value. Raises Conflict, StorageUnavailable."""
        check_write(key, value)
        if expected_revision <= 0:
            raise Conflict(key, await self.get(key))
        event = await self._write(key, value, expected_revision, ttl)
        assert event.current is not None
        return event.current

    async def delete(self, key: str, *, expected_revision: int) -> Event:
        """Delete a key. Raises Conflict, StorageUnavailable."""
        check_write(key, None)
        if expected_revision <= 0:
            raise Conflict(key, await self.get(key))
        return await self._write(key, None, expected_revision, 0)
