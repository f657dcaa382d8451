"""One log file of several processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from steersman.audit.backends import rotation
from steersman.audit.backends.rotation import Limits
from steersman.audit.backends.shared_log import SharedLogFile

WRITER = """
import sys
from pathlib import Path
from steersman.audit.backends import rotation
from steersman.audit.backends.rotation import Limits
from steersman.audit.backends.shared_log import SharedLogFile
rotation.MEGABYTE = 1000
log = SharedLogFile(Path(sys.argv[2]), Limits(size=1), lambda work: work(), int(sys.argv[1]))
for number in range(300):
    assert not list(log.write([f"{sys.argv[3]}-{number}\\n".encode()] * 2))
"""


def at_once(work: Callable[[], None]) -> None:
    work()


@pytest.mark.slow
def test_every_line_of_every_process_is_there_once_whoever_moves_the_file_aside(tmp_path: Path) -> None:
    lock = os.open(tmp_path / "lock", os.O_CREAT | os.O_RDWR)
    folder = tmp_path / "logs"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(lock), folder / "audit.log", name], pass_fds=[lock])
        for name in "abc"
    ]
    assert [each.wait(60) for each in writers] == [0, 0, 0]
    os.close(lock)
    files = list(folder.iterdir())
    assert len(files) > 5
    assert all(each.stat().st_size <= 1000 for each in files)
    lines = sorted(line for each in files for line in each.read_text().splitlines())
    assert lines == sorted(f"{name}-{number}" for name in "abc" for number in range(300) for _ in range(2))


def test_a_file_that_another_process_has_moved_aside_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "MEGABYTE", 1000)
    lock = os.open(tmp_path / "lock", os.O_CREAT | os.O_RDWR)
    path = tmp_path / "logs" / "audit.log"
    log = SharedLogFile(path, Limits(size=1), at_once, lock)
    assert not list(log.write([b"1\n"]))
    path.rename(path.with_name("elsewhere"))
    assert not list(log.write([b"2\n"]))
    assert path.read_text() == "2\n"
    path.write_bytes(b"x" * 999)
    assert not list(log.write([b"3\n"]))
    assert path.read_text() == "3\n"
    log.close()
    os.close(lock)
