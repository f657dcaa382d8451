"""Buffering of events without waiting for them (mode `batch`): a bounded buffer, emptied in batches."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import Final

from msgspec import Struct

from steersman.audit.backends.backend import CLOSE_SECONDS, Backend, Records
from steersman.audit.backends.log import LogBackend
from steersman.audit.errors import Errors
from steersman.machinery.values.times import monotonic
from steersman.work.shielding import shielded
from steersman.work.token_bucket import TokenBucket

_PLUGIN: Final = "buffered"
MOST_BYTES: Final = 128 << 20
"""Limit of the bytes in the buffer and in batches under way, which count twice as they are in a request body too.

A single event may have megabytes if objects are recorded. Upstream limits only the number of buffered events.
"""
LARGEST_BATCH: Final = 8 << 20
"""Size in bytes at which a batch is full."""
MOST_UNDER_WAY: Final = 16 << 20
"""Limit of the bytes in concurrent batches. Until a batch is sent, several copies of it are in memory."""


class Batching(Struct, frozen=True, kw_only=True):
    """Settings of a Buffered backend.

    At most `buffer_size` events wait. A batch is sent with `max_size` events, or with fewer after `max_wait` seconds.
    With `throttle`, `qps` batches per second are sent, and `burst` at once. With `side_by_side` batches are sent
    concurrently.
    """

    buffer_size: int = 10_000
    max_size: int = 400
    max_wait: float = 30.0
    throttle: bool = True
    qps: float = 10.0
    burst: int = 15
    side_by_side: bool = True


class Buffered:
    """Wrapper that sends events to another backend in batches. If the buffer is full, an event is dropped and
    counted.
    """

    deferred = False

    def __init__(self, backend: Backend, batching: Batching, errors: Errors) -> None:
        self._backend: Final = backend
        self._batching: Final = batching
        self._errors: Final = errors
        self._buffer: Final[deque[bytes]] = deque()
        self._batch: list[bytes] | None = None
        """The batch that is being collected, or None."""
        self._batch_bytes = 0
        self._ready: Final = asyncio.Event()
        """Set when that batch is full, or at the end."""
        self._collecting: Records = ()
        """The batch that the sending task has taken but not yet passed on."""
        self._bytes = 0
        """Bytes of events that are buffered or being sent."""
        self._under_way = 0
        """Bytes of the batches that are being sent concurrently."""
        self._closed = False
        self._sending: Final[dict[asyncio.Future[bool], Records]] = {}
        self._throttle: Final = TokenBucket(batching.burst, batching.qps, monotonic) if batching.throttle else None
        self._task: Final = asyncio.get_running_loop().create_task(self._run())

    def process(self, records: Records) -> None:
        """See Backend."""
        for number, record in enumerate(records):
            if self._closed:
                self._errors.lost(_PLUGIN, "audit backend shut down", records[number:])
                return
            if self._bytes + self._under_way + len(record) > MOST_BYTES:
                self._errors.lost(_PLUGIN, "audit buffer queue blocked", records[number:])
                return
            batch = self._batch
            if batch is not None and not self._is_full(batch):
                batch.append(record)
                self._batch_bytes += len(record)
                if self._is_full(batch):
                    self._ready.set()
            elif len(self._buffer) < self._batching.buffer_size:
                self._buffer.append(record)
            else:
                self._errors.lost(_PLUGIN, "audit buffer queue blocked", records[number:])
                return
            self._bytes += len(record)

    def _is_full(self, batch: list[bytes]) -> bool:
        return len(batch) >= self._batching.max_size or self._batch_bytes >= LARGEST_BATCH

    async def close(self) -> None:
        """Send the buffered events for up to CLOSE_SECONDS; drop and count the rest. See Backend."""
        self._closed = True
        self._ready.set()
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await shielded(self._task)
                while self._sending:
                    await asyncio.wait(tuple(self._sending))
        except TimeoutError:
            await self._give_up()
        await self._backend.close()

    async def _give_up(self) -> None:
        """Stop sending, and count all unsent events as lost."""
        under_way = dict(self._sending)
        tasks: list[asyncio.Future[bool] | asyncio.Task[None]] = [self._task, *under_way]
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        left = [record for batch in (self._collecting, *under_way.values(), self._buffer) for record in batch]
        if left:
            self._errors.lost(_PLUGIN, "audit backend shut down", left)

    async def _run(self) -> None:
        while batch := await self._collected():
            self._collecting = batch
            if self._throttle is not None:
                await self._throttle.wait()
            size = sum(map(len, batch))
            while self._sending and self._under_way + size > MOST_UNDER_WAY:
                await asyncio.wait(tuple(self._sending), return_when=asyncio.FIRST_COMPLETED)
            waiting = self._backend.process(batch)
            if waiting is None:
                self._bytes -= size
            elif self._batching.side_by_side:
                future = asyncio.ensure_future(waiting)
                self._sending[future] = batch
                self._under_way += size
                future.add_done_callback(partial(self._sent, size))
            else:
                await waiting
                self._bytes -= size
            self._collecting = ()

    def _sent(self, size: int, future: asyncio.Future[bool]) -> None:
        self._sending.pop(future, None)
        self._bytes -= size
        self._under_way -= size

    async def _collected(self) -> list[bytes]:
        """Return the next batch, or an empty one at the end."""
        batching, buffer = self._batching, self._buffer
        while True:
            batch: list[bytes] = []
            self._batch_bytes = 0
            while buffer and not self._is_full(batch):
                batch.append(buffer.popleft())
                self._batch_bytes += len(batch[-1])
            if self._is_full(batch) or self._closed:
                return batch  # empty at the end, after everything was sent
            self._batch = batch
            self._ready.clear()
            try:
                async with asyncio.timeout(batching.max_wait if batching.max_size > 1 else None):
                    await self._ready.wait()
            except TimeoutError:
                pass  # send an incomplete batch
            self._batch = None
            if batch:
                return batch


class QueuedLog:
    """Bounded queue in front of a log, in place of Buffered: the log writes available events at once, without
    batches.
    """

    deferred = False

    def __init__(self, log: LogBackend, buffer_size: int, errors: Errors) -> None:
        self._log: Final = log
        self._buffer_size: Final = buffer_size
        self._errors: Final = errors

    def process(self, records: Records) -> None:
        """See Backend."""
        if self._log.waiting >= self._buffer_size or self._log.bytes + sum(map(len, records)) > MOST_BYTES:
            self._errors.lost(_PLUGIN, "audit buffer queue blocked", records)
        else:
            self._log.process(records)

    async def close(self) -> None:
        """See Backend."""
        await self._log.close()
