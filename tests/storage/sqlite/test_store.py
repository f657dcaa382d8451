"""Properties of the SQLite file: durability, locking, foreign and damaged files, failing commits and its size."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from steersman.machinery.values import times
from steersman.storage.interface import (
    Compacted,
    Conflict,
    Event,
    KeyValue,
    OutcomeUnknown,
    StorageFormatError,
    StorageLocked,
    StorageUnavailable,
)
from steersman.storage.sqlite import SQLiteStorage
from steersman.storage.sqlite.file import SCHEMA_VERSION
from steersman.storage.sqlite.log import Log
from steersman.storage.sqlite.reader import Readers
from tests.storage.storage_model import Clock, Recorder, check_every_revision, write_at_random


async def open_quiet(path: Path, **options: Any) -> SQLiteStorage:
    return await SQLiteStorage.open(path, compaction_interval=0, lease_interval=0, **options)


@pytest.mark.parametrize(("durable", "level"), [(True, 2), (False, 0)])
async def test_commits_are_on_the_disk_unless_that_is_not_asked_for(tmp_path: Path, durable: bool, level: int) -> None:
    store = await open_quiet(tmp_path / "store.db", durable=durable)
    try:
        assert store.log.connection.execute("PRAGMA synchronous").fetchone() == (level,)
        await store.create("/a", b"1")
    finally:
        await store.close()
    again = await open_quiet(tmp_path / "store.db")
    kept = await again.get("/a")
    assert kept is not None
    assert kept.value == b"1"
    await again.close()


async def test_events_are_delivered_in_the_context_that_the_store_was_opened_in(tmp_path: Path) -> None:
    owner: ContextVar[str] = ContextVar("owner", default="nobody")
    token = owner.set("server")
    store = await open_quiet(tmp_path / "store.db")
    owner.reset(token)
    delivered: list[str] = []

    def deliver(events: Sequence[Event]) -> None:
        delivered.append(owner.get())
        owner.set("changed")

    await store.subscribe("/", after_revision=0, deliver=deliver)
    await store.create("/a", b"1")
    await store.create("/b", b"1")
    await store.close()
    assert delivered == ["server", "server"]


def leave(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def contents(path: Path) -> bytes:
    return path.read_bytes()


def exists(path: Path) -> bool:
    return path.exists()


def allow(path: Path, mode: int) -> None:
    path.chmod(mode)


def link(path: Path, target: Path) -> None:
    path.symlink_to(target)


def size(path: Path) -> int:
    return path.stat().st_size


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SQLiteStorage]:
    store = await open_quiet(path)
    yield store
    await store.close()


# Durability


async def test_everything_is_there_after_reopening(path: Path) -> None:
    log = Recorder()
    store = await open_quiet(path)
    await store.subscribe("", after_revision=1, deliver=log)
    await write_at_random(store, random.Random(1), 100)
    await store.compact(20)
    revision = store.revision
    await store.close()
    store = await open_quiet(path)
    assert store.revision == revision
    await check_every_revision(store, log.events, oldest=20)
    replayed = Recorder()
    await store.subscribe("", after_revision=20, deliver=replayed)
    assert replayed.events == [event for event in log.events if event.revision > 20]
    assert (await store.create("/new", b"1")).mod_revision == revision + 1
    await store.close()


async def test_leases_survive_a_restart(path: Path) -> None:
    clock = Clock()
    store = await open_quiet(path, clock=clock)
    await store.create("/a", b"1", ttl=10)
    await store.close()
    clock.now += 20
    store = await open_quiet(path, clock=clock)
    assert await store.get("/a") is not None
    await store.expire_leases()
    assert await store.get("/a") is None
    await store.close()


WRITE_AND_DIE = """
import asyncio, os, signal, sys
from steersman.storage.sqlite import SQLiteStorage

async def main():
    store = await SQLiteStorage.open(sys.argv[1])
    await asyncio.gather(*(store.create(f"/{number}", b"value") for number in range(100)))
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_acknowledged_writes_survive_sigkill(path: Path) -> None:
    died = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", WRITE_AND_DIE, str(path)], check=False)
    assert died.returncode == -signal.SIGKILL
    store = await open_quiet(path)
    assert store.revision == 101
    assert len((await store.range("/")).items) == 100
    await store.close()


# One process at a time


HOLD = """
import asyncio, sys
from steersman.storage.sqlite import SQLiteStorage

async def main():
    store = await SQLiteStorage.open(sys.argv[1])
    await store.create("/held", b"1")
    print("ready", flush=True)
    sys.stdin.read()

asyncio.run(main())
"""


