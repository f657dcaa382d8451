"""Identification of a cluster's process by its file."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO

import pytest

from steersman.cli.up.process_file import Running, claim, new_folder_taken_back, running


def claimed(folder: Path) -> IO[str]:
    """Claim a folder that nobody has claimed."""
    file = claim(folder)
    assert file is not None
    return file


def test_somebody_else_who_looks_is_not_taken_for_a_cluster(tmp_path: Path) -> None:
    claimed(tmp_path).close()
    with (tmp_path / "up.pid").open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # a look that is under way
        assert running(tmp_path) is None


def test_a_cluster_is_found_however_many_look(tmp_path: Path) -> None:
    with claimed(tmp_path) as file:
        first = running(tmp_path)
        assert isinstance(first, Running)
        assert running(tmp_path) == first
        assert claim(tmp_path) is None
        assert os.fstat(file.fileno()).st_mtime == first.since


@pytest.mark.parametrize(("more", "is_left"), [((), False), (("up.log",), False), (("ca.key",), True)])
def test_a_start_that_fails_takes_back_a_folder_without_data(
    tmp_path: Path, more: tuple[str, ...], is_left: bool
) -> None:
    folder = tmp_path / "new"
    with new_folder_taken_back(folder), claimed(folder):
        for name in more:
            (folder / name).touch()
    assert folder.exists() == is_left


def test_a_folder_of_before_stays_and_so_does_one_that_another_has_claimed(tmp_path: Path) -> None:
    with new_folder_taken_back(tmp_path), claimed(tmp_path):
        pass
    assert tmp_path.exists()
    folder = tmp_path / "new"
    with new_folder_taken_back(folder):
        other = claimed(folder)
    with other:
        assert running(folder) is not None


def test_a_claim_of_a_folder_that_was_taken_back_meanwhile_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process may remove the folder between the opening of its file and the lock."""
    folder, lock = tmp_path / "new", fcntl.flock
    gone: list[Path] = []

    def late(file: IO[str], how: int) -> None:
        if not gone:
            gone.append(folder / "up.pid")
            gone[0].unlink()
            folder.rmdir()
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with claimed(folder):
        assert gone
        assert running(folder) is not None
