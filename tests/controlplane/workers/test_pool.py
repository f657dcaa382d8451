"""Workers that cannot be started, or end while others are started as replacements."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from steersman.controlplane.options import Options
from steersman.controlplane.workers import pool as pool_module
from steersman.controlplane.workers.pool import WorkerPool
from steersman.machinery.shared_words import SharedWords
from steersman.server.debug_paths import log_level
from steersman.storage.memory import MemoryStorage
from steersman.storage.shared.server import StorageServer
from steersman.testing.waiting import until_true


class Sleepers:
    """Starts processes that have a worker's sockets and do nothing, or fails."""

    def __init__(self) -> None:
        self.fails = False
        self.tried = 0
        self.may_start = threading.Event()
        self.may_start.set()
        self.started: list[subprocess.Popen[bytes]] = []

    def __call__(self, words: int, descriptors: list[int]) -> subprocess.Popen[bytes]:
        self.tried += 1
        if self.fails:
            raise OSError("no more processes")
        assert self.may_start.wait(30)
        self.started.append(
            subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"], pass_fds=descriptors)
        )
        return self.started[-1]


@pytest.fixture
def sleepers() -> Sleepers:
    return Sleepers()


@pytest.fixture
async def pool(tmp_path: Path, sleepers: Sleepers) -> AsyncIterator[WorkerPool]:
    """A running pool without workers."""
    words = SharedWords.create()
    storage = await MemoryStorage.open(compaction_interval=0, lease_interval=0)
    server = StorageServer(storage, words)
    await server.start()
    pool = WorkerPool(Options(data_dir=tmp_path, workers=2), 0, words, server, sleepers)
    pool.keep_running()
    yield pool
    await pool.release()
    await pool.kill()
    await server.stop()
    await storage.close()
    words.close()


async def test_a_process_that_cannot_be_started_is_tried_again_once_at_a_time(
    pool: WorkerPool, sleepers: Sleepers, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleepers.fails = True
    monkeypatch.setattr(pool_module, "pause", lambda failures: 0.05)
    again = asyncio.ensure_future(pool.restart(0))
    await asyncio.sleep(0.6)
    await again
    assert 2 <= sleepers.tried <= 13
    sleepers.fails = False
    await asyncio.sleep(0.3)
    assert len([each for each in pool.processes if not each.is_ending]) == 1


async def test_that_workers_are_replaced_is_logged_at_the_default_level(
    pool: WorkerPool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(log_level(0))
    pool.replace()
    pool.replace()
    assert caplog.messages == [
        "SIGHUP: replacing 2 workers, one after the other",
        "SIGHUP: replacing of the workers is in progress already",
    ]
    assert pool.replacing is not None
    pool.replacing.cancel()


async def test_a_worker_that_waits_to_be_started_again_is_not_replaced_as_well(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "pause", lambda failures: 0.3)
    again = asyncio.ensure_future(pool.restart(0))
    await asyncio.sleep(0)
    pool.replace()
    await again
    assert [each.settings.number for each in pool.processes] == [0]
    assert pool.replacing is not None
    pool.replacing.cancel()


async def test_a_start_that_is_cancelled_leaves_no_process_and_no_descriptor(
    pool: WorkerPool, sleepers: Sleepers
) -> None:
    sleepers.may_start.clear()
    before = set(os.listdir("/proc/self/fd"))
    start = asyncio.ensure_future(pool.start(0))
    await until_true(lambda: sleepers.tried, 30)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    sleepers.may_start.set()
    await until_true(lambda: sleepers.started and sleepers.started[0].returncode is not None, 30)
    assert not set(os.listdir("/proc/self/fd")) - before
    assert sleepers.started[0].returncode == -signal.SIGKILL
    assert pool.processes == []
