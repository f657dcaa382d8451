"""The worker's side: a storage that another process owns."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Final

from steersman.machinery.shared_words import SharedWords
from steersman.net.link import Link, frame
from steersman.storage.dispatch import Registration
from steersman.storage.dispatching import CLOSED, WritingStorage
from steersman.storage.interface import (
    Event,
    FutureRevision,
    KeyValue,
    OutcomeUnknown,
    Range,
    StorageUnavailable,
)
from steersman.storage.refusals import Account
from steersman.storage.shared import frames
from steersman.storage.shared.frames import Kind

_GONE: Final = "the process that owns the store has ended"
_NUMBERS: Final = 1 << 32


class SharedStorage(WritingStorage):
    """A `Storage` over a connection to its owner. To be opened with `open`.

    The owner sends every event, in order, and the events of a write before the answer to it. The newest revision is in
    shared memory before anyone learns of a write. Therefore a read of the current state needs no request, and waits at
    most for events that have been sent.
    """

    def __init__(self, words: SharedWords, ended: Callable[[], None]) -> None:
        super().__init__(refusals=Account(logs=False))  # the owner logs them
        self._words = words
        self._ended = ended
        self._link: Link | None = None
        self._refusal = ""
        self._last_number = 0
        self._calls: dict[int, asyncio.Future[bytes]] = {}
        self._items: dict[int, list[KeyValue]] = {}
        """The received items of incomplete answers."""
        self._replays: dict[int, tuple[Registration, int]] = {}
        self._writes: dict[str, list[dict[int, Event]]] = {}
        """For each key that is being written, one entry per writer: the events since the start of the write, by
        revision.
        """
        self._loop = asyncio.get_running_loop()
        self._hello: asyncio.Future[int] = self._loop.create_future()
        self._idle: asyncio.Future[None] | None = None

    @classmethod
    async def open(
        cls, sock: socket.socket, words: SharedWords, ended: Callable[[], None] = lambda: None
    ) -> SharedStorage:
        """Take over a connection to the owner, and the shared words with its revisions. `ended` is called once if the
        connection is lost. Raises OSError and StorageUnavailable.
        """
        storage = cls(words, ended)
        storage._link = await Link.on(sock, storage._received, storage._lost)
        storage._link.send(frame(Kind.OPEN, 0))
        await storage._hello
        return storage

    # State

    @property
    def newest(self) -> int:
        """The newest revision of the storage."""
        return self._words[frames.NEWEST]

    async def current_revision(self) -> int:
        """Return the newest revision of the storage, read from shared memory. Raises StorageUnavailable."""
        self._check_open()
        return self._words[frames.NEWEST]

    @property
    def compact_revision(self) -> int:
        """Return the last compaction, read from shared memory."""
        return self._words[frames.COMPACTED]

    @property
    def refusal(self) -> str:
        """Return why the process with the storage accepts no writes, or why the connection has ended, else ""."""
        return self._refusal

    # Received frames

    def _received(self, kind: int, number: int, body: bytes) -> None:
        if kind == Kind.EVENTS:
            events = frames.read_events(body)
            if number:
                self._replayed(number, events)
            else:
                self._committed(events)
        elif kind == Kind.ITEMS:
            if number in self._items:
                self._items[number] += frames.read_items(body)
        elif kind == Kind.HELLO:
            self._hello.set_result(frames.read_revision(body))
            self._revision = frames.read_revision(body)
        elif kind == Kind.REFUSAL:
            self._refusal = self._refusal or body.decode()
        else:
            call = self._calls.get(number)
            if call is None or call.done():
                return
            if kind == Kind.FAILED:
                call.set_exception(frames.read_failed(body))
            else:
                call.set_result(body)

    def _committed(self, events: list[Event]) -> None:
        if self._closed is None or self._writes:
            for event in events if self._writes else ():
                for since in self._writes.get(event.key, ()):
                    since[event.revision] = event
            self._dispatcher.dispatch(events)
        self._revision = events[-1].revision
        self._progress.reached(self._revision)

    def _replayed(self, number: int, events: list[Event]) -> None:
        if number in self._replays:
            registration, last = self._replays[number]
            found = [each for each in events if each.revision <= last]
            if found:
                registration.deliver_now(found)

    def _lost(self) -> None:
        if not self._hello.done():
            self._hello.set_exception(StorageUnavailable(_GONE))
        self._link = None
        self._refusal = self._refusal or _GONE
        for call in self._calls.values():
            if not call.done():
                call.set_exception(OutcomeUnknown(_GONE))
        self._progress.fail(StorageUnavailable(_GONE))
        if self._closed is None:
            self._ended()

    def _number(self) -> int:
        self._last_number = number = (self._last_number + 1) % _NUMBERS or 1
        return number

    async def _call(self, number: int, request: bytes) -> bytes:
        """Send a request to the owner and return the body of the answer. Raises the error in the answer and
        StorageUnavailable.
        """
        self._check_open()
        assert self._link is not None
        call: asyncio.Future[bytes] = self._loop.create_future()
        self._calls[number] = call
        self._link.post(request)
        try:
            return await call
        finally:
            del self._calls[number]
            if not self._calls and self._idle is not None and not self._idle.done():
                self._idle.set_result(None)

    # Reading

    async def get(self, key: str, *, revision: int = 0) -> KeyValue | None:
        """Ask the process with the storage for a value. Raises Compacted, FutureRevision, StorageUnavailable."""
        number = self._number()
        items, _ = await self._read(number, frames.get(number, key, revision))
        return items[0] if items else None

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0, count: bool = False
    ) -> Range:
        """Ask the process with the storage for a range. Raises Compacted, FutureRevision, StorageUnavailable."""
        number = self._number()
        request = frames.range_of(number, prefix, start, limit, revision, count=count)
        items, end = await self._read(number, request)
        at, more, total = frames.read_page(end)
        return Range(items, at, more, total)

    async def _read(self, number: int, request: bytes) -> tuple[list[KeyValue], bytes]:
        items: list[KeyValue] = []
        self._items[number] = items
        try:
            answer = await self._call(number, request)
        except StorageUnavailable as error:
            if self._closed is None:
                self.refusals.reads.refused(error)
            raise StorageUnavailable(str(error)) from error
        finally:
            del self._items[number]
        if self.refusals.reads.ongoing:
            self.refusals.reads.accepted()
        return items, answer

    # Writing

    async def _write(self, key: str, value: bytes | None, expected_revision: int, ttl: int) -> Event:
        if self._refusal:
            refused = StorageUnavailable(self._refusal)
            if self._closed is None:
                self.refusals.writes.refused(refused)
            raise refused
        since: dict[int, Event] = {}
        of_key = self._writes.setdefault(key, [])
        of_key.append(since)
        number = self._number()
        try:
            done = await self._call(number, frames.write(number, key, value or b"", expected_revision, ttl))
            if self.refusals.writes.ongoing:
                self.refusals.writes.accepted()
            return since[frames.read_revision(done)]
        except StorageUnavailable as error:
            if self._closed is None:
                self.refusals.writes.refused(error)
            raise
        finally:
            of_key[:] = [each for each in of_key if each is not since]
            if not of_key:
                del self._writes[key]

    # Events

    async def _catch_up(self, revision: int) -> None:
        """Wait for a revision that the storage has, but this process not yet."""
        if revision > self.newest:
            raise FutureRevision(revision, self.newest)
        await self.wait_until(revision)

    async def _replay(self, registration: Registration, after_revision: int, last: int) -> None:
        number = self._number()
        self._replays[number] = (registration, last)
        try:
            await self._call(number, frames.replay(number, registration.prefix, after_revision, last))
        except OutcomeUnknown as error:
            raise StorageUnavailable(str(error)) from error
        finally:
            del self._replays[number]

    def wait_for_newest(self) -> Awaitable[int] | int:
        """Return the newest revision of now, once every subscriber has received all events up to it.

        Raises StorageUnavailable, as the awaitable does.
        """
        newest = self.newest
        return newest if newest <= self._revision else self._wait_for_newest(newest)

    async def _wait_for_newest(self, newest: int) -> int:
        await self.wait_until(newest)
        return newest

    # Maintenance

    async def compact(self, revision: int) -> None:
        """Let the process with the storage compact. Raises Compacted, FutureRevision, StorageUnavailable."""
        number = self._number()
        await self._call(number, frames.compact(number, revision))

    async def _shut_down(self) -> None:
        self._refusal = self._refusal or CLOSED
        if self._calls:
            self._idle = self._loop.create_future()
            await self._idle
        if self._link is not None:
            self._link.close()
        await super()._shut_down()

    def _check_open(self) -> None:
        super()._check_open()
        if self._link is None:
            raise StorageUnavailable(_GONE)
