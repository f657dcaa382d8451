"""A storage whose values are sealed in another one: what goes in and comes out is as it would be without.

Sealing, and opening what a key is there for, is done where it is asked for: some microseconds a value. Large values go
to a thread. A value whose key a plugin has to be asked for is waited for, except where subscribers are told of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Final

from steersman.storage.encryption.transformer import NeedsKey, Opened, Transformer, TransformError
from steersman.storage.interface import (
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
    Unreadable,
    Unwritable,
)
from steersman.storage.keys import check_write
from steersman.storage.wrapping import WrappingStorage
from steersman.work.yielding import unhurried

logger = logging.getLogger(__name__)

_LARGE: Final = 1 << 20
"""Bytes of a value from which on a thread works on it."""
_KEYS_TRIED: Final = 3
_MOST_WAITING: Final = 10_000
"""Events of the past that a subscriber may be owed while a key is fetched."""


class EncryptedStorage(WrappingStorage):
    """See the module. One for each resource, as each has its own transformer."""

    seals = True

    def __init__(self, inner: Storage, transformer: Transformer) -> None:
        super().__init__(inner)
        self._transformer = transformer
        self._under_way: dict[bytes, bytes] = {}
        """What is being written, as it is stored -> as it was given: whoever is told of it need not open it."""

    # Reading

    async def get(self, key: str, *, revision: int = 0) -> KeyValue | None:
        found = await self._inner.get(key, revision=revision)
        return None if found is None else await self._opened(found)

    async def is_stale(self, key: str) -> bool:
        found = await self._inner.get(key)
        return found is not None and (await self._open(key, found.value)).is_stale

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0, count: bool = False
    ) -> Range:
        found = await self._inner.range(prefix, start=start, limit=limit, revision=revision, count=count)
        items = []
        async for item in unhurried(found.items):
            items.append(await self._opened(item))
        return Range(items, found.revision, found.more, found.count)

    async def _opened(self, item: KeyValue) -> KeyValue:
        value = (await self._open(item.key, item.value)).value
        return KeyValue(item.key, value, item.create_revision, item.mod_revision)

    async def _open(self, key: str, stored: bytes) -> Opened:
        """Raises Unreadable."""
        path = key.encode()
        try:
            for _ in range(_KEYS_TRIED):
                try:
                    if len(stored) < _LARGE:
                        return self._transformer.open(stored, path)
                    return await asyncio.to_thread(self._transformer.open, stored, path)
                except NeedsKey as missing:
                    await missing.fetch()
        except TransformError as error:
            raise Unreadable(key, str(error)) from error
        raise Unreadable(key, "its key is forgotten as soon as it is there")

    # Writing

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> KeyValue:
        sealed = await self._seal(key, value)
        try:
            return _with_value(await self._inner.create(key, sealed, ttl=ttl), value)
        except KeyExists as error:
            raise KeyExists(self._as_far_as_readable(error.current)) from None
        finally:
            self._under_way.pop(sealed, None)

    async def update(self, key: str, value: bytes, *, expected_revision: int, ttl: int = 0) -> KeyValue:
        sealed = await self._seal(key, value)
        try:
            written = await self._inner.update(key, sealed, expected_revision=expected_revision, ttl=ttl)
            return _with_value(written, value)
        except Conflict as error:
            raise self._conflict(error) from None
        finally:
            self._under_way.pop(sealed, None)

    async def delete(self, key: str, *, expected_revision: int) -> Event:
        try:
            event = await self._inner.delete(key, expected_revision=expected_revision)
        except Conflict as error:
            raise self._conflict(error) from None
        previous = None if event.previous is None else await self._opened(event.previous)
        return Event(event.revision, event.key, None, previous)

    async def _seal(self, key: str, value: bytes) -> bytes:
        """Raises Unwritable."""
        check_write(key, value)
        path = key.encode()
        try:
            if len(value) < _LARGE:
                sealed = self._transformer.seal(value, path)
            else:
                sealed = await asyncio.to_thread(self._transformer.seal, value, path)
        except TransformError as error:
            logger.error("a value of %s cannot be encrypted: %s", key, error)
            raise Unwritable(str(error)) from error
        if sealed is not value:
            self._under_way[sealed] = value
        return sealed

    def _conflict(self, error: Conflict) -> Conflict:
        current = error.current
        return Conflict(error.args[0], None if current is None else self._as_far_as_readable(current))

    # Telling subscribers

    async def subscribe(
        self, prefix: str, *, after_revision: int, deliver: Deliver, lost: Lost | None = None
    ) -> Subscription:
        feed = _Feed(self, deliver)
        subscription = await self._inner.subscribe(prefix, after_revision=after_revision, deliver=feed.take, lost=lost)
        try:
            await feed.catch_up()
        except BaseException:
            subscription.cancel()
            raise
        return subscription

    def opened_now(self, event: Event) -> Event:
        """The event with its values opened. Raises NeedsKey, TransformError."""
        current, previous = event.current, event.previous
        if current is not None:
            value = self._under_way.get(current.value)
            current = _with_value(current, self._open_now(current) if value is None else value)
        if previous is not None:
            previous = _with_value(previous, self._open_now(previous))
        return Event(event.revision, event.key, current, previous)

    async def opened(self, event: Event) -> Event:
        """The same, waiting for keys. Raises Unreadable."""
        current = None if event.current is None else await self._opened(event.current)
        previous = None if event.previous is None else await self._opened(event.previous)
        return Event(event.revision, event.key, current, previous)

    def _open_now(self, item: KeyValue) -> bytes:
        return self._transformer.open(item.value, item.key.encode()).value

    def _as_far_as_readable(self, item: KeyValue) -> KeyValue:
        """The item with its value, or with what is stored of it (interface.SEALED) where that cannot be opened now."""
        try:
            return _with_value(item, self._open_now(item))
        except (NeedsKey, TransformError):
            return item


class _Feed:
    """What one subscriber is told: the past, for which keys may be waited for, and then the present, in one order.

    An event of the present that cannot be opened at once is handed on as it is stored: its subscriber starts over.
    """

    def __init__(self, storage: EncryptedStorage, deliver: Deliver) -> None:
        self._storage = storage
        self._deliver = deliver
        self._is_past = True
        self._waiting: deque[Event] = deque()

    def take(self, events: Sequence[Event]) -> None:
        """Raises StorageUnavailable for too many events that wait."""
        if self._waiting:
            self._wait_for(events)
            return
        opened: list[Event] = []
        for event in events:
            try:
                opened.append(self._storage.opened_now(event))
            except (NeedsKey, TransformError) as error:
                if self._is_past:
                    break
                logger.warning("%s cannot be decrypted as its watchers are to be told of it: %s", event.key, error)
                opened.append(event)
        if opened:
            self._deliver(opened)
        self._wait_for(events[len(opened) :])

    def _wait_for(self, events: Sequence[Event]) -> None:
        self._waiting += events
        if len(self._waiting) > _MOST_WAITING:
            raise StorageUnavailable("too many events of the past wait for keys")

    async def catch_up(self) -> None:
        """Returns once everything of the past has been told. Raises Unreadable."""
        while self._waiting:
            event = await self._storage.opened(self._waiting[0])
            self._waiting.popleft()
            self._deliver([event])
        self._is_past = False


def _with_value(item: KeyValue, value: bytes) -> KeyValue:
    return KeyValue(item.key, value, item.create_revision, item.mod_revision)
