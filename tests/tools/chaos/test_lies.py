"""Tests of the false clocks and disks that tools/chaos shows to a process."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tools.chaos.lies import ALL, Liar, built
from tools.chaos.lies.disk_images import Power

_TELLS_THE_TIME = "import datetime, time; print(time.time(), datetime.datetime.now().timestamp(), time.time_ns() / 1e9)"
_ASKED = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA journal_mode = WAL")
db.execute("PRAGMA synchronous = FULL")
db.execute("CREATE TABLE IF NOT EXISTS t (n)")
for line in sys.stdin:
    try:
        db.execute("INSERT INTO t VALUES (?)", (int(line),))
        print("ok", flush=True)
    except sqlite3.Error as error:
        print(error.sqlite_errorname, flush=True)
"""


@pytest.fixture
def liar(tmp_path: Path) -> Liar:
    library = built()
    if library is None:
        pytest.skip("there is no C compiler, or this is no Linux")
    (tmp_path / "disk").mkdir()
    return Liar(library, tmp_path / "told", tmp_path / "disk")


def times(liar: Liar) -> list[float]:
    """Return the times that a process reads from its clocks."""
    done = subprocess.run(
        [sys.executable, "-c", _TELLS_THE_TIME], env=os.environ | liar.environment, capture_output=True, check=True
    )
    return [float(each) for each in done.stdout.split()]


@pytest.mark.parametrize("seconds", [0, 7200, -7200, 0.25])
def test_a_clock_is_ahead_or_behind_whoever_is_asked(liar: Liar, seconds: float) -> None:
    liar.clock(seconds)
    before = time.time()
    found = times(liar)
    after = time.time()
    assert all(before <= each - seconds <= after + 1e-3 for each in found)


@contextmanager
def writing(liar: Liar, path: Path) -> Iterator[subprocess.Popen[str]]:
    """Yield a process that writes numbers into an SQLite file and prints the result of each write."""
    with subprocess.Popen(
        [sys.executable, "-c", _ASKED, str(path)],
        env=os.environ | liar.environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        yield process


def written(process: subprocess.Popen[str], number: int) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{number}\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def test_a_disk_fails_as_often_as_it_is_told_to(liar: Liar, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with writing(liar, tmp_path / "disk" / "a.db") as process:
        assert written(process, 1) == "ok"
        liar.fail_syncs(1)
        assert written(process, 2) == "SQLITE_IOERR_FSYNC"
        assert written(process, 3) == "ok"
        liar.fail_writes(ALL, errno.EIO)
        assert written(process, 4) == "SQLITE_IOERR_WRITE"
        liar.fail_writes(ALL, errno.ENOSPC, torn=True)
        assert written(process, 5) == "SQLITE_FULL"
        assert written(process, 6) == "SQLITE_FULL"
        liar.mend_disk()
        assert written(process, 7) == "ok"
    liar.fail_reads(ALL)
    with writing(liar, tmp_path / "disk" / "a.db") as process:
        assert process.wait() == 1
    assert "disk I/O error" in capfd.readouterr().err


def test_syncs_take_longer(liar: Liar, tmp_path: Path) -> None:
    with writing(liar, tmp_path / "disk" / "a.db") as process:
        assert written(process, 1) == "ok"
        liar.slow_syncs(0.3)
        began = time.monotonic()
        assert written(process, 2) == "ok"
        assert time.monotonic() - began >= 0.3


def test_other_files_are_written(liar: Liar, tmp_path: Path) -> None:
    liar.fail_writes(ALL, errno.EIO)
    liar.fail_syncs(ALL)
    with writing(liar, tmp_path / "elsewhere.db") as process:
        assert written(process, 1) == "ok"


def test_what_was_synced_survives_the_loss_of_power(liar: Liar, tmp_path: Path) -> None:
    path = tmp_path / "disk" / "a.db"
    power = Power(liar.journal, random.Random(1))
    with writing(liar, path) as process:
        assert [written(process, number) for number in (1, 2)] == ["ok", "ok"]
        liar.fail_syncs(1)
        assert written(process, 3) == "SQLITE_IOERR_FSYNC"
        process.kill()
    power.cut()
    assert numbers(path) in ([1, 2], [1, 2, 3])
    liar.mend_disk()
    with writing(liar, path) as process:
        assert written(process, 4) == "ok"
        process.kill()
    power.cut()
    assert numbers(path)[-1] == 4
    assert numbers(path)[:2] == [1, 2]


def numbers(path: Path) -> list[int]:
    """Return the numbers in an SQLite file. They are read from a copy, as SQLite changes a file that it reads."""
    with (
        tempfile.TemporaryDirectory() as copy,
        contextlib.closing(
            sqlite3.connect(shutil.copytree(path.parent, copy, dirs_exist_ok=True) + f"/{path.name}")
        ) as db,
    ):
        return [number for (number,) in db.execute("SELECT n FROM t ORDER BY n")]


def test_a_failed_sync_is_told_to_each_who_has_the_file_open(liar: Liar, tmp_path: Path) -> None:
    opens = "import os, sys; a, b = [os.open(sys.argv[1], os.O_CREAT | os.O_RDWR) for _ in 'ab']"
    script = f"""{opens}
def synced(file):
    try:
        os.fsync(file)
    except OSError as error:
        return error.errno
os.pwrite(a, b"a", 0)
os.pwrite(b, b"b", 1)
found = [synced(a), synced(b), synced(b), synced(a)]
os.close(b)
print(*found, synced(os.open(sys.argv[1], os.O_RDWR)))
"""
    liar.fail_syncs(1)
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "disk" / "file")],
        env=os.environ | liar.environment,
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout.split() == ["5", "5", "None", "None", "None"]
