"""The writer thread: it decides and commits whole batches in order."""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
from collections.abc import Callable, Sequence
from contextvars import Context
from queue import SimpleQueue

from msgspec import Struct

from steersman.storage.interface import Conflict, Event, KeyExists, KeyValue, StorageDamaged, Waiter
from steersman.storage.origins import NO_ORIGIN, Origin, encode_record
from steersman.storage.sqlite.log import Log, Row


class Write(Struct):
    """A create (`expected_revision` 0), update, or delete (`value` None) with a waiter.

    `outcome` is the resulting event, or KeyExists, Conflict or StorageDamaged.
    """

    key: str
    value: bytes | None
    expected_revision: int
    ttl: int
    waiter: Waiter
    outcome: Event | Exception | None = None
    origin: Origin = NO_ORIGIN


def decide(
    batch: Sequence[Write], held: dict[str, KeyValue], damaged: dict[str, StorageDamaged], revision: int, now: float
) -> list[Row]:
    """Set every write's outcome and return the rows to commit. Writes to `damaged` keys are refused.

    `held` has the present values of the batch's keys, and is updated along the batch, so that writes of one key see
    each other. `revision` is the newest revision, `now` the Unix time.
    """
    rows: list[Row] = []
    for write in batch:
        key = write.key
        if damaged and key in damaged:
            write.outcome = damaged[key]
            continue
        previous = held.get(key)
        if write.expected_revision != (previous.mod_revision if previous else 0):
            if write.expected_revision == 0 and previous:
                write.outcome = KeyExists(previous)
            else:
                write.outcome = Conflict(key, previous)
            continue
        revision += 1
        replaced = previous.mod_revision if previous else 0
        if write.value is None:
            del held[key]
            rows.append((revision, key, None, 0, replaced, 0))
            write.outcome = Event(revision, key, None, previous)
            continue
        created = previous.create_revision if previous else revision
        held[key] = current = KeyValue(key, write.value, created, revision)
        expires = math.ceil(now + write.ttl) if write.ttl else 0
        rows.append((revision, key, write.value, created, replaced, expires))
        write.outcome = Event(revision, key, current, previous)
    return rows


def tell(
    loop: asyncio.AbstractEventLoop,
    callback: Callable[..., object],
    *arguments: object,
    context: Context | None = None,
) -> None:
    """Call `callback` on the event loop, from the thread. If the loop is closed, nobody waits any more."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(callback, *arguments, context=context)


class Writer:
    """The owner of the writing connection and the newest revision; it runs jobs in sequence on its thread."""

    def __init__(self, log: Log, revision: int, clock: Callable[[], float], *, keeps_records: bool = False) -> None:
        self._log = log
        self._keeps_records = keeps_records
        self._revision = revision
        self._clock = clock
        self._jobs: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="sqlite-writer", daemon=True)
        self._thread.start()

    def post(self, job: Callable[[], object]) -> None:
        """Run `job` after all posted jobs. It must not raise."""
        self._jobs.put(job)

    def commit(self, batch: Sequence[Write]) -> list[Event]:
        """Commit a batch; every write gets its outcome. Runs on the writer's thread.

        Raises sqlite3.Error, and then nothing was written.
        """
        now = self._clock()
        if len(batch) == 1 and (created := self._create_at_once(batch, now)):
            return created
        held, damaged = self._log.current(list({write.key: None for write in batch}))
        rows = decide(batch, held, damaged, self._revision, now)
        if rows:
            if self._keeps_records:
                records = [encode_record(now, write.origin) for write in batch if type(write.outcome) is Event]
                self._log.append(rows, records)
            else:
                self._log.append(rows)
            self._revision = rows[-1][0]
        return [write.outcome for write in batch if type(write.outcome) is Event]

    def _create_at_once(self, batch: Sequence[Write], now: float) -> list[Event]:
        """Commit a single create in one statement. Return no event, and write nothing, if the key exists already, or for
        another write than a create.
        """
        (write,) = batch
        if write.expected_revision or write.value is None:
            return []
        (row,) = decide(batch, {}, {}, self._revision, now)
        if not self._log.append_new(row, encode_record(now, write.origin) if self._keeps_records else None):
            return []
        self._revision = row[0]
        return [write.outcome] if type(write.outcome) is Event else []

    async def run(self, job: Callable[[Log], bool | None]) -> bool | None:
        """Run `job` on the thread between batches; return or raise its result."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool | None] = loop.create_future()

        def settle(result: bool | None, error: Exception | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        def call() -> None:
            try:
                result, error = job(self._log), None
            except Exception as caught:
                result, error = None, caught
            tell(loop, settle, result, error)

        self.post(call)
        return await future

    def stop(self) -> None:
        """Let the thread finish its jobs and wait for it. Blocks."""
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
