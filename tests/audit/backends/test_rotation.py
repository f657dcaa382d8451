"""Log rotation: by size, clean-up of old files, and full disks."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from steersman.audit.backends import rotation
from steersman.audit.backends.rotation import Limits, LogFile, clean, old_stamp
from steersman.machinery.values import times

MIB = 1 << 20


def at_once(work: Callable[[], None]) -> None:
    work()


def opened(path: Path, **limits: object) -> LogFile:
    return LogFile(path, Limits(**limits), at_once)  # type: ignore[arg-type]


def line(size: int, letter: str = "x") -> bytes:
    return letter.encode() * (size - 1) + b"\n"


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_the_file_and_its_folder_are_private_and_there_from_the_start(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "audit.log"
    opened(path)
    assert mode(path) == 0o600
    assert mode(path.parent) == 0o700


def test_lines_are_appended_to_what_there_is(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(b"before\n")
    path.chmod(0o640)
    file = opened(path)
    assert list(file.write([b"a\n", b"b\n"])) == []
    file.close()
    assert path.read_bytes() == b"before\na\nb\n"
    assert mode(path) == 0o640


def test_a_full_file_is_moved_aside_and_the_new_one_has_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    file = opened(path, size=1)
    path.chmod(0o640)
    assert list(file.write([line(MIB - 10, "a"), line(100, "b"), line(100, "c")])) == []
    [old] = [each for each in tmp_path.iterdir() if each != path]
    assert old_stamp(path, old.name) is not None
    assert old.read_bytes() == line(MIB - 10, "a")
    assert path.read_bytes() == line(100, "b") + line(100, "c")
    assert mode(path) == 0o640


def test_size_0_is_never_full(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    file = opened(path, size=0)
    assert list(file.write([line(3 * MIB)])) == []
    assert [each.name for each in tmp_path.iterdir()] == ["audit.log"]


def test_a_line_that_no_file_can_hold_is_told_and_the_others_are_written(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    file = opened(path, size=1)
    failed = list(file.write([b"a\n", line(MIB + 1), b"b\n"]))
    assert [(number, str(error)) for number, error in failed] == [
        (1, f"write length {MIB + 1} exceeds maximum file size {MIB}")
    ]
    assert path.read_bytes().endswith(b"b\n")


@pytest.mark.parametrize("backups", [0, 2])
def test_so_many_old_files_are_kept(tmp_path: Path, backups: int) -> None:
    path = tmp_path / "audit.log"
    file = opened(path, size=1, age=0, backups=backups)
    for _ in range(5):
        list(file.write([line(MIB - 1)]))
        times.advance(1)
    assert len(list(tmp_path.iterdir())) == 1 + (backups or 4)


def test_old_files_go_with_their_time(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    file = opened(path, size=1, age=2, backups=0)
    for _ in range(4):
        list(file.write([line(MIB - 1)]))
        times.advance(86_400)
    clean(path, Limits(size=1, age=2, backups=0))
    assert len([each for each in tmp_path.iterdir() if each != path]) == 1


def test_old_files_are_compressed_and_nothing_else_is_touched(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    (tmp_path / "audit-notes.log").write_bytes(b"mine")
    file = opened(path, size=1, compress=True)
    list(file.write([line(MIB - 1, "a"), line(MIB - 1, "b")]))
    [packed] = tmp_path.glob("*.gz")
    assert gzip.decompress(packed.read_bytes()) == line(MIB - 1, "a")
    assert mode(packed) == 0o600
    assert {each.name for each in tmp_path.iterdir()} == {"audit.log", "audit-notes.log", packed.name}


def test_a_full_disk_loses_lines_but_leaves_no_half_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "audit.log"
    file = opened(path)
    list(file.write([b"first\n"]))
    room = 9
    write = os.write

    def write_what_fits(descriptor: int, data: bytes) -> int:
        nonlocal room
        if not room:
            raise OSError(28, "No space left on device")
        taken = data[:room]
        room -= len(taken)
        return write(descriptor, taken)

    monkeypatch.setattr(os, "write", write_what_fits)
    failed = dict(file.write([b"12345\n", b"67890\n", b"abcde\n"]))
    assert sorted(failed) == [1, 2]
    assert path.read_bytes() == b"first\n12345\n"
    room = 100
    assert list(file.write([b"again\n"])) == []
    assert path.read_bytes() == b"first\n12345\nagain\n"


def test_a_file_that_was_moved_away_is_found_again_after_it_was_full(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    file = opened(path, size=1)
    list(file.write([line(MIB - 1)]))
    path.unlink()
    assert list(file.write([b"a\n"])) == []
    assert path.read_bytes() == b"a\n"


def test_what_was_cut_off_by_a_kill_does_not_spoil_the_next_line(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(b'{"whole":1}\n{"ha')
    file = opened(path)
    assert list(file.write([b'{"next":1}\n'])) == []
    assert path.read_bytes().splitlines() == [b'{"whole":1}', b'{"ha', b'{"next":1}']


def test_files_that_are_full_in_the_same_millisecond_are_all_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotation, "unix_now", lambda: 1.0)
    path = tmp_path / "audit.log"
    for letters in ("ab", "cd"):  # those of the second meet files that were compressed
        file = opened(path, size=1, age=0, backups=0, compress=True)
        for letter in letters:
            assert list(file.write([line(MIB - 1, letter)])) == []
        file.close()
    kept = [
        gzip.decompress(each.read_bytes()) if each.suffix == ".gz" else each.read_bytes() for each in tmp_path.iterdir()
    ]
    assert sorted(each[:1] for each in kept) == [b"a", b"b", b"c", b"d"]


def test_old_files_are_looked_after_by_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    later: list[Callable[[], None]] = []
    file = LogFile(path, Limits(size=1, compress=True), later.append)
    for letter in "abcdef":
        list(file.write([line(MIB - 1, letter)]))
        times.advance(1)
    assert len(later) == 1
    with ThreadPoolExecutor(4) as threads:
        for work in later * 4:
            threads.submit(work)
    kept = [gzip.decompress(each.read_bytes())[:1] for each in tmp_path.glob("*.gz")]
    assert sorted(kept) == [b"a", b"b", b"c", b"d", b"e"]
    list(file.write([line(MIB - 1)]))
    assert len(later) == 2
