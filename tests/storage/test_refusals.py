"""Reports of a storage's refusals to the operator: occasional log lines, a metric and readiness."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from steersman.controlplane.control_plane import ControlPlane
from steersman.controlplane.options import Options
from steersman.controlplane.storage_health import not_ready, storage_fault
from steersman.machinery.values import times
from steersman.storage.interface import StorageUnavailable, ValueRefused
from steersman.storage.refusals import Operation, Refusals
from steersman.storage.sqlite import SQLiteStorage
from steersman.storage.sqlite.log import Log


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_it_is_said_now_and_then_and_when_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    refusals = Refusals(Operation.WRITE, clock=clock)
    for _ in range(100):
        refusals.refused("the disk is full")
        clock.now += 1
    assert refusals.wrong() == "storage refuses to write: the disk is full"
    refusals.accepted()
    refusals.accepted()
    assert refusals.wrong() is not None, "a full disk takes small writes and refuses large ones"
    clock.now += 30
    assert refusals.wrong() is None
    assert [each.getMessage() for each in caplog.records] == [
        "storage refuses to write: the disk is full (1 requests since the last such line)",
        "storage refuses to write: the disk is full (60 requests since the last such line)",
        "storage no longer refuses to write; it has refused 100 requests",
    ]
    for _ in range(500):  # one that comes and goes says no more
        refusals.refused("the disk is full")
        refusals.accepted()
    assert len(caplog.records) == 5


def test_what_nobody_has_asked_again_is_over_after_a_minute() -> None:
    clock = Clock()
    refusals = Refusals(Operation.READ, clock=clock)
    refusals.refused("the disk failed")
    clock.now += 59
    assert refusals.wrong() == "storage refuses to read: the disk failed"
    clock.now += 2
    assert refusals.wrong() is None


@contextmanager
def half_a_minute_later() -> Iterator[None]:
    times.advance(31)
    yield
    times.advance(-31)


NAMES = [
    "SQLITE_FULL",
    "SQLITE_IOERR_WRITE",
    "SQLITE_READONLY_DBMOVED",
    "SQLITE_BUSY",
    "SQLITE_CORRUPT",
    "SQLITE_CANTOPEN",
    "SQLITE_NOMEM",
    "SQLITE_IOERR_FSYNC",
]


def failing(name: str) -> sqlite3.Error:
    error = sqlite3.OperationalError(name)
    error.sqlite_errorname = name
    return error


@pytest.mark.parametrize("name", NAMES)
async def test_each_way_in_which_the_file_refuses_to_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    def refuse(*_: object) -> None:
        raise failing(name)

    store = await SQLiteStorage.open(tmp_path / "store.db", compaction_interval=0, lease_interval=0)
    try:
        await store.create("/a", b"1")
        assert await not_ready(store, 1) is None
        with monkeypatch.context() as patched:
            patched.setattr(Log, "append", refuse)
            patched.setattr(Log, "append_new", refuse)
            for number in range(20):
                with pytest.raises(StorageUnavailable):
                    await store.create(f"/{number}", b"1")
        wrong = await not_ready(store, 1)
        assert wrong is not None
        assert name in wrong
        is_fatal = bool(store.refusal)
        assert (await storage_fault(store, 1) is None) != is_fatal, "a restart does not make room on the disk"
        assert store.refusals.writes.total == 20
        assert [name in each.getMessage() for each in caplog.records] == [True]
        if not is_fatal:
            await store.create("/again", b"1")
            with half_a_minute_later():
                assert await not_ready(store, 1) is None
            assert "no longer refuses to write" in caplog.text
    finally:
        await store.close()


async def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise failing("SQLITE_IOERR_READ")

    store = await SQLiteStorage.open(tmp_path / "store.db", compaction_interval=0, lease_interval=0)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(Log, "get", refuse)
            with pytest.raises(StorageUnavailable):
                await store.get("/a")
        assert (
            await not_ready(store, 1)
            == "storage refuses to read: the file cannot be read: the disk failed (SQLITE_IOERR_READ)"
        )
        await store.get("/a")
        with half_a_minute_later():
            assert await not_ready(store, 1) is None
    finally:
        await store.close()


async def test_a_value_that_no_store_would_take_says_nothing_of_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise failing("SQLITE_TOOBIG")

    store = await SQLiteStorage.open(tmp_path / "store.db", compaction_interval=0, lease_interval=0)
    try:
        monkeypatch.setattr(Log, "append_new", refuse)
        with pytest.raises(ValueRefused):
            await store.create("/a", b"1")
        assert await not_ready(store, 1) is None
        assert store.refusals.writes.total == 0
    finally:
        await store.close()


async def test_readiness_and_metrics_of_a_server_tell_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plane = ControlPlane(Options(data_dir=tmp_path / "data", listen=False, unsafe_no_fsync=True))
    await plane.start()
    try:
        assert plane.server is not None
        assert plane.storage is not None

        async def checks(path: str) -> dict[str, str | None]:
            assert plane.server is not None
            return {name: wrong async for name, wrong in getattr(plane.server, path).results()}

        def refuse(*_: object) -> None:
            raise failing("SQLITE_FULL")

        with monkeypatch.context() as patched:
            patched.setattr(Log, "append", refuse)
            patched.setattr(Log, "append_new", refuse)
            with pytest.raises(StorageUnavailable):
                await plane.storage.create("/a", b"1")
            told = "".join(plane.server.config.registry.expose())
            assert 'steersman_storage_refuses{operation="write"} 1\n' in told
            assert 'steersman_storage_refuses{operation="read"} 0\n' in told
            assert 'steersman_storage_refused_requests_total{operation="write"}' in told
            wrong = (await checks("readyz"))["etcd-readiness"]
            assert wrong is not None
            assert "SQLITE_FULL" in wrong
            assert (await checks("livez"))["etcd"] is None
        await plane.storage.create("/a", b"1")
        with half_a_minute_later():
            assert (await checks("readyz"))["etcd-readiness"] is None
    finally:
        await plane.stop()
