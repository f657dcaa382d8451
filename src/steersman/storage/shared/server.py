"""The owner's side: it performs the requests of workers on its storage and sends each committed event to all of them."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine, Sequence
from typing import Final

from steersman.machinery.shared_words import SharedWords
from steersman.net import eager
from steersman.net.link import Link, frame
from steersman.storage.interface import Event, OwnStorage, StorageUnavailable, Subscription
from steersman.storage.shared import frames
from steersman.storage.shared.frames import Kind

logger = logging.getLogger(__name__)

MOST_UNREAD: Final = 64 << 20
"""The most unread bytes of a worker. One with more that reads nothing is disconnected, because its data fills the
memory.
"""
PATIENCE: Final = 5.0
"""The seconds after which it is, as writing some dozen large objects at once is enough to exceed the limit."""
MOST_UNREAD_AT_ALL: Final = 512 << 20
"""The unread bytes above which a worker is disconnected at once, because it will not catch up."""


class StorageServer:
    """The server of `storage`, which has no other user. The newest revision is written to `words` (see frames)."""

    def __init__(self, storage: OwnStorage, words: SharedWords) -> None:
        self._storage = storage
        self._words = words
        self._workers: set[_Worker] = set()
        self._refusal = ""
        self._subscription: Subscription | None = None

    async def start(self) -> None:
        """Subscribe to the storage. Raises the errors of the storage."""
        self._words[frames.NEWEST] = self._storage.revision
        self._words[frames.COMPACTED] = self._storage.compact_revision
        self._subscription = await self._storage.subscribe(
            "", after_revision=self._storage.revision, deliver=self._committed
        )

    async def connect(self, sock: socket.socket, ended: Callable[[], None]) -> None:
        """Serve a worker over a connected socket. `ended` is called when the connection is closed. Raises OSError."""
        worker = _Worker(self._storage, self, ended)
        worker.link = await Link.on(sock, worker.received, worker.lost)

    def add_worker(self, worker: _Worker) -> None:
        """Start sending all events to a worker, and send it the revision after which they begin."""
        worker.link.post(frames.revision_frame(Kind.HELLO, 0, self._storage.revision))
        if self._refusal:
            worker.link.post(frame(Kind.REFUSAL, 0, self._refusal.encode()))
        self._workers.add(worker)

    def remove_worker(self, worker: _Worker) -> None:
        """Remove a disconnected worker."""
        self._workers.discard(worker)

    def _committed(self, events: Sequence[Event]) -> None:
        """Send the events to all workers, before the writers get their answers."""
        self._words[frames.NEWEST] = events[-1].revision
        self._words[frames.COMPACTED] = self._storage.compact_revision
        for data in frames.events(0, events):
            self._send(data)

    def _send(self, data: bytes) -> None:
        for worker in tuple(self._workers):
            worker.link.post(data)
            if worker.is_behind():
                logger.error("a worker does not read its events and is disconnected")
                worker.link.abort()

    def notify_state(self) -> None:
        """Notify workers of states without an event: the storage no longer accepts writes, or its history was
        compacted.
        """
        self._words[frames.COMPACTED] = self._storage.compact_revision
        if self._storage.refusal and not self._refusal:
            self._refusal = self._storage.refusal
            self._send(frame(Kind.REFUSAL, 0, self._refusal.encode()))

    async def stop(self) -> None:
        """Disconnect all workers. The storage stays open."""
        if self._subscription is not None:
            self._subscription.cancel()
        for worker in tuple(self._workers):
            worker.link.close()
            await worker.finish()


class _Worker:
    """A connected worker."""

    link: Link

    def __init__(self, storage: OwnStorage, server: StorageServer, ended: Callable[[], None]) -> None:
        self._storage = storage
        self._server = server
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._taken = 0
        """The bytes that the worker had taken, and the time of that, when it last took more or had little left."""
        self._taken_at = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._verbs: Final[dict[int, Callable[[int, bytes], Coroutine[object, object, None]]]] = {
            Kind.GET: self._get,
            Kind.RANGE: self._range,
            Kind.REPLAY: self._replay,
            Kind.COMPACT: self._compact,
        }

    def lost(self) -> None:
        """Handle the end of the connection. Writes in progress are completed."""
        self._server.remove_worker(self)
        self._ended()

    def is_behind(self) -> bool:
        """Return True if the worker reads too little to be of use."""
        unread, taken, now = self.link.unsent, self.link.flushed, self._loop.time()
        if unread <= MOST_UNREAD or taken > self._taken:
            self._taken, self._taken_at = taken, now
            return unread > MOST_UNREAD_AT_ALL
        return now - self._taken_at > PATIENCE or unread > MOST_UNREAD_AT_ALL

    async def finish(self) -> None:
        """Return once no request is in progress."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def received(self, kind: int, number: int, body: bytes) -> None:
        """Handle a request."""
        if kind == Kind.WRITE:
            self._submit(number, body)
            return
        if kind == Kind.OPEN:
            self._server.add_worker(self)
            return
        task = eager.start(self._loop, self._answer(self._verbs[kind], number, body))
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(
        self, verb: Callable[[int, bytes], Coroutine[object, object, None]], number: int, body: bytes
    ) -> None:
        try:
            await verb(number, body)
        except Exception as error:
            self.fail(number, error)

    def fail(self, number: int, error: Exception) -> None:
        """Answer that a request has failed."""
        if frames.is_unforeseen(error):
            logger.error("a request of a worker failed", exc_info=error)
        self.link.post(frames.failed(number, error))
        if isinstance(error, StorageUnavailable):
            self._server.notify_state()

    def _submit(self, number: int, body: bytes) -> None:
        key, value, expected, ttl = frames.read_write(body)
        try:
            self._storage.submit(key, value or None, expected, ttl, _Answer(self, number))
        except StorageUnavailable as error:
            self.fail(number, error)

    async def _get(self, number: int, body: bytes) -> None:
        key, revision = frames.read_get(body)
        found = await self._storage.get(key, revision=revision)
        if found is not None:
            for data in frames.items(number, (found,)):
                self.link.post(data)
        self.link.post(frames.page(number, self._storage.revision, -1, more=False))

    async def _range(self, number: int, body: bytes) -> None:
        prefix, start, limit, revision, count = frames.read_range(body)
        found = await self._storage.range(prefix, start=start, limit=limit, revision=revision, count=count)
        for data in frames.items(number, found.items):
            self.link.post(data)
            await self.link.drain()
        self.link.post(frames.page(number, found.revision, found.count, more=found.more))

    async def _replay(self, number: int, body: bytes) -> None:
        prefix, after, last = frames.read_replay(body)
        while after < last:
            events, is_all = await _kept(self._storage, prefix, after)
            for data in frames.events(number, [each for each in events if each.revision <= last]):
                self.link.post(data)
                await self.link.drain()
            if is_all:
                break
            after = events[-1].revision
        self.link.post(frames.revision_frame(Kind.DONE, number, last))

    async def _compact(self, number: int, body: bytes) -> None:
        await self._storage.compact(frames.read_revision(body))
        self._server.notify_state()
        self.link.post(frames.revision_frame(Kind.DONE, number, self._storage.compact_revision))


