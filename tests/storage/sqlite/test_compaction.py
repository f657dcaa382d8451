"""Slicing of compactions, and the transfer of the write-ahead log to the file."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from steersman.storage.interface import KeyValue
from steersman.storage.sqlite import SQLiteStorage, checkpoint, compaction
from steersman.storage.sqlite.checkpoint import Checkpointer, pages_of
from steersman.storage.sqlite.compaction import Slices, paced
from steersman.storage.sqlite.log import Log


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SQLiteStorage]:
    store = await SQLiteStorage.open(path, compaction_interval=0, lease_interval=0)
    yield store
    await store.close()


async def overwritten(store: SQLiteStorage, keys: int, rounds: int, size: int) -> list[KeyValue]:
    items = list(await asyncio.gather(*(store.create(f"/{number}", os.urandom(size)) for number in range(keys))))
    for _ in range(rounds):
        items = list(
            await asyncio.gather(
                *(store.update(item.key, os.urandom(size), expected_revision=item.mod_revision) for item in items)
            )
        )
    return items


@pytest.mark.parametrize(
    ("size", "seconds", "following"),
    [
        (100, 0.01, 100),
        (100, 0.001, 200),
        (100, 0, 200),
        (400, 0.001, 500),
        (100, 0.02, 50),
        (100, 0.1, 20),
        (20, 10, 20),
    ],
)
def test_slices_do_as_much_as_takes_about_ten_milliseconds(size: int, seconds: float, following: int) -> None:
    assert paced(size, seconds, (20, 500)) == following


def test_the_writer_is_left_to_others_for_as_long_as_a_slice_took(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter((1.0, 1.02, 2.0, 7.0))
    monkeypatch.setattr("time.perf_counter", lambda: next(times))
    sizes: list[int] = []

    def work(log: Log, size: int) -> bool:
        sizes.append(size)
        return len(sizes) < 2

    slices = Slices(work, (40, 100))
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        log = Log(connection)
        assert slices.run(log)
        assert slices.rest == pytest.approx(0.02)
        assert slices.size == 40
        assert not slices.run(log)
    assert (slices.rest, sizes) == (0.1, [40, 40])


async def test_a_slice_gives_back_as_many_pages_as_it_was_asked_for(store: SQLiteStorage) -> None:
    items = await overwritten(store, 700, 0, 10_000)
    await asyncio.gather(*(store.delete(item.key, expected_revision=item.mod_revision) for item in items))
    log = store.log
    await store.writer.run(lambda log: compaction.begin(log, store.revision))
    while await store.writer.run(lambda log: compaction.delete_slice(log, 500)):
        pass

    def free(log: Log) -> int:
        return int(log.connection.execute("PRAGMA freelist_count").fetchone()[0])

    before = free(log)
    assert await store.writer.run(lambda log: compaction.vacuum_slice(log, 100))
    assert free(log) == before - 100


async def test_a_slice_deletes_large_values_in_small_numbers(store: SQLiteStorage) -> None:
    sizes = [100] * 10 + [300_000] * 3 + [100] * 10
    item = await store.create("/a", b"1")  # revision 2
    for value in sizes:
        item = await store.update("/a", os.urandom(value), expected_revision=item.mod_revision)
    await store.writer.run(lambda log: compaction.begin(log, store.revision))
    reached = []
    while await store.writer.run(lambda log: compaction.delete_slice(log, 20)):
        reached.append(store.log.revisions()[2])
    # Revisions 3 to 13 replaced small values, each of 14 to 16 one that takes 74 pages.
    assert reached == [14, 15, 16]
    assert store.log.connection.execute("SELECT revision FROM log").fetchall() == [(store.revision,)]


async def test_the_log_is_played_into_the_file_beside_the_commits(path: Path, store: SQLiteStorage) -> None:
    await overwritten(store, 250, 8, 2000)
    await store.checkpointer.caught_up()
    await store.writer.run(lambda log: None)  # what the checkpointer left to the writer was posted before
    # No commit played the log, as it never was that long.
    log = path.with_name("store.db-wal")
    assert log.stat().st_size < 4000 * 4096
    with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as connection:
        assert connection.execute("SELECT count(*) FROM log").fetchone()[0] >= 500


async def test_commits_go_on_while_the_log_is_played(store: SQLiteStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on, play, begun = threading.Event(), Checkpointer._play, threading.Event()

    def slow(checkpointer: Checkpointer) -> None:
        begun.set()
        goes_on.wait(30)
        play(checkpointer)

    monkeypatch.setattr(Checkpointer, "_play", slow)
    await overwritten(store, 250, 4, 4000)
    assert await asyncio.to_thread(begun.wait, 10)
    await store.create("/meanwhile", b"1")
    waiting = asyncio.create_task(store.checkpointer.caught_up())
    await asyncio.sleep(0)
    assert not waiting.done()
    goes_on.set()
    await waiting


async def test_a_log_that_cannot_be_played_is_told_and_nothing_is_lost(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*arguments: object, **options: object) -> sqlite3.Connection:
        raise sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr(checkpoint, "connect", refuse)
    store = await SQLiteStorage.open(path, compaction_interval=0, lease_interval=0)
    items = await overwritten(store, 250, 4, 4000)
    await store.checkpointer.caught_up()
    assert f"a checkpoint of the write-ahead log into {path} failed: unable to open database file" in caplog.messages
    await store.close()
    store = await SQLiteStorage.open(path, compaction_interval=0, lease_interval=0)
    assert {item.key: item for item in (await store.range("/")).items} == {item.key: item for item in items}
    await store.close()


@pytest.mark.parametrize(("rows", "size"), [(1, 100), (1, 100_000), (16, 1500), (250, 1000)])
async def test_the_pages_of_a_commit_are_about_as_many_as_go_into_the_log(
    store: SQLiteStorage, rows: int, size: int
) -> None:
    lengths: list[int] = []

    def note_length(log: Log) -> None:
        lengths.append(log.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1])

    for number in range(20 if rows == 1 else 4):
        await asyncio.gather(*(store.create(f"/{key}-{number}", os.urandom(size)) for key in range(rows)))
        await store.writer.run(note_length)
        assert lengths[-1] / 2 <= pages_of(rows, rows * size) <= lengths[-1] * 4
