"""Drafts of files."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from steersman.machinery.drafts import draft_of

KILLED = """
import os, signal, sys
from pathlib import Path
from steersman.machinery.drafts import draft_of
with draft_of(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def _names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_a_file_is_replaced_once_it_is_complete(tmp_path: Path) -> None:
    (path := tmp_path / "a.json").write_bytes(b"old")
    with draft_of(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert _names(tmp_path) == ["a.json"]


def test_nothing_is_left_of_a_draft_after_an_error(tmp_path: Path) -> None:
    (path := tmp_path / "a.json").write_bytes(b"old")
    with suppress(ZeroDivisionError), draft_of(path) as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert path.read_bytes() == b"old"
    assert _names(tmp_path) == ["a.json"]


def test_drafts_of_killed_processes_are_removed_and_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    assert subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False).returncode == -9
    (left,) = _names(tmp_path)
    assert left.startswith(".a.json.")
    (tmp_path / "b.json").touch()
    (tmp_path / ".a.json.linked.draft").symlink_to("b.json")
    (tmp_path / ".b.json.other.draft").touch()
    with draft_of(path) as file:
        assert left not in _names(tmp_path)
        with draft_of(path) as second:
            second.write(b"second")
        assert path.read_bytes() == b"second"
        file.write(b"first")
    assert path.read_bytes() == b"first"
    assert _names(tmp_path) == [".a.json.linked.draft", ".b.json.other.draft", "a.json", "b.json"]
