"""Followed files are read again when they have changed. The last content stays if they cannot be read."""

from __future__ import annotations

import os
from pathlib import Path
from time import monotonic

import pytest

import steersman
from steersman.work import followed_files
from steersman.work.followed_files import FollowedFiles, stamp


class Followed:
    """Two files with one number each, and the numbers and errors reported for them."""

    def __init__(self, folder: Path) -> None:
        self.names = [str(folder / "a"), str(folder / "b")]
        self.reads = 0
        self.changes = 0
        self.refused: list[str] = []
        self.accepted = 0
        for name in self.names:
            self.write(name, "1")
        self.files = FollowedFiles(self.names, self._read, self._refuse, accepted=self._accept)

    def write(self, name: str, text: str) -> None:
        self.changes += 1
        Path(name).write_text(text)
        os.utime(name, (self.changes, self.changes))

    def _read(self) -> list[int]:
        self.reads += 1
        return [int(Path(name).read_text()) for name in self.names]

    def _refuse(self, error: Exception) -> None:
        self.refused.append(type(error).__name__)

    def _accept(self) -> None:
        self.accepted += 1


@pytest.fixture
def followed(tmp_path: Path) -> Followed:
    return Followed(tmp_path)


def test_files_are_read_once_while_they_stay_as_they_are(followed: Followed) -> None:
    for _ in range(3):
        followed.files.refresh()
    assert (followed.files.value, followed.reads, followed.accepted) == ([1, 1], 1, 0)


def test_changed_files_are_read_again_and_reported(followed: Followed) -> None:
    followed.write(followed.names[1], "2")
    followed.files.refresh()
    followed.files.refresh()
    assert (followed.files.value, followed.reads, followed.accepted) == ([1, 2], 2, 1)


def test_unusable_files_are_reported_once_per_change_and_retried(followed: Followed) -> None:
    followed.write(followed.names[0], "no number")
    followed.files.refresh()
    followed.files.refresh()
    assert (followed.files.value, followed.reads, followed.refused) == ([1, 1], 3, ["ValueError"])
    os.unlink(followed.names[0])
    followed.files.refresh()
    followed.files.refresh()
    assert followed.refused == ["ValueError", "FileNotFoundError"]
    followed.write(followed.names[0], "3")
    followed.files.refresh()
    assert (followed.files.value, followed.accepted) == ([3, 1], 1)
    followed.write(followed.names[0], "no number")
    followed.files.refresh()
    assert followed.refused == ["ValueError", "FileNotFoundError", "ValueError"]


def test_files_that_are_again_as_they_were_when_they_were_read_are_not_read(followed: Followed) -> None:
    moved = f"{followed.names[0]}.moved"
    os.rename(followed.names[0], moved)
    followed.files.refresh()
    os.rename(moved, followed.names[0])
    reads = followed.reads
    followed.files.refresh()
    assert (followed.files.value, followed.reads) == ([1, 1], reads)


def test_a_fault_of_the_program_is_not_taken_for_a_bad_file(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> list[int]:
        raise KeyError("a fault")

    monkeypatch.setattr(followed.files, "_read", fail)
    followed.write(followed.names[0], "2")
    with pytest.raises(KeyError):
        followed.files.refresh()
    assert not followed.refused


def test_what_cannot_be_read_at_first_is_an_error(tmp_path: Path) -> None:
    def read() -> str:
        return (tmp_path / "none").read_text()

    with pytest.raises(FileNotFoundError):
        FollowedFiles([str(tmp_path / "none")], read, lambda error: None)


def test_the_first_value_may_be_made_in_another_way(tmp_path: Path) -> None:
    files = FollowedFiles([str(tmp_path / "none")], lambda: 1, lambda error: None, first=lambda: 0)
    assert files.current() == 0
    (tmp_path / "none").touch()
    files.refresh()
    assert files.current() == 1


def test_a_change_while_files_are_read_is_seen_later(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("before")

    def read() -> str:
        text = path.read_text()
        if text == "before":
            path.write_text("changed meanwhile")
        return text

    files = FollowedFiles([str(path)], read, lambda error: None)
    assert files.value == "before"
    files.refresh()
    assert files.value == "changed meanwhile"


def test_files_are_checked_now_and_then_only(followed: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    now = monotonic()
    followed.write(followed.names[0], "2")
    monkeypatch.setattr(followed_files, "monotonic", lambda: now + followed_files.CHECK_EVERY / 2)
    assert followed.files.current() == [1, 1]
    monkeypatch.setattr(followed_files, "monotonic", lambda: now + followed_files.CHECK_EVERY + 1)
    assert followed.files.current() == [2, 1]


def test_a_file_that_is_not_there_has_no_stamp(tmp_path: Path) -> None:
    assert stamp(tmp_path / "none") is None
    (tmp_path / "none").touch()
    assert stamp(tmp_path / "none") is not None


LOOKS_ELSEWHERE = {"work/followed_files.py", "cli/up/process_file.py"}
"""The mechanism itself, and the start time of a process, which is the time of its file."""


def test_files_are_followed_by_the_one_mechanism() -> None:
    source = Path(steersman.__file__).parent
    found = {str(each.relative_to(source)) for each in source.rglob("*.py") if "st_mtime" in each.read_text()}
    assert found == LOOKS_ELSEWHERE
