"""Everything that a store has shown is still there after a power cut, even if its disk had failed to keep it at first.

The store is a process with a simulated disk (tools/chaos). Its syncs fail when told to, and a power cut keeps
everything that was synced, and of the rest some pages.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tools.chaos.lies import ALL, Liar, built
from tools.chaos.lies.disk_images import Power

_STORE = """
import asyncio, sys
from steersman.storage.interface import StorageUnavailable
from steersman.storage.sqlite import SQLiteStorage

async def main():
    store = await SQLiteStorage.open(sys.argv[1], compaction_interval=0, lease_interval=0)
    print(*[item.key for item in (await store.range("/")).items], flush=True)
    while command := await asyncio.to_thread(sys.stdin.readline):
        verb, *arguments = command.split()
        try:
            if verb == "create":
                await store.create(arguments[0], b"x" * 10000)
            elif verb == "compact":
                await store.compact(store.revision)
            print("ok", flush=True)
        except StorageUnavailable as error:
            print(error, flush=True)

asyncio.run(main())
"""


class Store:
    """A process, and what it shows at its start."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout is not None
        self.keys = process.stdout.readline().split()

    def asked(self, command: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def errors(self) -> str:
        """Return the output of the process on stderr."""
        assert self._process.stderr is not None
        return self._process.stderr.read()


@pytest.fixture
def liar(tmp_path: Path) -> Liar:
    library = built()
    if library is None:
        pytest.skip("there is no C compiler, or this is no Linux")
    (tmp_path / "disk").mkdir()
    return Liar(library, tmp_path / "told", tmp_path / "disk")


@contextmanager
def running(liar: Liar, tmp_path: Path) -> Iterator[Store]:
    """A store that is killed in the end."""
    with subprocess.Popen(
        [sys.executable, "-c", _STORE, str(tmp_path / "disk" / "store.db")],
        env=os.environ | liar.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Store(process)
        finally:
            process.kill()


@pytest.mark.parametrize("seed", range(3))
def test_what_was_shown_after_a_failed_sync_stays(liar: Liar, tmp_path: Path, seed: int) -> None:
    power = Power(liar.journal, random.Random(seed))
    with running(liar, tmp_path) as store:
        assert store.asked("create /a") == "ok"
        liar.fail_syncs(1)
        assert "SQLITE_IOERR_FSYNC" in store.asked("create /b")
        assert "restart" in store.asked("create /c")
    power.catch_up()
    with running(liar, tmp_path) as store:
        shown = store.keys
        assert "/a" in shown
    power.cut()
    with running(liar, tmp_path) as store:
        assert store.keys == shown


def test_nothing_is_written_after_compaction_failed_to_sync(liar: Liar, tmp_path: Path) -> None:
    with running(liar, tmp_path) as store:
        assert store.asked("create /a") == "ok"
        liar.fail_syncs(1)
        assert "SQLITE_IOERR_FSYNC" in store.asked("compact")
        assert "restart" in store.asked("create /b")


def test_a_log_that_cannot_be_kept_is_not_read(liar: Liar, tmp_path: Path) -> None:
    with running(liar, tmp_path) as store:
        assert store.asked("create /a") == "ok"
    liar.fail_syncs(ALL)
    with running(liar, tmp_path) as store:
        assert store.keys == []
        assert "store.db-wal cannot be kept: Input/output error" in store.errors()
    liar.mend_disk()
    with running(liar, tmp_path) as store:
        assert store.keys == ["/a"]
