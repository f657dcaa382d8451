"""The SQLite implementation of the storage contract: the part on the event loop."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextvars import copy_context
from pathlib import Path
from time import perf_counter
from typing import Final, TypeVar

from msgspec import Struct

from steersman.machinery.values import times
from steersman.storage.dispatch import Registration
from steersman.storage.dispatching import CLOSED, WritingStorage
from steersman.storage.interface import (
    Changes,
    Compacted,
    Conflict,
    Event,
    FutureRevision,
    KeyValue,
    OutcomeUnknown,
    Range,
    StorageDamaged,
    StorageFormatError,
    StorageUnavailable,
    ValueRefused,
    Waiter,
)
from steersman.storage.maintenance import COMPACTION_INTERVAL, LEASE_INTERVAL, Background, Compactor
from steersman.storage.origins import NO_ORIGIN, current_origin
from steersman.storage.retention import ROW_OVERHEAD, History, Retention
from steersman.storage.sqlite import compaction, past_writes
from steersman.storage.sqlite.checkpoint import Checkpointer, pages_of
from steersman.storage.sqlite.file import FileLock, advice, connect, is_new, keep_log, prepare
from steersman.storage.sqlite.file_identity import FileGone, FileIdentity
from steersman.storage.sqlite.log import FIRST_PAGE, Log, next_page
from steersman.storage.sqlite.reader import Readers
from steersman.storage.sqlite.writer import Write, Writer, tell
from steersman.work.shielding import shielded

logger = logging.getLogger(__name__)

T = TypeVar("T")

_BATCH_WRITES: Final = 256
_BATCH_BYTES: Final = 16 << 20
_ENOUGH_WRITES: Final = 16
"""Pending writes that are committed at once, although more may arrive in the next iteration of the event loop: so many
share the cost of a commit well.
"""
_WAITED_ITERATIONS: Final = 4
"""Iterations of the event loop that pending writes may wait for others."""
_WRITER_CACHE_KIB: Final = 4096
_READER_CACHE_KIB: Final = 1024
_READER_THREADS: Final = 2
_WAL_PAGES: Final = 4000
"""The length in pages from which a commit checkpoints the write-ahead log, if the checkpointer has not."""
_WAL_BYTES_KEPT: Final = 16 << 20
"""The size to which the log is truncated if readers made it longer."""
_EXPIRED_AT_ONCE: Final = 500
_RETENTION_INTERVAL: Final = 1.0
"""Seconds between compactions of a store that keeps history within bounds."""
_FATAL: Final = frozenset({"SQLITE_IOERR_FSYNC", "SQLITE_IOERR_DIR_FSYNC"})
"""After these errors the content of the disk is unknown: the kernel may have dropped pages that it never writes again.
"""

_DAMAGED: Final = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_REST: Final = 9.0
"""The pause between two slices of a background check, as a multiple of the slice's duration."""

_FAULTS: Final = {
    "SQLITE_FULL": "the disk or its quota is full",
    "SQLITE_IOERR": "the disk failed",
    "SQLITE_CORRUPT": "the file is damaged",
    "SQLITE_NOTADB": "the file is damaged",
    "SQLITE_READONLY": "the file is read-only",
    "SQLITE_BUSY": "the file is locked",
    "SQLITE_CANTOPEN": "the file cannot be opened",
    "SQLITE_NOMEM": "there is no memory left",
    "SQLITE_TOOBIG": "the value is too large",
}