async def test_a_second_process_is_refused_until_the_first_is_dead(path: Path) -> None:
    with subprocess.Popen(  # noqa: ASYNC220
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert await asyncio.to_thread(holder.stdout.readline) == b"ready\n"
        with pytest.raises(StorageLocked, match=str(holder.pid)):
            await open_quiet(path)
        holder.kill()
    store = await open_quiet(path)
    assert await store.get("/held") is not None
    await store.close()


async def test_a_second_opening_in_one_process_is_refused_too(path: Path, store: SQLiteStorage) -> None:
    with pytest.raises(StorageLocked):
        await open_quiet(path)
    with pytest.raises(StorageLocked):
        await open_quiet(path.parent / "." / path.name)
    await store.create("/a", b"1")


# Files that are not ours to write


async def make(path: Path) -> None:
    store = await open_quiet(path)
    for number in range(200):
        await store.create(f"/{number}", os.urandom(500))
    await store.close()


def foreign(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE log (revision INTEGER PRIMARY KEY)")
        connection.execute("PRAGMA application_id = 77")
        connection.commit()


def alter(statement: str) -> Callable[[Path], None]:
    def run(path: Path) -> None:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(statement)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    return run


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def scribble(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096 * 5)
        file.write(b"\xaa" * 8192)


def text(path: Path) -> None:
    path.write_text("not a database, but something that somebody needs\n" * 10)


def short(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (text, "not a SQLite file"),
        (short, "not a SQLite file"),
        (alter("PRAGMA application_id = 77"), "another application"),
        (alter(f"PRAGMA user_version = {SCHEMA_VERSION + 1}"), "newer version"),
        (alter("PRAGMA user_version = 0"), "no version ever wrote"),
        (alter("ALTER TABLE log RENAME COLUMN value TO other"), "damaged"),
        (alter("DELETE FROM meta"), "damaged"),
        (alter("DROP INDEX log_key"), "damaged"),
        (truncate, "damaged"),
        (scribble, "damaged"),
    ],
)
async def test_a_file_that_is_not_ours_or_not_sound_is_refused_and_left_alone(
    path: Path, spoil: Callable[[Path], None], message: str
) -> None:
    await make(path)
    spoil(path)
    before = contents(path)
    for _ in range(2):
        with pytest.raises(StorageFormatError, match=message):
            await open_quiet(path)
    assert contents(path) == before


async def test_a_foreign_sqlite_file_is_refused_and_left_alone(path: Path) -> None:
    foreign(path)
    before = contents(path)
    with pytest.raises(StorageFormatError, match="another application"):
        await open_quiet(path)
    assert contents(path) == before
    assert os.listdir(path.parent) == [path.name]


async def test_a_half_made_file_is_made_anew_and_the_index_of_no_log_is_removed(path: Path) -> None:
    leave(path.with_name("store.db.new"), b"half made")
    leave(path.with_name("store.db-wal"), b"")
    leave(path.with_name("store.db-shm"), b"of a file since moved away")
    store = await open_quiet(path)
    assert store.revision == 1
    await store.create("/a", b"1")
    await store.close()
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert sorted(os.listdir(path.parent)) == ["store.db", "store.db.lock"]


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
@pytest.mark.parametrize("file", [None, b""], ids=["missing", "empty"])
async def test_a_log_of_writes_without_its_file_is_refused_and_left_alone(
    path: Path, file: bytes | None, suffix: str
) -> None:
    log = path.with_name(path.name + suffix)
    leave(log, b"writes that were acknowledged")
    if file is not None:
        leave(path, file)
    for _ in range(2):
        with pytest.raises(StorageFormatError, match=f"its last writes are in {log}"):
            await open_quiet(path)
    assert contents(log) == b"writes that were acknowledged"
    assert sorted(os.listdir(path.parent)) == sorted([log.name] + [path.name] * (file is not None))


async def test_an_empty_file_is_what_is_left_of_a_store_and_refused(path: Path) -> None:
    leave(path, b"")
    with pytest.raises(StorageFormatError, match="is empty: put back a copy"):
        await open_quiet(path)
    assert os.listdir(path.parent) == [path.name]


async def test_a_link_to_a_file_that_is_not_there_is_refused(path: Path) -> None:
    link(path, path.with_name("elsewhere.db"))
    with pytest.raises(StorageFormatError, match=r"is a link to .*elsewhere\.db, which is not there"):
        await open_quiet(path)
    assert os.listdir(path.parent) == [path.name]


async def test_a_link_to_a_store_is_followed(path: Path) -> None:
    real = path.with_name("real.db")
    await make(real)
    link(path, real)
    store = await open_quiet(path)
    assert store.revision > 200
    await store.close()


async def test_a_folder_in_place_of_the_file_is_refused(path: Path) -> None:
    os.mkdir(path)
    with pytest.raises(StorageFormatError, match="is a folder; a file is expected"):
        await open_quiet(path)


async def test_a_file_that_others_can_read_is_told(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    await make(path)
    assert not caplog.messages
    allow(path, 0o644)
    store = await open_quiet(path)
    await store.close()
    assert caplog.messages == [f"others can read {path} (mode 0644): chmod 600 {path}"]


@pytest.mark.parametrize("statement", ["CREATE TABLE log", "PRAGMA journal_mode"])
async def test_a_store_that_cannot_be_made_for_want_of_room_is_not_begun(
    path: Path, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FullDisk(sqlite3.Connection):
        def execute(self, sql: str, *rest: Any) -> sqlite3.Cursor:
            if sql.startswith(statement):
                raise sqlite3.OperationalError("database or disk is full")
            return super().execute(sql, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", functools.partial(sqlite3.connect, factory=FullDisk))
        with pytest.raises(StorageUnavailable, match="cannot be made: database or disk is full"):
            await open_quiet(path)
    assert not exists(path)
    store = await open_quiet(path)
    assert store.revision == 1
    await store.close()


async def test_a_directory_that_is_not_there_is_not_made(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await open_quiet(path.parent / "absent" / "store.db")


# Commits


async def test_writes_side_by_side_share_commits(store: SQLiteStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    append = Log.append

    def counted(log: Log, rows: Sequence[tuple[Any, ...]]) -> None:
        sizes.append(len(rows))
        append(log, rows)

    monkeypatch.setattr(Log, "append", counted)
    await asyncio.gather(*(store.create(f"/{number}", b"1") for number in range(100)))
    assert sizes == [100]


@pytest.mark.parametrize(
    ("at_once", "iterations", "commits"),
    [(2, 1, [2]), (2, 3, [6]), (2, 4, [8]), (2, 6, [8, 4]), (20, 2, [20, 20])],
    ids=["one", "three", "four", "six", "enough"],
)
async def test_writes_of_successive_iterations_share_a_commit_within_bounds(
    store: SQLiteStorage, monkeypatch: pytest.MonkeyPatch, at_once: int, iterations: int, commits: list[int]
) -> None:
    batches: list[int] = []
    may_commit = threading.Event()

    def append(self: Log, rows: Sequence[Any], records: Sequence[str] | None = None) -> None:
        may_commit.wait(60)
        batches.append(len(rows))
        original(self, rows, records)

    original = Log.append
    monkeypatch.setattr(Log, "append", append)
    writes: list[asyncio.Future[KeyValue]] = []
    for number in range(iterations):
        writes += [asyncio.ensure_future(store.create(f"/{number}/{each}", b"x")) for each in range(at_once)]
        await asyncio.sleep(0)
    may_commit.set()
    await asyncio.gather(*writes)
    assert batches == commits


async def test_a_failed_commit_fails_every_write_in_it_and_changes_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_quiet(path, quota_bytes=1 << 20)
    log = Recorder()
    await store.subscribe("/", after_revision=1, deliver=log)
    first = await store.create("/a", b"1")
    writes = [store.create(f"/{number}", os.urandom(100_000)) for number in range(20)]
    results = await asyncio.gather(*writes, store.update("/a", b"2", expected_revision=2), return_exceptions=True)
    assert {type(result) for result in results} == {StorageUnavailable}
    assert "full" in str(results[0])
    assert (store.revision, await store.get("/a"), log.revisions) == (2, first, [2])
    # A write that fits is still made, with the revision that the failed ones did not use.
    assert (await store.update("/a", b"2", expected_revision=2)).mod_revision == 3
    await store.close()
    store = await open_quiet(path)
    assert [item.key for item in (await store.range("/")).items] == ["/a"]
    await store.close()


async def test_a_write_the_disk_does_not_take_fails_and_the_next_one_works(path: Path, store: SQLiteStorage) -> None:
    first = await store.create("/a", b"1")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size(path.with_name("store.db-wal")) + 50_000, limits[1]))
    try:
        results = await asyncio.gather(
            *(store.create(f"/{number}", os.urandom(10_000)) for number in range(20)), return_exceptions=True
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert {type(result) for result in results} == {StorageUnavailable}
    assert list((await store.range("/")).items) == [first]
    second = await store.update("/a", b"2", expected_revision=2)
    await store.close()
    store = await open_quiet(path)
    assert (list((await store.range("/")).items), store.revision) == ([second], 3)
    await store.close()


async def test_compaction_makes_room_in_a_full_file(path: Path) -> None:
    store = await open_quiet(path, quota_bytes=2 << 20)
    item = await store.create("/a", os.urandom(100_000))
    full = False
    for _ in range(100):
        try:
            item = await store.update("/a", os.urandom(100_000), expected_revision=item.mod_revision)
        except StorageUnavailable:
            full = True
            break
    assert full
    await store.compact(store.revision)
    for _ in range(10):
        item = await store.update("/a", os.urandom(100_000), expected_revision=item.mod_revision)
    assert await store.get("/a") == item
    await store.close()


async def test_after_a_failed_fsync_nothing_more_is_accepted(
    store: SQLiteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(log: Log, rows: Sequence[tuple[Any, ...]]) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
        raise error

    await store.create("/a", b"1")
    with monkeypatch.context() as patched:
        patched.setattr(Log, "append", fail)
        first, second = asyncio.ensure_future(store.create("/b", b"1")), asyncio.ensure_future(store.create("/c", b"1"))
        with pytest.raises(OutcomeUnknown, match="restart"):
            await first
        with pytest.raises(OutcomeUnknown, match="restart"):
            await second
    with pytest.raises(StorageUnavailable, match="restart") as refused:
        await store.create("/b", b"1")
    assert not isinstance(refused.value, OutcomeUnknown)
    assert store.refusal.startswith("the disk failed to keep a write")
    assert await store.get("/a") is not None


async def test_writes_of_one_batch_see_each_other(store: SQLiteStorage) -> None:
    results = await asyncio.gather(
        store.create("/a", b"1"),
        store.update("/a", b"2", expected_revision=2),
        store.update("/a", b"3", expected_revision=2),
        store.delete("/a", expected_revision=3),
        store.create("/a", b"4"),
        return_exceptions=True,
    )
    created = KeyValue("/a", b"1", 2, 2)
    updated = KeyValue("/a", b"2", 2, 3)
    assert list(results[:2]) == [created, updated]
    assert isinstance(results[2], Conflict)
    assert results[2].current == updated
    assert list(results[3:]) == [Event(4, "/a", None, updated), KeyValue("/a", b"4", 5, 5)]
    await check_every_revision(
        store,
        [
            Event(2, "/a", created, None),
            Event(3, "/a", updated, created),
            Event(4, "/a", None, updated),
            Event(5, "/a", KeyValue("/a", b"4", 5, 5), None),
        ],
    )


@pytest.mark.parametrize("exact", [True, False])
async def test_values_of_every_byte_are_kept_with_either_way_of_joining(
    path: Path, monkeypatch: pytest.MonkeyPatch, exact: bool
) -> None:
    monkeypatch.setattr(Log, "_joins_exactly", staticmethod(lambda connection: exact))
    store = await open_quiet(path)
    chance = random.Random(5)
    values = [bytes(range(256)), b"\0", b"\0\0", b"'", *(chance.randbytes(300) for _ in range(200))]
    items = await asyncio.gather(*(store.create(f"/é\n/{number:04}", value) for number, value in enumerate(values)))
    assert [item.value for item in (await store.range("/")).items] == values
    deleted = await asyncio.gather(*(store.delete(item.key, expected_revision=item.mod_revision) for item in items))
    assert [event.previous for event in deleted] == list(items)
    replayed = Recorder()
    await store.subscribe("/é\n/", after_revision=1, deliver=replayed)
    assert replayed.events[len(items) :] == list(deleted)
    await store.close()


async def test_events_committed_during_a_replay_come_after_it(
    store: SQLiteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Recorder()
    await store.subscribe("/", after_revision=1, deliver=log)
    await asyncio.gather(*(store.create(f"/before/{number}", b"1") for number in range(300)))
    run = Readers.run
    pages = 0

    async def run_and_write(readers: Readers, read: Callable[[Log], object]) -> object:
        nonlocal pages
        pages += 1
        result = await run(readers, read)
        await store.create(f"/during/{pages}", b"1")
        return result

    monkeypatch.setattr(Readers, "run", run_and_write)
    replayed = Recorder()
    await store.subscribe("/", after_revision=1, deliver=replayed)
    assert pages > 2
    assert replayed.revisions == list(range(2, 302 + pages))
    assert replayed.events == log.events


async def test_a_range_read_while_its_revision_is_compacted_is_read_anew(
    store: SQLiteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asyncio.gather(*(store.create(f"/{number:03}", b"1") for number in range(100)))
    run = Readers.run

    async def write_compact_and_run(readers: Readers, read: Callable[[Log], object]) -> object:
        monkeypatch.setattr(Readers, "run", run)
        await store.delete("/000", expected_revision=2)
        await store.compact(store.revision)
        return await run(readers, read)

    monkeypatch.setattr(Readers, "run", write_compact_and_run)
    found = await store.range("/")
    assert found.revision == 102
    assert [item.key for item in found.items] == [f"/{number:03}" for number in range(1, 100)]


# Size


async def test_the_file_does_not_grow_with_the_number_of_writes(path: Path, store: SQLiteStorage) -> None:
    items = await asyncio.gather(*(store.create(f"/{number}", os.urandom(1000)) for number in range(200)))
    sizes = []
    for _ in range(12):
        for _ in range(10):
            items = await asyncio.gather(
                *(store.update(item.key, os.urandom(1000), expected_revision=item.mod_revision) for item in items)
            )
        await store.compact(store.revision)
        sizes.append(size(path))
    # 24 MB were written; a fifth of a MB lives, and each round adds two.
    assert max(sizes) < 6 << 20
    assert size(path.with_name("store.db-wal")) < 24 << 20


async def test_compaction_gives_room_back_to_the_file_system(path: Path, store: SQLiteStorage) -> None:
    items = await asyncio.gather(*(store.create(f"/{number}", os.urandom(10_000)) for number in range(700)))
    await store.compact(store.revision)
    assert len((await store.range("/")).items) == 700
    await asyncio.gather(*(store.delete(item.key, expected_revision=item.mod_revision) for item in items[:-1]))
    await store.compact(store.revision)
    await store.close()
    assert size(path) < 5 << 20
    store = await open_quiet(path)
    assert [item.key for item in (await store.range("/")).items] == ["/699"]
    assert store.revision == 1 + 700 + 699
    await store.close()


async def test_writes_go_on_while_compaction_runs(store: SQLiteStorage) -> None:
    items = await asyncio.gather(*(store.create(f"/{number}", b"1") for number in range(2000)))
    await asyncio.gather(*(store.update(item.key, b"2", expected_revision=item.mod_revision) for item in items))
    compacting = asyncio.create_task(store.compact(store.revision))
    written = 0
    while not compacting.done():
        await store.create(f"/during/{written}", b"1")
        written += 1
    assert written > 3
    await compacting


async def readable(store: SQLiteStorage, revision: int) -> bool:
    try:
        await store.get("/k/1", revision=revision)
    except Compacted:
        return False
    return True


async def test_an_interrupted_compaction_is_finished_by_the_next(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await open_quiet(path)
    log = Recorder()
    await store.subscribe("", after_revision=1, deliver=log)
    for seed in range(12):
        await write_at_random(store, random.Random(seed), 100)
    task = asyncio.create_task(store.compact(store.revision - 5))
    async with asyncio.timeout(5):
        while await readable(store, 2):
            pass
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await store.close()
    store = await open_quiet(path)
    oldest = store.revision - 5
    await check_every_revision(store, log.events, oldest=oldest)
    await store.compact(oldest)
    await check_every_revision(store, log.events, oldest=oldest)
    await store.close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        live = len({event.key for event in log.events})
        assert connection.execute("SELECT count(*) FROM log").fetchone()[0] <= live + 5
        assert connection.execute("SELECT min(compact_revision = compacted_revision) FROM meta").fetchone()[0] == 1


async def test_leases_do_not_run_out_because_a_clock_jumps(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await open_quiet(path)
    await store.create("/a", b"1", ttl=60)
    jumped = time.time() + 7200
    monkeypatch.setattr(time, "time", lambda: jumped)
    await store.expire_leases()
    assert await store.get("/a") is not None
    times.advance(61.0)
    try:
        await store.expire_leases()
    finally:
        times.advance(-61.0)
    assert await store.get("/a") is None
    await store.close()
