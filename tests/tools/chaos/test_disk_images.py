"""Tests of the state of files after a power cut."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from tools.chaos.lies.disk_images import PAGE, Disk, Image, Kind, Power, records


def record(kind: Kind, path: str = "/f", at: int = 0, data: bytes = b"") -> bytes:
    return struct.pack("=4q", kind, len(path), at, len(data)) + path.encode() + data


def page(letter: bytes) -> bytes:
    return letter * PAGE


class Chance(random.Random):
    """Random numbers that write none or all of the unsynced data."""

    def __init__(self, share: float) -> None:
        super().__init__(1)
        self._share = share

    def choice(self, seq: object) -> float:  # type: ignore[override]  # of shares only
        return self._share


def left(share: float, *noted: bytes) -> dict[str, bytes]:
    """Return the files after a power cut at which this share of the unsynced data was written."""
    disk = Disk(Chance(share))
    disk.replay(b"".join(noted))
    return {path: bytes(image.durable) for path, image in disk.cut_power().items()}


def test_what_was_synced_is_left_and_the_rest_may_be() -> None:
    noted = [
        record(Kind.WRITTEN, data=page(b"a") + page(b"b")),
        record(Kind.SYNCED),
        record(Kind.WRITTEN, at=PAGE, data=b"new"),
        record(Kind.WRITTEN, at=2 * PAGE, data=b"more"),
    ]
    assert left(0.0, *noted) == {"/f": page(b"a") + page(b"b")}
    assert left(1.0, *noted) == {"/f": page(b"a") + b"new" + page(b"b")[3:] + b"more"}


def test_a_sync_after_one_that_failed_keeps_only_what_was_written_since() -> None:
    noted = [
        record(Kind.WRITTEN, data=page(b"a")),
        record(Kind.NOT_SYNCED),
        record(Kind.WRITTEN, at=PAGE, data=page(b"b")),
        record(Kind.SYNCED),
    ]
    assert left(0.0, *noted) == {"/f": bytes(PAGE) + page(b"b")}
    again = record(Kind.WRITTEN, data=b"a")  # one byte of a page makes the whole page one to be written
    assert left(0.0, *noted, again, record(Kind.SYNCED)) == {"/f": page(b"a") + page(b"b")}


def test_each_file_is_synced_for_itself_and_keeps_what_it_has_under_another_name() -> None:
    noted = [
        record(Kind.WRITTEN, "/a", data=b"a"),
        record(Kind.WRITTEN, "/b", data=b"b"),
        record(Kind.SYNCED, "/a"),
        record(Kind.RENAMED, "/a", data=b"/c"),
        record(Kind.WRITTEN, "/d", data=b"d"),
        record(Kind.REMOVED, "/d"),
    ]
    assert left(0.0, *noted) == {"/b": b"", "/c": b"a"}


def test_what_is_cut_off_does_not_come_back() -> None:
    noted = [record(Kind.WRITTEN, data=page(b"a") + page(b"b")), record(Kind.SYNCED), record(Kind.CUT, at=10)]
    assert left(1.0, *noted) == {"/f": b"a" * 10}


def test_files_that_are_written_in_another_way_are_left_alone() -> None:
    assert left(0.0, record(Kind.SYNCED, "/key"), record(Kind.REMOVED, "/key")) == {}


def test_a_journal_may_end_amid_a_record() -> None:
    journal = record(Kind.WRITTEN, at=7, data=b"a") + record(Kind.WRITTEN, data=b"bc")
    whole = [(Kind.WRITTEN, "/f", 7, b"a")]
    assert [list(records(journal[:end])) for end in range(35, len(journal))] == [whole] * (len(journal) - 35)


def test_a_part_of_the_pages_may_be_written() -> None:
    image = Image()
    image.write(0, b"x" * (100 * PAGE))
    image.settle(random.Random(1), 0.5)
    written = sum(image.durable[at * PAGE : at * PAGE + 1] == b"x" for at in range(100))
    assert 30 < written < 70
    assert not image.dirty


@pytest.mark.parametrize(("share", "found"), [(0.0, b"synced"), (1.0, b"synced, and not noted")])
def test_what_was_written_and_not_noted_is_not_synced(tmp_path: Path, share: float, found: bytes) -> None:
    file = tmp_path / "file"
    journal = tmp_path / "journal"
    journal.write_bytes(record(Kind.WRITTEN, str(file), data=b"synced") + record(Kind.SYNCED, str(file)))
    file.write_bytes(b"synced, and not noted")
    power = Power(journal, Chance(share))
    assert power.cut() == ("1 pages of file" if share == 0.0 else "nothing")
    assert file.read_bytes() == found
    assert power.cut() == "nothing"