class SQLiteStorage(WritingStorage):
    """A `Storage` in a SQLite file, opened with `open`.

    Writes of one turn of the event loop, and those that arrive during a commit, go into one transaction. A write whose
    caller is cancelled may still be committed, and is then delivered to subscribers like any other.
    """

    knows_newest = True

    def __init__(
        self,
        path: Path,
        lock: FileLock,
        log: Log,
        clock: Callable[[], float],
        loop: asyncio.AbstractEventLoop,
        *,
        durable: bool,
        retention: Retention | None = None,
    ) -> None:
        self._path = path
        self._lock = lock
        self.log = log
        """The file's tables, for the writer's thread."""
        self._clock = clock
        self._loop = loop
        self._context = copy_context()
        """Context of the server, in which events are delivered: the writer's thread has none."""
        revision, self._compact_revision, _ = log.revisions()
        super().__init__(revision)
        self._history = None if retention is None else History(retention)
        """The account of history; None without a retention, when no records are stored."""
        self._unaccounted = revision
        """The newest revision of the file when it was opened, 0 once its history is in the account."""
        self.keeps_records = retention is not None
        self.writer = Writer(log, revision, clock, keeps_records=self.keeps_records)
        """The thread that writes."""
        self._place = FileIdentity(path)
        self.checkpointer = Checkpointer(path, log.connection, self.writer.post, durable=durable)
        """The thread that moves the write-ahead log into the file."""
        self._readers = Readers(path, threads=_READER_THREADS, cache_kib=_READER_CACHE_KIB)
        self._background = Background()
        self._compacting = asyncio.Lock()
        self._pending: list[Write] = []
        self._committing = False
        self._flush_scheduled = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._refusal = ""

    @classmethod
    async def open(
        cls,
        path: str | os.PathLike[str],
        *,
        compaction_interval: float = COMPACTION_INTERVAL,
        lease_interval: float = LEASE_INTERVAL,
        quota_bytes: int = 0,
        durable: bool = True,
        retention: Retention | None = None,
        clock: Callable[[], float] = times.steady_unix_now,
    ) -> SQLiteStorage:
        """Open the file at `path`, creating it (but not its directory) if it does not exist.

        Intervals are in seconds; 0 disables a background task. `quota_bytes` limits the file (0: no limit); a write
        that needs more raises StorageUnavailable. A store that is not `durable` may lose its last writes, or the file,
        in a power cut, but not with its process. With a `retention` each write is stored with its time and origin, and
        compaction keeps history within these bounds, whatever its interval. `clock` returns the Unix time. Raises
        StorageLocked, StorageFormatError, StorageUnavailable if SQLite cannot open the file, OSError.
        """
        opening = asyncio.create_task(asyncio.to_thread(_open_file, Path(path), quota_bytes, durable=durable))
        try:
            opened = await shielded(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_abandon)
            raise
        storage = cls(
            opened.path,
            opened.lock,
            opened.log,
            clock,
            asyncio.get_running_loop(),
            durable=durable,
            retention=retention,
        )
        storage._background.start(
            Compactor(storage).tick if retention is None else storage.keep_history,
            storage.expire_leases,
            compaction_interval=compaction_interval if retention is None else _RETENTION_INTERVAL,
            lease_interval=lease_interval,
        )
        if not opened.checked:
            storage._background.run(storage.check())
        return storage

    @property
    def compact_revision(self) -> int:
        """Return the revision of the last compaction, 0 without one."""
        return self._compact_revision

    @property
    def refusal(self) -> str:
        """Return why no write is accepted until a restart: a failed disk, replaced files, a closed store; else ""."""
        return self._refusal

    # Writes

    def _write(self, key: str, value: bytes | None, expected_revision: int, ttl: int) -> asyncio.Future[Event]:
        future: asyncio.Future[Event] = self._loop.create_future()
        self.submit(key, value, expected_revision, ttl, future)
        return future

    def submit(self, key: str, value: bytes | None, expected_revision: int, ttl: int, waiter: Waiter) -> None:
        """See interface.OwnStorage."""
        if self._refusal:
            refused = StorageUnavailable(self._refusal)
            if self._closed is None:
                self.refusals.writes.refused(refused)
            raise refused
        origin = NO_ORIGIN if self._history is None else current_origin()
        self._pending.append(Write(key, value, expected_revision, ttl, waiter, origin=origin))
        if not self._committing and not self._flush_scheduled:
            self._flush_scheduled = True
            self._idle.clear()
            self._flush_soon(_WAITED_ITERATIONS)

    def _flush_soon(self, iterations: int) -> None:
        """Flush in the next iteration of the event loop; later, by up to `iterations`, while each brings more writes.

        A commit costs the processor as much as eight writes, and an iteration processes only some of the requests that have
        arrived. Writes do not wait for an idle client: an iteration without a new write is the last one.
        """
        self._loop.call_soon(self._flush_if_complete, len(self._pending), iterations)

    def _flush_if_complete(self, seen: int, iterations: int) -> None:
        if iterations > 1 and seen < len(self._pending) < _ENOUGH_WRITES:
            self._flush_soon(iterations - 1)
        else:
            self._flush()

    def _flush(self) -> None:
        """Hand pending writes to the writer, at most one batch at a time."""
        self._flush_scheduled = False
        pending = self._pending
        taken = size = 0
        while taken < len(pending) and taken < _BATCH_WRITES and size < _BATCH_BYTES:
            size += len(pending[taken].value or b"")
            taken += 1
        if not taken:
            self._committing = False
            self._idle.set()
            return
        batch, self._pending = pending[:taken], pending[taken:]
        self._committing = True
        self.writer.post(lambda: self._commit(batch, size))

    def _commit(self, batch: list[Write], size: int) -> None:
        """Commit a batch. Runs on the writer's thread."""
        try:
            events = self.writer.commit(batch)
            if events:
                self._place.check()
        except Exception as error:
            tell(self._loop, self._failed, batch, error)
        else:
            self.checkpointer.wrote(pages_of(len(events), size))
            # last, as the event loop wakes up at once and then waits for this thread to release the interpreter
            tell(self._loop, self._committed, batch, events, context=self._context.copy())

    def _committed(self, batch: list[Write], events: list[Event]) -> None:
        # The next batch comes first, if it is large enough: the disk works on it while this one is delivered.
        if 0 < len(self._pending) < _ENOUGH_WRITES:
            self._flush_soon(_WAITED_ITERATIONS)
        else:
            self._flush()
        if events:
            self._dispatcher.dispatch(events)
            self._revision = events[-1].revision
            self._progress.reached(self._revision)
            if self._history is not None:
                self._history.add(self._revision, self._clock(), _replaced_bytes(events))
            if self.refusals.writes.ongoing:
                self.refusals.writes.accepted()
        for write in batch:
            waiter = write.waiter
            if not waiter.done():
                if type(write.outcome) is Event:
                    waiter.set_result(write.outcome)
                else:
                    assert isinstance(write.outcome, Exception)
                    waiter.set_exception(write.outcome)

    def _failed(self, batch: list[Write], error: Exception) -> None:
        if not self._is_fatal(error):
            self._flush()
            kind = ValueRefused if getattr(error, "sqlite_errorname", "") == "SQLITE_TOOBIG" else StorageUnavailable
            self._refuse(batch, lambda: kind(f"nothing was written: {fault_text(error)}"), error)
            return
        pending, self._pending = self._pending, []
        self._flush()
        self._refuse(batch, lambda: OutcomeUnknown(self._refusal), error)  # a restart may find these writes in the log
        self._refuse(pending, lambda: StorageUnavailable(self._refusal), error)

    def _refuse(self, batch: Sequence[Write], failure: Callable[[], StorageUnavailable], cause: Exception) -> None:
        """Report a failure to the waiters of these writes."""
        if batch and not isinstance(why := failure(), ValueRefused):
            self.refusals.writes.refused(why, len(batch))
        for write in batch:
            if not write.waiter.done():
                told = failure()
                told.__cause__ = cause
                write.waiter.set_exception(told)

    def _is_fatal(self, error: Exception) -> bool:
        """Return True if nothing can be written any more; then all later writes are refused."""
        if isinstance(error, FileGone):
            self._refusal = f"what is written would not be found again ({error}); restart once the files are back"
            return True
        if getattr(error, "sqlite_errorname", "") not in _FATAL:
            return False
        self._refusal = f"the disk failed to keep a write ({fault_text(error)}); restart to read what it has"
        return True

    # Reads

    async def get(self, key: str, *, revision: int = 0) -> KeyValue | None:
        """Return the value of a key, read in a thread. Raises Compacted, FutureRevision, StorageUnavailable."""
        return await self._read(revision, lambda log, at: log.get(key, at))

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0, count: bool = False
    ) -> Range:
        """Return a range, read in a thread. Raises Compacted, FutureRevision, StorageUnavailable."""

        def read(log: Log, at: int) -> Range:
            items, more = log.range(prefix, start, limit, at)
            total = -1
            if count:
                total = log.count(prefix, start, at) if more else len(items)
            return Range(items, at, more, total)

        return await self._read(revision, read)

    async def _read(self, revision: int, read: Callable[[Log, int], T]) -> T:
        """Call `read` with the requested or the newest revision; again if the latter was compacted meanwhile."""
        self._check_open()
        if revision > self._revision:
            raise FutureRevision(revision, self._revision)
        while True:
            at = revision or self._revision
            try:
                return await self._on_reader(lambda log: read(log, at))  # noqa: B023  # awaited in this round
            except Compacted:
                if revision or at == self._revision:
                    raise

    async def _on_reader(self, read: Callable[[Log], T]) -> T:
        try:
            found = await self._readers.run(read)
        except StorageDamaged as error:
            self.refusals.reads.refused(error)
            raise
        except sqlite3.Error as error:
            is_damaged = str(getattr(error, "sqlite_errorname", "")).startswith(_DAMAGED)
            refused = (StorageDamaged if is_damaged else StorageUnavailable)(
                f"the file cannot be read: {fault_text(error)}"
            )
            self.refusals.reads.refused(refused)
            raise refused from error
        if self.refusals.reads.ongoing:
            self.refusals.reads.accepted()
        return found

    async def _replay(self, registration: Registration, after_revision: int, last: int) -> None:
        page = FIRST_PAGE
        while registration.active:
            events, size = await self._on_reader(
                lambda log: log.events(registration.prefix, after_revision, last, page)  # noqa: B023  # awaited here
            )
            if events:
                registration.deliver_now(events)
                after_revision = events[-1].revision
            if len(events) < page:
                break
            page = next_page(page, size)

    async def history(self, prefix: str, *, is_key: bool = False, before: int = 0, limit: int) -> Changes:
        """Return a page of writes, read in a thread. Raises StorageUnavailable."""
        self._check_open()
        return await self._on_reader(lambda log: past_writes.history(log, prefix, before, limit, is_key=is_key))

    async def revision_at(self, seconds: float) -> int:
        """Return the newest revision by a Unix time, read in a thread. Raises StorageUnavailable."""
        self._check_open()
        return await self._on_reader(lambda log: past_writes.revision_at(log, seconds))

    # Maintenance

    async def keep_history(self) -> None:
        """Compact history to its bounds, after an account of the history that was in the file when it was opened."""
        history = self._history
        assert history is not None
        now = self._clock()
        if self._unaccounted:
            history.prepend(await self._on_reader(lambda log: list(past_writes.spans(log, self._unaccounted, now))))
            self._unaccounted = 0
        target = history.cut(now)
        if target > self._compact_revision:
            await self.compact(target)

    async def compact(self, revision: int) -> None:
        """Remove old rows and free pages, in slices between which others write.

        Raises Compacted, FutureRevision, and StorageUnavailable if SQLite fails.
        """
        self._check_open()
        if revision > self._revision:
            raise FutureRevision(revision, self._revision)
        if revision < self._compact_revision:
            raise Compacted(self._compact_revision)
        async with self._compacting:
            try:
                await self.writer.run(lambda log: compaction.begin(log, revision))
                self._compact_revision = max(self._compact_revision, revision)
                await self._run_slices(compaction.deletes())
                await self._run_slices(compaction.vacuums())
            except sqlite3.Error as error:
                self._is_fatal(error)
                refused = StorageUnavailable(f"compaction failed: {fault_text(error)}")
                self.refusals.writes.refused(refused)
                raise refused from error

    async def _run_slices(self, slices: compaction.Slices) -> None:
        """Run all slices on the writer's thread, with pauses of about the same length for batches in between."""

        def run(log: Log) -> bool:
            pages = slices.size
            more = slices.run(log)
            self.checkpointer.wrote(pages)
            return more

        while await self.writer.run(run) and not self._refusal:
            await asyncio.sleep(slices.rest)
            await self.checkpointer.caught_up()

    async def expire_leases(self) -> None:
        """Delete the keys whose lease has expired."""
        while True:
            now = int(self._clock())
            expired = await self._on_reader(lambda log: log.expired(now, _EXPIRED_AT_ONCE))  # noqa: B023  # awaited
            results = await asyncio.gather(
                *(self.delete(key, expected_revision=revision) for key, revision in expired), return_exceptions=True
            )
            for result in results:
                # A conflict means that a lease was renewed, or a key deleted, meanwhile.
                if isinstance(result, BaseException) and not isinstance(result, Conflict):
                    raise result
            if len(expired) < _EXPIRED_AT_ONCE:
                return

    async def check(self) -> None:
        """Verify every row, slowly enough not to be noticed. If there is damage, no write is accepted any more."""
        at, page = 0, FIRST_PAGE
        try:
            while True:
                began = perf_counter()
                last, size = await self._on_reader(lambda log: log.check_rows(at, page))  # noqa: B023  # awaited here
                if not last:
                    break
                at, page = last, next_page(page, size)
                await asyncio.sleep(_REST * (perf_counter() - began))
            await self._on_reader(Log.check_counts)
        except StorageDamaged as error:
            self._refusal = self._refusal or f"{error}; end the server and run `steersman storage check`"
            logger.error("%s: %s%s", self._path, error, advice(self._path))
        except StorageUnavailable as error:
            logger.warning("%s was not checked to its end: %s", self._path, error)

    async def _shut_down(self) -> None:
        await self._background.stop()
        self._refusal = self._refusal or CLOSED
        await self._idle.wait()
        async with self._compacting:
            await asyncio.to_thread(self._release)
        await super()._shut_down()

    def _release(self) -> None:
        """Release everything. Blocks. The last connection to close checkpoints the write-ahead log."""
        self.writer.stop()
        self.checkpointer.stop()
        self._readers.stop()
        self.log.connection.close()
        self._lock.release()


