"""History in the SQLite file: records of writes, times, and the bounds of what is kept."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from steersman.storage.interface import Compacted
from steersman.storage.origins import bound_origin, origin_of
from steersman.storage.retention import Retention
from steersman.storage.sqlite import SQLiteStorage
from tests.storage.storage_model import Clock

DAY = Retention(size=1 << 30, seconds=86_400)
ALICE = origin_of("patch", "status", "alice", "kubectl/v1", "id-1")


async def opened(path: Path, clock: Clock, retention: Retention | None = DAY) -> SQLiteStorage:
    return await SQLiteStorage.open(path / "store.db", lease_interval=0, retention=retention, clock=clock)


@pytest.fixture
async def store(tmp_path: Path, clock: Clock) -> AsyncIterator[SQLiteStorage]:
    store = await opened(tmp_path, clock)
    yield store
    await store.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def test_a_write_is_stored_with_its_time_and_origin(store: SQLiteStorage, clock: Clock) -> None:
    with bound_origin(ALICE):
        await store.create("/a", b"1")
    clock.now += 60
    await store.update("/a", b"2", expected_revision=2)
    newest, oldest = (await store.history("/a", is_key=True, limit=9)).items
    assert newest.record is not None
    assert oldest.record is not None
    assert oldest.record.origin == ALICE
    assert newest.record.origin.user == ""
    assert newest.record.milliseconds - oldest.record.milliseconds == 60_000


async def test_a_task_that_outlives_its_request_writes_for_nobody(store: SQLiteStorage) -> None:
    ended = asyncio.Event()

    async def later() -> None:
        await ended.wait()
        await store.create("/a", b"1")

    with bound_origin(ALICE):
        task = asyncio.create_task(later())
    ended.set()
    await task
    (found,) = (await store.history("/a", is_key=True, limit=9)).items
    assert found.record is not None
    assert found.record.origin.user == ""


async def test_a_store_without_a_retention_keeps_no_records(tmp_path: Path, clock: Clock) -> None:
    store = await opened(tmp_path, clock, None)
    with bound_origin(ALICE):
        await store.create("/a", b"1")
    (found,) = (await store.history("/a", is_key=True, limit=9)).items
    assert found.record is None
    assert not store.keeps_records
    assert await store.revision_at(clock.now) == 0
    await store.close()


async def test_a_time_leads_to_the_revision_that_was_the_newest_then(store: SQLiteStorage, clock: Clock) -> None:
    began = clock.now
    for number in range(2, 50):
        await store.create(f"/{number}", b"x")
        clock.now += 10
    assert await store.revision_at(began - 1) == 1, "nothing was stored"
    assert await store.revision_at(began) == 2
    assert await store.revision_at(began + 9) == 2
    assert await store.revision_at(began + 100) == 12
    assert await store.revision_at(began + 1e9) == 49


async def test_a_clock_that_was_set_back_leads_to_the_last_write_by_that_time(
    store: SQLiteStorage, clock: Clock
) -> None:
    began = clock.now
    clock.now += 86_400
    for number in range(2, 50):
        await store.create(f"/{number}", b"x")
        clock.now += 10
    clock.now = began
    for number in range(50, 60):
        await store.create(f"/{number}", b"x")
        clock.now += 10
    assert await store.revision_at(began - 1) == 1
    assert await store.revision_at(began + 15) == 51
    assert await store.revision_at(clock.now) == 59
    assert await store.revision_at(began + 86_400) == 59


async def test_a_time_before_the_first_record_leads_nowhere(tmp_path: Path, clock: Clock) -> None:
    plain = await opened(tmp_path, clock, None)
    for number in range(5):
        await plain.create(f"/{number}", b"x")
    await plain.close()
    store = await opened(tmp_path, clock)
    assert await store.revision_at(clock.now + 100) == 0
    clock.now += 100
    await store.create("/new", b"x")
    assert await store.revision_at(clock.now - 1) == 0
    assert await store.revision_at(clock.now) == 7
    await store.close()


async def test_history_is_cut_to_its_size(tmp_path: Path, clock: Clock) -> None:
    store = await opened(tmp_path, clock, Retention(size=1 << 20))
    revision = (await store.create("/a", b"x" * 10_000)).mod_revision
    for _ in range(300):
        revision = (await store.update("/a", b"x" * 10_000, expected_revision=revision)).mod_revision
    await store.keep_history()
    kept = store.revision - store.compact_revision
    assert 95 <= kept <= 103, "about 1 MiB of values of 10,000 bytes"
    assert len((await store.history("/a", is_key=True, limit=500)).items) == kept + 1
    with contextlib.closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        assert connection.execute("SELECT count(*) FROM log").fetchone() == (kept + 1,)
    with pytest.raises(Compacted):
        await store.get("/a", revision=store.compact_revision - 1)
    await store.close()


async def test_history_is_cut_to_its_age_also_after_a_restart(tmp_path: Path, clock: Clock) -> None:
    store = await opened(tmp_path, clock, Retention(seconds=6_400))
    revision = (await store.create("/a", b"x")).mod_revision
    for _ in range(64):
        clock.now += 100
        revision = (await store.update("/a", b"x", expected_revision=revision)).mod_revision
    await store.keep_history()
    assert store.compact_revision == 0
    await store.close()
    store = await opened(tmp_path, clock, Retention(seconds=6_400))
    await store.keep_history()
    clock.now += 3_200
    await store.keep_history()
    assert store.compact_revision == 0, "a span of a restart has the time of its last write"
    clock.now += 3_300
    await store.keep_history()
    assert store.compact_revision == store.revision
    await store.close()


async def test_the_size_of_history_counts_on_after_a_restart(tmp_path: Path, clock: Clock) -> None:
    store = await opened(tmp_path, clock, Retention(size=1 << 30))
    items = await asyncio.gather(*(store.create(f"/{number}", b"x" * 10_000) for number in range(20)))
    for _ in range(110):
        items = await asyncio.gather(
            *(store.update(item.key, b"x" * 10_000, expected_revision=item.mod_revision) for item in items)
        )
    await store.close()
    store = await opened(tmp_path, clock, Retention(size=12 << 20))
    await store.keep_history()
    kept = store.revision - store.compact_revision
    assert 1_100 < kept <= 1_240, "12 MiB of values of 10,000 bytes, cut in spans of 128 revisions"
    await store.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("256MiB,24h", Retention(256 << 20, 86_400)),
        ("24h,256MiB", Retention(256 << 20, 86_400)),
        ("1GiB", Retention(1 << 30)),
        ("90m", Retention(seconds=5_400)),
        ("none", Retention()),
    ],
)
def test_bounds_are_parsed_and_shown(text: str, expected: Retention) -> None:
    assert Retention.parse(text) == expected
    assert Retention.parse(str(expected)) == expected


@pytest.mark.parametrize("text", ["", ",", "1", "0MiB", "1MiB,2MiB", "1h,2h", "-1h", "1h,1MiB,1h", "1mib", "0s"])
def test_other_bounds_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"neither a size|one size|one age"):
        Retention.parse(text)
