"""A storage that keeps values in another form in the storage below: encrypted, or as objects of other versions.

Values in their stored form pass through. Others are mapped when they are read, which takes some microseconds for a
small value. Large values are mapped in worker threads, and the keys of encrypted values are fetched first. Subscribers
get events in revision order: if an event's value is large, or its key must be fetched, later events wait, and so do
readers that need their revisions.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine, Sequence
from typing import Any, Final, Protocol

from steersman.storage.interface import (
    Change,
    Changes,
    Conflict,
    Deliver,
    Event,
    KeyExists,
    KeyValue,
    Lost,
    Range,
    Storage,
    StorageUnavailable,
    Subscription,
    Undecodable,
    Unreadable,
)
from steersman.storage.lagging import LaggingFeeds
from steersman.storage.wrapping import WrappingStorage
from steersman.work.offloading import begin_task
from steersman.work.yielding import TimeSlice, time_sliced

logger = logging.getLogger(__name__)

MOST_WAITING: Final = 10_000
"""The most events of the present that may wait for a subscriber. Beyond it the subscriber gets events in their stored
form and so starts over; a subscriber still waiting for past events is refused.
"""


class ValueMap(Protocol):
    """A mapping between the values of a resource and their stored bytes."""

    @property
    def seals(self) -> bool:
        """Return True once stored bytes may differ from values."""
        ...

    @property
    def writes_as_given(self) -> bool:
        """Return True while values are stored unchanged."""
        ...

    def is_value(self, stored: bytes) -> bool:
        """Return True for stored bytes that are values already."""
        ...

    def takes_long(self, stored: bytes) -> bool:
        """Return True for stored bytes that are mapped in worker threads."""
        ...

    def value_now(self, item: KeyValue) -> bytes | None:
        """Return the value, None if something must be fetched first. Raises Undecodable, Unreadable."""
        ...

    async def value(self, item: KeyValue) -> bytes:
        """Return the value. Raises Undecodable, Unreadable."""
        ...

    async def stored(self, key: str, value: bytes) -> bytes:
        """Return the bytes to store for a value. Raises Unwritable, and ValueError for an invalid key or value."""
        ...

    async def is_stale(self, item: KeyValue) -> bool:
        """Return True if the value would now be stored as other bytes. Raises Undecodable, Unreadable."""
        ...


class MappedStorage(WrappingStorage):
    """The values of one resource, mapped by `values`."""

    def __init__(self, inner: Storage, values: ValueMap, lagging: LaggingFeeds | None = None) -> None:
        """Take the storage below and the mapping. `lagging` has the lagging subscribers of all resources."""
        super().__init__(inner)
        self._values = values
        self._under_way: dict[bytes, bytes] = {}
        """Stored bytes of running writes and the values they were made from, for the subscribers that get their events.
        """
        self._lagging: Final = LaggingFeeds()
        self._lagging_of_all = LaggingFeeds() if lagging is None else lagging

    @property
    def seals(self) -> bool:
        """Return True if the mapping or the storage below changes values."""
        return self._values.seals or self._inner.seals

    @property
    def revision(self) -> int:
        """Return the newest revision up to which the lagging subscribers, too, have got their mapped events."""
        if not self._lagging.feeds:
            return self._inner.revision
        return min(self._inner.revision, *(feed.delivered for feed in self._lagging.feeds))

    async def wait_until(self, revision: int) -> None:
        """Wait for the storage below, then for the lagging subscribers."""
        await self._inner.wait_until(revision)
        await self._lagging.wait_until(revision)

    # Reading

    async def get(self, key: str, *, revision: int = 0) -> KeyValue | None:
        """Return the item with its mapped value. Raises Unreadable, Undecodable, and the errors of the storage below."""
        found = await self._inner.get(key, revision=revision)
        return None if found is None else await self.mapped(found)

    async def is_stale(self, key: str) -> bool:
        """Return True if the storage below or the mapping would store the value differently now. Raises Unreadable,
        Undecodable.
        """
        if self._inner.seals and await self._inner.is_stale(key):
            return True
        found = await self._inner.get(key)
        return found is not None and await self._values.is_stale(found)

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0, count: bool = False
    ) -> Range:
        """Return the range with mapped values. Raises Unreadable, Undecodable, and the errors of the storage below."""
        found = await self._inner.range(prefix, start=start, limit=limit, revision=revision, count=count)
        is_value = self._values.is_value
        if all(is_value(item.value) for item in found.items):
            return found
        items = []
        async for item in time_sliced(found.items):
            items.append(await self.mapped(item))
        return Range(items, found.revision, found.more, found.count)

    async def history(self, prefix: str, *, is_key: bool = False, before: int = 0, limit: int) -> Changes:
        """Return the writes with mapped values. A value that cannot be read stays in its stored form."""
        found = await self._inner.history(prefix, is_key=is_key, before=before, limit=limit)
        items = []
        async for each in time_sliced(found.items):
            event = each.event
            current, previous = (
                await self._mapped_if_readable(event.current),
                await self._mapped_if_readable(event.previous),
            )
            items.append(Change(Event(event.revision, event.key, current, previous), each.record, each.is_oldest))
        return Changes(items, found.more)

    async def _mapped_if_readable(self, item: KeyValue | None) -> KeyValue | None:
        if item is None:
            return None
        try:
            return await self.mapped(item)
        except (Undecodable, Unreadable):
            return item

    async def mapped(self, item: KeyValue) -> KeyValue:
        """Return the item with its value. Raises Undecodable, Unreadable."""
        stored = item.value
        if self._values.is_value(stored):
            return item
        value = self._under_way.get(stored)
        return _with_value(item, await self._values.value(item) if value is None else value)

    def mapped_now(self, item: KeyValue) -> KeyValue | None:
        """Return the item with its value, None if that would block the event loop. Raises Undecodable, Unreadable."""
        stored = item.value
        if self._values.is_value(stored):
            return item
        value = self._under_way.get(stored)
        if value is None:
            value = None if self._values.takes_long(stored) else self._values.value_now(item)
        return None if value is None else _with_value(item, value)

    def mapped_later(self, item: KeyValue | None) -> KeyValue | None:
        """Return the item, whose value is mapped when it is first read."""
        return item if item is None or self._values.is_value(item.value) else _LazyItem(item, self._values)

    # Writing

    def create(self, key: str, value: bytes, *, ttl: int = 0) -> Coroutine[Any, Any, KeyValue]:
        """Return the coroutine that maps and stores the value; that of the storage below if values are stored
        unchanged.
        """
        if self._values.writes_as_given:
            return self._inner.create(key, value, ttl=ttl)
        return self._create(key, value, ttl)

    async def _create(self, key: str, value: bytes, ttl: int) -> KeyValue:
        stored = await self._begin(key, value)
        try:
            return _with_value(await self._inner.create(key, stored, ttl=ttl), value)
        except KeyExists as error:
            raise KeyExists(self._as_far_as_readable(error.current)) from None
        finally:
            self._under_way.pop(stored, None)

    def update(self, key: str, value: bytes, *, expected_revision: int, ttl: int = 0) -> Coroutine[Any, Any, KeyValue]:
        """Return the coroutine that maps and replaces the value; that of the storage below if values are stored
        unchanged.
        """
        if self._values.writes_as_given:
            return self._inner.update(key, value, expected_revision=expected_revision, ttl=ttl)
        return self._update(key, value, expected_revision, ttl)

    async def _update(self, key: str, value: bytes, expected_revision: int, ttl: int) -> KeyValue:
        stored = await self._begin(key, value)
        try:
            written = await self._inner.update(key, stored, expected_revision=expected_revision, ttl=ttl)
            return _with_value(written, value)
        except Conflict as error:
            raise self._conflict(error) from None
        finally:
            self._under_way.pop(stored, None)

    async def delete(self, key: str, *, expected_revision: int) -> Event:
        """Delete the key and return the event with the mapped previous value. A Conflict has the mapped current value."""
        try:
            event = await self._inner.delete(key, expected_revision=expected_revision)
        except Conflict as error:
            raise self._conflict(error) from None
        previous = event.previous
        if previous is None or self._values.is_value(previous.value):
            return event
        return Event(event.revision, event.key, None, await self.mapped(previous))

    async def _begin(self, key: str, value: bytes) -> bytes:
        """Return the bytes to store for a value, and remember the pair while the write is running."""
        stored = await self._values.stored(key, value)
        if stored is not value:
            self._under_way[stored] = value
        return stored

    def _conflict(self, error: Conflict) -> Conflict:
        current = error.current
        return Conflict(error.args[0], None if current is None else self._as_far_as_readable(current))

    def _as_far_as_readable(self, item: KeyValue) -> KeyValue:
        """Return the item with its value, or unchanged if the value is not available immediately."""
        try:
            return self.mapped_now(item) or item
        except (Undecodable, Unreadable):
            return item

    # Subscribers

    async def subscribe(
        self, prefix: str, *, after_revision: int, deliver: Deliver, lost: Lost | None = None
    ) -> Subscription:
        """Subscribe a feed that maps values and delivers events in their order."""
        feed = _MappingSubscriber(self, self._values, deliver, (self._lagging, self._lagging_of_all))

        def end(error: Exception) -> None:
            feed.drop()
            if lost is not None:
                lost(error)

        feed.subscription = await self._inner.subscribe(
            prefix, after_revision=after_revision, deliver=feed.take, lost=end
        )
        try:
            await feed.begin()
        except BaseException:
            feed.cancel()
            raise
        return feed


class _MappingSubscriber:
    """The events of one subscriber in order: first past events, which `subscribe` awaits, then present ones."""

    subscription: Subscription
    """The subscription to the storage below."""

    def __init__(
        self, storage: MappedStorage, values: ValueMap, deliver: Deliver, lagging: Sequence[LaggingFeeds]
    ) -> None:
        self._storage = storage
        self._is_value = values.is_value
        self._deliver = deliver
        self._lagging = lagging
        self._is_past = True
        self._waiting: deque[Event] = deque()
        self._most_waiting = 0
        """The limit of waiting events, 0 for none: past events are also in the storage below."""
        self._is_owed_too_much = False
        self._work: asyncio.Task[None] | None = None
        self.delivered = 0
        """The revision up to which no event waits."""
        self.caught_up = asyncio.Event()

    def take(self, events: Sequence[Event]) -> None:
        """Deliver events whose values are available, and let the rest wait."""
        if self._waiting:
            self._wait_for(events)
        elif self._are_plain(events):
            self._deliver(events)
        else:
            self._take_others(events)

    def _are_plain(self, events: Sequence[Event]) -> bool:
        is_value = self._is_value
        for event in events:
            current, previous = event.current, event.previous
            if (current is not None and not is_value(current.value)) or (
                previous is not None and not is_value(previous.value)
            ):
                return False
        return True

    def _take_others(self, events: Sequence[Event]) -> None:
        ready: list[Event] = []
        for number, event in enumerate(events):
            mapped = None if self._is_past else self._mapped_now(event)
            if mapped is None:
                if ready:
                    self._deliver(ready)
                self._wait_for(events[number:])
                return
            ready.append(mapped)
        self._deliver(ready)

    def _mapped_now(self, event: Event) -> Event | None:
        """Return the event with its values, None if that would block the event loop.

        An unreadable event is returned in its stored form, so that the subscriber notices. The previous value is mapped
        lazily, because it is rarely read.
        """
        current = event.current
        try:
            if current is not None:
                current = self._storage.mapped_now(current)
                if current is None:
                    return None
        except (Undecodable, Unreadable) as error:
            return _as_stored(event, error)
        return Event(event.revision, event.key, current, self._storage.mapped_later(event.previous))

    def _wait_for(self, events: Sequence[Event]) -> None:
        if not events or self._is_owed_too_much:
            return
        if not self._waiting:
            self.delivered = events[0].revision - 1
            self.caught_up.clear()
        self._waiting += events
        self._is_owed_too_much = 0 < self._most_waiting < len(self._waiting)
        if self._is_past:
            return
        for lagging in self._lagging:
            lagging.feeds.add(self)
        if self._is_owed_too_much:
            self._give_up()
        elif self._work is None:
            self._work = begin_task(self._catch_up())

    async def begin(self) -> None:
        """Return once all past events are delivered. Raises Undecodable, Unreadable, StorageUnavailable."""
        self._most_waiting = len(self._waiting) + MOST_WAITING
        await self._deliver_waiting()
        self._most_waiting = MOST_WAITING
        self._is_past = False

    async def _catch_up(self) -> None:
        """Deliver the waiting present events. The caller of `cancel` takes over the remaining ones."""
        try:
            await self._deliver_waiting()
        except Exception:
            logger.exception("a subscription failed and is cancelled")
            self.subscription.cancel()
            self._waiting.clear()
        self._work = None
        self._rest()

    async def _deliver_waiting(self) -> None:
        time_slice = TimeSlice()
        while self._waiting:
            event = await self._mapped(self._waiting[0])
            if self._is_owed_too_much:
                raise StorageUnavailable("too many events wait for those of the past")
            if self._waiting:  # the subscription may have been cancelled
                self._waiting.popleft()
                self.delivered = event.revision
                self._deliver([event])
            await time_slice.pause_if_over()

    async def _mapped(self, event: Event) -> Event:
        """Return the event with its values. Raises Undecodable and Unreadable for past events."""
        current, previous = event.current, event.previous
        storage = self._storage
        try:
            current = None if current is None else await storage.mapped(current)
            if previous is not None:
                previous = await storage.mapped(previous) if self._is_past else storage.mapped_later(previous)
        except (Undecodable, Unreadable) as error:
            if self._is_past:
                raise
            return _as_stored(event, error)
        return Event(event.revision, event.key, current, previous)

    def _give_up(self) -> None:
        waiting = list(self._waiting)
        self.drop()
        self._is_owed_too_much = False
        self._deliver(waiting)

    def _rest(self) -> None:
        for lagging in self._lagging:
            lagging.feeds.discard(self)
        self.caught_up.set()

    def cancel(self) -> None:
        """See interface.Subscription."""
        self.subscription.cancel()
        self.drop()

    def drop(self) -> None:
        """Drop the waiting events."""
        self._waiting.clear()
        work, self._work = self._work, None
        if work is not None:
            work.cancel()
        self._rest()


class _LazyItem(KeyValue):
    """A key's value that is mapped when it is first read.

    Reading it raises Undecodable and Unreadable. If something would have to be fetched first, it gives the stored
    bytes.
    """

    __slots__ = ("_value", "_values")

    def __init__(self, item: KeyValue, values: ValueMap) -> None:
        self.key = item.key
        self.create_revision = item.create_revision
        self.mod_revision = item.mod_revision
        self._values: ValueMap | None = values
        self._value = item.value

    @property
    def value(self) -> bytes:  # type: ignore[override]  # it has no setter
        if self._values is not None:
            item = KeyValue(self.key, self._value, self.create_revision, self.mod_revision)
            self._value = self._values.value_now(item) or self._value
            self._values = None
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyValue) and _with_value(self, self.value) == _with_value(other, other.value)


def _with_value(item: KeyValue, value: bytes) -> KeyValue:
    return KeyValue(item.key, value, item.create_revision, item.mod_revision)


def _as_stored(event: Event, error: Undecodable | Unreadable) -> Event:
    if isinstance(error, Unreadable):
        logger.warning("%s cannot be decrypted for its watchers: %s", event.key, error)
    return event