class _Answer:
    """Sends a worker the result of its write, in the same iteration of the event loop in which all get the event."""

    __slots__ = ("_number", "_worker")

    def __init__(self, worker: _Worker, number: int) -> None:
        self._worker = worker
        self._number = number

    def done(self) -> bool:
        """See interface.Waiter."""
        return False

    def set_result(self, event: Event, /) -> None:
        """See interface.Waiter."""
        self._worker.link.post(frames.revision_frame(Kind.DONE, self._number, event.revision))

    def set_exception(self, error: Exception, /) -> None:
        """See interface.Waiter."""
        self._worker.fail(self._number, error)


ENOUGH: Final = 4 << 20
"""The bytes of events that are read before they are sent."""


async def _kept(storage: OwnStorage, prefix: str, after: int) -> tuple[list[Event], bool]:
    """Return the next kept events, and whether these are all for now. Raises Compacted and FutureRevision."""
    events: list[Event] = []
    size = 0
    reading: asyncio.Task[Subscription]

    def deliver(found: Sequence[Event]) -> None:
        nonlocal size
        events.extend(found)
        size += sum(len(each.current.value) if each.current is not None else 64 for each in found)
        if size >= ENOUGH and not reading.done():
            reading.cancel()

    reading = asyncio.ensure_future(storage.subscribe(prefix, after_revision=after, deliver=deliver))
    try:
        (await reading).cancel()
    except asyncio.CancelledError:
        if not (reading.cancelled() and size >= ENOUGH):
            reading.cancel()
            raise
        return events, False
    return events, True
