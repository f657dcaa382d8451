"""A storage in memory that implements the whole contract; its data end with the process."""

from __future__ import annotations

import asyncio
import heapq
from bisect import bisect_right
from collections.abc import Callable, Sequence
from operator import attrgetter

from msgspec import Struct
from sortedcontainers import SortedList

from steersman.machinery.values import times
from steersman.storage.dispatch import Registration
from steersman.storage.dispatching import CLOSED, DispatchingStorage
from steersman.storage.interface import (
    Compacted,
    Conflict,
    Event,
    FutureRevision,
    KeyExists,
    KeyValue,
    Range,
    Waiter,
)
from steersman.storage.keys import check_write
from steersman.storage.maintenance import COMPACTION_INTERVAL, LEASE_INTERVAL, Background, Compactor
from steersman.storage.rewind import past_count, past_range, present_count, present_range

_REVISION = attrgetter("revision")
_REPLAY_SLICE = 500


class Snapshot(Struct, frozen=True):
    """The content of a store at a moment, to be restored in the same store."""

    values: dict[str, KeyValue]
    seconds_left: dict[str, float]
    """The remaining seconds of keys with a lease."""
    lives: dict[str, int]
    """The create revision of each value in the store: the original one, or that of its last restoration."""


class MemoryStorage(DispatchingStorage):
    """A `Storage` in memory. Past states are computed by undoing later events.

    `compaction_interval` and `lease_interval` are the seconds between rounds of the background tasks that `start` runs
    (0: none). `clock` returns the time by which leases are measured.
    """

    knows_newest = True

    def __init__(
        self,
        *,
        compaction_interval: float = COMPACTION_INTERVAL,
        lease_interval: float = LEASE_INTERVAL,
        clock: Callable[[], float] = times.steady_unix_now,
    ) -> None:
        super().__init__(revision=1)
        self._values: dict[str, KeyValue] = {}
        self._keys: SortedList = SortedList()
        self._log: list[Event] = []
        self._histories: dict[str, list[Event]] = {}
        """The events of the log by key."""
        self._expiries: list[tuple[float, str, int]] = []
        """A heap of (time, key, revision); an entry is void if its key has another revision by now."""
        self._compacted = 0
        self._clock = clock
        self._intervals = (compaction_interval, lease_interval)
        self._background = Background()

    @classmethod
    async def open(
        cls,
        *,
        compaction_interval: float = COMPACTION_INTERVAL,
        lease_interval: float = LEASE_INTERVAL,
        clock: Callable[[], float] = times.steady_unix_now,
    ) -> MemoryStorage:
        """Return a new store with running background tasks; the caller must close it."""
        storage = cls(compaction_interval=compaction_interval, lease_interval=lease_interval, clock=clock)
        storage.start()
        return storage

    def start(self) -> None:
        """Start compaction and lease expiry on the running event loop."""
        compaction, lease = self._intervals
        self._background.start(
            Compactor(self).tick, self.expire_leases, compaction_interval=compaction, lease_interval=lease
        )

    @property
    def compact_revision(self) -> int:
        """Return the revision of the last compaction, 0 without one."""
        return self._compacted

    @property
    def refusal(self) -> str:
        """Return a text once the storage is closed."""
        return CLOSED if self._closed is not None else ""

    async def get(self, key: str, *, revision: int = 0) -> KeyValue | None:
        """Return the value of a key, without waiting. Raises Compacted, FutureRevision."""
        self._check_read(revision)
        if revision and (history := self._histories.get(key)):
            position = bisect_right(history, revision, key=_REVISION)
            if position < len(history):
                return history[position].previous
        return self._values.get(key)

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0, count: bool = False
    ) -> Range:
        """Return a range; a past revision is reconstructed from the events since. Raises Compacted, FutureRevision."""
        self._check_read(revision)
        if not revision or revision == self._revision:
            items, more = present_range(self._keys, self._values, prefix, start, limit)
            total = present_count(self._keys, prefix, start) if count else -1
            return Range(items, self._revision, more, total)
        undone = {event.key: event.previous for event in reversed(self._log_after(revision))}
        items, more = past_range(self._keys, self._values, undone, prefix, start, limit)
        total = -1
        if count:
            total = past_count(self._keys, self._values, undone, prefix, start)
        return Range(items, revision, more, total)

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> KeyValue:
        """Create a key, without waiting. Raises KeyExists."""
        check_write(key, value)
        event = self._add(key, value, ttl)
        assert event.current is not None
        return event.current

    def _add(self, key: str, value: bytes, ttl: int) -> Event:
        if self._closed is not None:
            self._check_open()
        current = self._values.get(key)
        if current is not None:
            raise KeyExists(current)
        revision = self._revision + 1
        return self._put(KeyValue(key, value, revision, revision), None, ttl)

    async def update(self, key: str, value: bytes, *, expected_revision: int, ttl: int = 0) -> KeyValue:
        """Replace a value, without waiting. Raises Conflict."""
        check_write(key, value)
        event = self._replace(key, value, expected_revision, ttl)
        assert event.current is not None
        return event.current

    def _replace(self, key: str, value: bytes, expected_revision: int, ttl: int) -> Event:
        previous = self._expect(key, expected_revision)
        return self._put(KeyValue(key, value, previous.create_revision, self._revision + 1), previous, ttl)

    async def delete(self, key: str, *, expected_revision: int) -> Event:
        """Delete a key, without waiting. Raises Conflict."""
        return self._remove(key, expected_revision)

    def _remove(self, key: str, expected_revision: int) -> Event:
        previous = self._expect(key, expected_revision)
        del self._values[key]
        self._keys.remove(key)
        event = Event(self._revision + 1, key, None, previous)
        self._commit_all((event,))
        return event

    def submit(self, key: str, value: bytes | None, expected_revision: int, ttl: int, waiter: Waiter) -> None:
        """See interface.OwnStorage."""
        self._check_open()
        try:
            if value is None:
                event = self._remove(key, expected_revision)
            elif expected_revision:
                event = self._replace(key, value, expected_revision, ttl)
            else:
                event = self._add(key, value, ttl)
        except (KeyExists, Conflict) as error:
            waiter.set_exception(error)
        else:
            waiter.set_result(event)

    def _expect(self, key: str, expected_revision: int) -> KeyValue:
        if self._closed is not None:
            self._check_open()
        current = self._values.get(key)
        if current is None or current.mod_revision != expected_revision:
            raise Conflict(key, current)
        return current

    def _put(self, current: KeyValue, previous: KeyValue | None, ttl: int) -> Event:
        if previous is None:
            self._keys.add(current.key)
        self._values[current.key] = current
        if ttl:
            heapq.heappush(self._expiries, (self._clock() + ttl, current.key, current.mod_revision))
        event = Event(current.mod_revision, current.key, current, previous)
        self._commit_all((event,))
        return event

    async def _replay(self, registration: Registration, after_revision: int, last: int) -> None:
        events = [event for event in self._log_after(after_revision) if event.key.startswith(registration.prefix)]
        for index in range(0, len(events), _REPLAY_SLICE):
            if index:
                await asyncio.sleep(0)
            registration.deliver_now(events[index : index + _REPLAY_SLICE])

    async def compact(self, revision: int) -> None:
        """Remove events up to the revision. Raises Compacted, FutureRevision."""
        self._check_open()
        if revision > self._revision:
            raise FutureRevision(revision, self._revision)
        if revision < self._compacted:
            raise Compacted(self._compacted)
        self._compacted = revision
        forgotten = bisect_right(self._log, revision, key=_REVISION)
        for event in self._log[:forgotten]:
            history = self._histories.get(event.key)
            if history is None:
                continue
            if history[-1].revision <= revision:
                del self._histories[event.key]
            elif history[0].revision <= revision:
                del history[: bisect_right(history, revision, key=_REVISION)]
        del self._log[:forgotten]

    async def expire_leases(self) -> None:
        """Delete the keys whose lease has expired."""
        now = self._clock()
        while self._expiries and self._expiries[0][0] <= now:
            _, key, revision = heapq.heappop(self._expiries)
            current = self._values.get(key)
            if current is not None and current.mod_revision == revision:
                await self.delete(key, expected_revision=revision)

    def snapshot(self) -> Snapshot:
        """Return a snapshot of the store. Values are shared, not copied."""
        now = self._clock()
        left: dict[str, float] = {}
        for when, key, revision in self._expiries:
            current = self._values.get(key)
            if current is not None and current.mod_revision == revision:
                left[key] = when - now
        lives = {key: value.create_revision for key, value in self._values.items()}
        return Snapshot(dict(self._values), left, lives)

    def restore(self, snapshot: Snapshot) -> None:
        """Restore a snapshot in one turn of the event loop: differing keys are deleted, created or updated.

        Subscribers get events as of any write. Revisions continue to grow; leases have the remaining time of the
        snapshot.
        """
        self._check_open()
        events: list[Event] = []
        for key, current in list(self._values.items()):
            wanted = snapshot.values.get(key)
            if wanted is None or (wanted.value != current.value and snapshot.lives[key] != current.create_revision):
                del self._values[key]
                self._keys.remove(key)
                events.append(Event(self._revision + len(events) + 1, key, None, current))
        now = self._clock()
        for key, wanted in snapshot.values.items():
            previous = self._values.get(key)
            if previous is not None and previous.value == wanted.value:
                continue
            revision = self._revision + len(events) + 1
            created = revision if previous is None else previous.create_revision
            restored = self._values[key] = KeyValue(key, wanted.value, created, revision)
            snapshot.lives[key] = created
            if previous is None:
                self._keys.add(key)
            if (left := snapshot.seconds_left.get(key)) is not None:
                heapq.heappush(self._expiries, (now + left, key, revision))
            events.append(Event(revision, key, restored, previous))
        if events:
            self._commit_all(events)

    def _commit_all(self, events: Sequence[Event]) -> None:
        for event in events:
            self._log.append(event)
            self._histories.setdefault(event.key, []).append(event)
        self._dispatcher.dispatch(events)
        self._revision = events[-1].revision
        self._progress.reached(self._revision)

    async def _shut_down(self) -> None:
        await self._background.stop()
        await super()._shut_down()

    def _log_after(self, revision: int) -> list[Event]:
        return self._log[bisect_right(self._log, revision, key=_REVISION) :]

    def _check_read(self, revision: int) -> None:
        self._check_open()
        if revision > self._revision:
            raise FutureRevision(revision, self._revision)
        if revision and revision < self._compacted:
            raise Compacted(self._compacted)