def _replaced_bytes(events: Sequence[Event]) -> int:
    """Return the bytes that these writes add to history: the values that they replaced, with their rows."""
    return sum([ROW_OVERHEAD + (len(event.previous.value) if event.previous else 0) for event in events])


def fault_text(error: Exception) -> str:
    """Return a description of a failure for clients, with SQLite's name for it."""
    name = str(getattr(error, "sqlite_errorname", ""))
    why = next((text for prefix, text in _FAULTS.items() if name.startswith(prefix)), "the database failed")
    return f"{why} ({name})" if name else why


def _abandon(opening: asyncio.Task[_Opened]) -> None:
    """Release a file whose opening was cancelled."""
    if not opening.cancelled() and opening.exception() is None:
        opened = opening.result()
        opened.log.connection.close()
        opened.lock.release()


class _Opened(Struct, frozen=True):
    """A locked file and its writing connection; `checked` is True if each row has been verified."""

    lock: FileLock
    log: Log
    path: Path
    checked: bool


def _open_file(path: Path, quota_bytes: int, *, durable: bool) -> _Opened:
    """Lock the file, validate or create it, and open the writing connection. Blocks."""
    if path.is_symlink() and not path.exists():
        raise StorageFormatError(f"{path} is a link to {os.readlink(path)}, which is not there")
    path = path.resolve()
    is_new(path)
    lock = FileLock(path)
    try:
        if durable:
            keep_log(path)
        checked = prepare(path, durable=durable)
        connection = connect(path, cache_kib=_WRITER_CACHE_KIB, durable=durable)
        try:
            connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
            connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES_KEPT}")
            if quota_bytes:
                page_size = connection.execute("PRAGMA page_size").fetchone()[0]
                connection.execute(f"PRAGMA max_page_count = {max(quota_bytes // page_size, 1)}")
            return _Opened(lock, Log(connection), path, checked)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        lock.release()
        raise StorageUnavailable(f"{path} cannot be opened: {error}") from error
    except BaseException:
        lock.release()
        raise
