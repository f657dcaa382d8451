"""Workers that cannot be started, or end while others are started as replacements."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from steersman.controlplane.options import Options
from steersman.controlplane.workers import owner as owner_module
from steersman.controlplane.workers.owner import Owner
from steersman.controlplane.workers.process import WorkerProcess
from steersman.machinery.shared_words import SharedWords
from steersman.server.debug_paths import log_level
from steersman.storage.memory import MemoryStorage
from steersman.storage.shared.server import StorageServer


@pytest.fixture
async def owner(tmp_path: Path) -> AsyncIterator[Owner]:
    """A running owner without workers."""
    owner = Owner(Options(data_dir=tmp_path, workers=2))
    owner._words = SharedWords.create()
    owner._storage = await MemoryStorage.open(compaction_interval=0, lease_interval=0)
    owner._server = StorageServer(owner._storage, owner._words)
    await owner._server.start()
    owner._running = True
    yield owner
    owner._running = False
    for task in tuple(owner._tasks):
        task.cancel()
    for each in owner._processes:
        each.leaving = True
        each.kill()
    await asyncio.gather(*(each.gone.wait() for each in owner._processes))
    await owner._release()


def sleeper(self: WorkerProcess, descriptors: list[int]) -> subprocess.Popen[bytes]:
    """Start a process that has a worker's sockets and does nothing."""
    return subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"], pass_fds=descriptors)


async def test_a_process_that_cannot_be_started_is_tried_again_once_at_a_time(
    owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = 0

    def launched(self: WorkerProcess, descriptors: list[int]) -> subprocess.Popen[bytes]:
        nonlocal tried
        tried += 1
        raise OSError("no more processes")

    monkeypatch.setattr(WorkerProcess, "_launched", launched)
    monkeypatch.setattr(owner_module, "pause", lambda failures: 0.05)
    again = asyncio.ensure_future(owner._start_again(0))
    await asyncio.sleep(0.6)
    await again
    assert 2 <= tried <= 13
    monkeypatch.setattr(WorkerProcess, "_launched", sleeper)
    await asyncio.sleep(0.3)
    assert len([each for each in owner._processes if not each.is_ending]) == 1


async def test_that_workers_are_replaced_is_logged_at_the_default_level(
    owner: Owner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(WorkerProcess, "_launched", sleeper)
    caplog.set_level(log_level(0))
    owner.replace_workers()
    owner.replace_workers()
    assert caplog.messages == [
        "SIGHUP: replacing 2 workers, one after the other",
        "SIGHUP: replacing of the workers is in progress already",
    ]
    assert owner._replacing is not None
    owner._replacing.cancel()


async def test_a_worker_that_waits_to_be_started_again_is_not_replaced_as_well(
    owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WorkerProcess, "_launched", sleeper)
    monkeypatch.setattr(owner_module, "pause", lambda failures: 0.3)
    again = asyncio.ensure_future(owner._start_again(0))
    await asyncio.sleep(0)
    owner.replace_workers()
    await again
    assert [each.settings.number for each in owner._processes] == [0]
    assert owner._replacing is not None
    owner._replacing.cancel()
