"""A storage whose values lie in other forms in another one: what goes in and comes out is as this server has it.

What is a value already is passed on as it is. The rest is translated where it is asked for, some ten microseconds for a
small one; large ones are translated in the worker threads. Subscribers are told in order: behind a large one that
somebody else has written they wait, and so does whoever asks for its revision.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final

from steersman.kinds.stored_form import NotAnObject, StoredForm
from steersman.machinery.large_work.sizes import is_large, is_large_protobuf
from steersman.storage.interface import (
    SEALED,
    Conflict,
    Deliver,
    Event,
    KeyExists,
    KeyValue,
    Lost,
    Range,
    Storage,
    Subscription,
    Undecodable,
)
from steersman.storage.late import Late
from steersman.storage.wrapping import WrappingStorage
from steersman.work.offloading import offload_if
from steersman.work.yielding import Turn, unhurried

_MOST_WAITING: Final = 10_000
"""Events that may wait behind a large one; a subscriber who is owed more is told of them as they are stored, and so
starts over."""


class TranslatingStorage(WrappingStorage):
    """See the module. One for each resource, as each has its own form."""

    def __init__(self, inner: Storage, form: StoredForm, late: Late | None = None) -> None:
        """`late` has the late subscribers of other resources, too."""
        super().__init__(inner)
        self.seals = inner.seals
        """True as well once anything was met that is no value: then `is_stale` is to be asked."""
        self._form = form
        self._under_way: dict[bytes, bytes] = {}
        """What is being written, as it is stored -> as it was given: whoever is told of it need not translate it."""
        self._late: Final = Late()
        self._late_of_all = Late() if late is None else late

    @property
    def revision(self) -> int:
        if not self._late.feeds:
            return self._inner.revision
        return min(self._inner.revision, *(feed.told for feed in self._late.feeds))

    async def wait_until(self, revision: int) -> None:
        await self._inner.wait_until(revision)
        await self._late.wait_until(revision)

    # Reading

    async def get(self, key: str, *, revision: int = 0) -> KeyValue | None:
        found = await self._inner.get(key, revision=revision)
        return None if found is None else await self.translated(found)

    async def is_stale(self, key: str) -> bool:
        """Also where it would be stored in another form now. As upstream, which compares what is stored."""
        if self._inner.seals and await self._inner.is_stale(key):
            return True
        found = await self._inner.get(key)
        if found is None or (self._form.writes_own and self._form.is_own(found.value)):
            return False
        value = (await self.translated(found)).value
        return await self._stored(value) != found.value

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0, count: bool = False
    ) -> Range:
        found = await self._inner.range(prefix, start=start, limit=limit, revision=revision, count=count)
        is_own = self._form.is_own
        if all(is_own(item.value) for item in found.items):
            return found
        items = []
        async for item in unhurried(found.items):
            items.append(await self.translated(item))
        return Range(items, found.revision, found.more, found.count)

    async def translated(self, item: KeyValue) -> KeyValue:
        """The item with its value. Raises Undecodable."""
        stored = item.value
        if self._is_left(stored):
            return item
        value = self._under_way.get(stored)
        if value is None:
            self.seals = True
            try:
                value = await offload_if(_is_large(stored), self._form.value, stored)
            except NotAnObject as error:
                raise Undecodable(item.key, str(error)) from error
        return KeyValue(item.key, value, item.create_revision, item.mod_revision)

    def translated_now(self, item: KeyValue) -> KeyValue | None:
        """The same at once; None if that would take long. Raises NotAnObject."""
        stored = item.value
        if self._is_left(stored):
            return item
        value = self._under_way.get(stored)
        if value is None:
            self.seals = True
            if _is_large(stored):
                return None
            value = self._form.value(stored)
        return KeyValue(item.key, value, item.create_revision, item.mod_revision)

    def translated_later(self, item: KeyValue | None) -> KeyValue | None:
        """The item, whose value is translated if somebody looks at it."""
        return item if item is None or self._is_left(item.value) else _Later(item, self._form)

    def _is_left(self, stored: bytes) -> bool:
        """Whether it is a value, or could not be decrypted: who is handed that sees it at its beginning."""
        return self._form.is_own(stored) or stored.startswith(SEALED)

    # Writing

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> KeyValue:
        if self._form.writes_own:
            return await self._inner.create(key, value, ttl=ttl)
        stored = self._under_way_as(await self._stored(value), value)
        try:
            return _with_value(await self._inner.create(key, stored, ttl=ttl), value)
        except KeyExists as error:
            raise KeyExists(_Later(error.current, self._form)) from None
        finally:
            self._under_way.pop(stored, None)

    async def update(self, key: str, value: bytes, *, expected_revision: int, ttl: int = 0) -> KeyValue:
        if self._form.writes_own:
            return await self._inner.update(key, value, expected_revision=expected_revision, ttl=ttl)
        stored = self._under_way_as(await self._stored(value), value)
        try:
            written = await self._inner.update(key, stored, expected_revision=expected_revision, ttl=ttl)
            return _with_value(written, value)
        except Conflict as error:
            raise Conflict(error.args[0], self.translated_later(error.current)) from None
        finally:
            self._under_way.pop(stored, None)

    async def delete(self, key: str, *, expected_revision: int) -> Event:
        event = await self._inner.delete(key, expected_revision=expected_revision)
        if event.previous is None or self._is_left(event.previous.value):
            return event
        return Event(event.revision, event.key, None, await self.translated(event.previous))

    async def _stored(self, value: bytes) -> bytes:
        return await offload_if(is_large(value), self._form.stored, value)

    def _under_way_as(self, stored: bytes, value: bytes) -> bytes:
        self._under_way[stored] = value
        return stored

    # Telling subscribers

    async def subscribe(
        self, prefix: str, *, after_revision: int, deliver: Deliver, lost: Lost | None = None
    ) -> Subscription:
        feed = _Feed(self, self._form, deliver, (self._late, self._late_of_all))

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


class _Feed:
    """What one subscriber is told: the past, which is waited for, and then the present, in one order."""

    subscription: Subscription

    def __init__(self, storage: TranslatingStorage, form: StoredForm, deliver: Deliver, late: Sequence[Late]) -> None:
        self._storage = storage
        self._is_own = form.is_own
        self._deliver = deliver
        self._late = late
        self._is_past = True
        self._waiting: deque[Event] = deque()
        self._work: asyncio.Task[None] | None = None
        self.told = 0
        """The revision up to which nothing waits."""
        self.caught_up = asyncio.Event()

    def take(self, events: Sequence[Event]) -> None:
        """Tells at once what can be told, and lets the rest wait."""
        if self._waiting:
            self._wait_for(events)
        elif all(map(self._is_plain, events)):
            self._deliver(events)
        else:
            self._take_others(events)

    def _is_plain(self, event: Event) -> bool:
        current, previous = event.current, event.previous
        is_own = self._is_own
        return (current is None or is_own(current.value)) and (previous is None or is_own(previous.value))

    def _take_others(self, events: Sequence[Event]) -> None:
        ready: list[Event] = []
        for number, event in enumerate(events):
            told = None if self._is_past else self._told_now(event)
            if told is None:
                if ready:
                    self._deliver(ready)
                self._wait_for(events[number:])
                return
            ready.append(told)
        self._deliver(ready)

    def _told_now(self, event: Event) -> Event | None:
        """The event with its values; as it is stored if there is no object in it, so that its subscriber finds out;
        None if it takes long. What was before is seldom looked at."""
        current = event.current
        try:
            if current is not None:
                current = self._storage.translated_now(current)
                if current is None:
                    return None
        except NotAnObject:
            return event
        return Event(event.revision, event.key, current, self._storage.translated_later(event.previous))

    def _wait_for(self, events: Sequence[Event]) -> None:
        if not self._waiting and events:
            self.told = events[0].revision - 1
            self.caught_up.clear()
        self._waiting += events
        if self._is_past or not events:
            return
        for late in self._late:
            late.feeds.add(self)
        if len(self._waiting) > _MOST_WAITING:
            self._give_up()
        elif self._work is None:
            self._work = asyncio.get_running_loop().create_task(self._catch_up())

    async def begin(self) -> None:
        """Returns once everything of the past has been told. Raises Undecodable."""
        await self._tell_waiting()
        self._is_past = False

    async def _catch_up(self) -> None:
        """Tells what waits in the present."""
        try:
            await self._tell_waiting()
        finally:
            self._work = None
            self._rest()

    async def _tell_waiting(self) -> None:
        turn = Turn()
        while self._waiting:
            event = await self._told(self._waiting[0])
            self._waiting.popleft()
            self.told = event.revision
            self._deliver([event])
            await turn.give()

    async def _told(self, event: Event) -> Event:
        """The event with its values. Of the past it raises Undecodable; in the present see `_told_now`."""
        current, previous = event.current, event.previous
        storage = self._storage
        try:
            current = None if current is None else await storage.translated(current)
            if previous is not None and self._is_past:
                previous = await storage.translated(previous)
        except Undecodable:
            if self._is_past:
                raise
            return event
        return Event(event.revision, event.key, current, storage.translated_later(previous))

    def _give_up(self) -> None:
        waiting, self._waiting = list(self._waiting), deque()
        if self._work is not None:
            self._work.cancel()
        self._rest()
        self._deliver(waiting)

    def _rest(self) -> None:
        for late in self._late:
            late.feeds.discard(self)
        self.caught_up.set()

    def cancel(self) -> None:
        """See interface.Subscription."""
        self.subscription.cancel()
        self.drop()

    def drop(self) -> None:
        """Nothing is told any more, of what waits neither."""
        self._waiting.clear()
        if self._work is not None:
            self._work.cancel()
        self._rest()


class _Later(KeyValue):
    """A key's value that is translated when it is first looked at. Raises Undecodable then."""

    __slots__ = ("_form", "_value")

    def __init__(self, item: KeyValue, form: StoredForm) -> None:
        self.key = item.key
        self.create_revision = item.create_revision
        self.mod_revision = item.mod_revision
        self._form: StoredForm | None = form
        self._value = item.value

    @property
    def value(self) -> bytes:  # type: ignore[override]  # nobody sets it
        if self._form is not None:
            form, self._form = self._form, None
            try:
                if not form.is_own(self._value):
                    self._value = form.value(self._value)
            except NotAnObject as error:
                self._form = form
                raise Undecodable(self.key, str(error)) from error
        return self._value


def _with_value(item: KeyValue, value: bytes) -> KeyValue:
    return KeyValue(item.key, value, item.create_revision, item.mod_revision)


def _is_large(stored: bytes) -> bool:
    return is_large(stored) if stored[:1] == b"{" else is_large_protobuf(stored)
