"""Validation of the write-ahead log beside a file, before anything is read through it.

SQLite reads the log up to the last commit before the first frame with a wrong checksum, and takes the rest for remains.
That is right for a commit that a power cut left incomplete, which was never acknowledged. It is wrong for a frame that
was damaged later, because each commit behind it was acknowledged. The two cases can be distinguished, because a commit
is synced before the next one begins and before the index of the log (`-shm`) lists it:

- behind the frames that SQLite reads, only one commit may have left frames;
- the index never lists more frames than were synced. After the process was killed it lists all of them.

See https://www.sqlite.org/walformat.html. All functions block.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

_HEADER: Final = 32
_FRAME_HEADER: Final = 24
_MAGIC: Final = (0x377F0682, 0x377F0683)
_VERSION: Final = 3007000
_INDEX_HEADER: Final = 48
_INDEX: Final = 2 * _INDEX_HEADER + 4
_FIRST_FRAMES: Final = 16
"""Frames that are examined for commits behind a damaged header."""


class Index(Struct, frozen=True):
    """The number of committed frames according to the index of a log, and the number of these already in the file."""

    salts: bytes
    frames: int
    played: int


class Frame(Struct, frozen=True):
    """A page in the log. `pages` is the size of the file after a commit, 0 in all but the last frame of a commit."""

    number: int
    page: int
    pages: int
    salts: bytes
    checksum: tuple[int, int]


def log_of(path: Path) -> Path:
    """Return the path of a file's log."""
    return path.with_name(path.name + "-wal")


def index_of(path: Path) -> Path:
    """Return the path of the index of a file's log."""
    return path.with_name(path.name + "-shm")


def read_index(path: Path) -> Index | None:
    """Return the index of the log of the file `path`, None if it does not exist or is not valid."""
    try:
        return parse_index(index_of(path).read_bytes())
    except FileNotFoundError:
        return None


def parse_index(data: bytes) -> Index | None:
    """Parse an index; None if it is not valid."""
    if len(data) < _INDEX:
        return None
    newest = None
    for at in (0, _INDEX_HEADER):
        header = data[at : at + _INDEX_HEADER]
        version, _, _, initialized, _, _, frames = struct.unpack_from("=IIIBBHI", header)
        told = struct.unpack_from("=II", header, 40)
        sound = version == _VERSION and initialized and _checksum(header[:40], (0, 0), sys.byteorder == "big") == told
        if sound and (newest is None or frames > newest.frames):
            newest = Index(header[32:40], frames, struct.unpack_from("=I", data, 2 * _INDEX_HEADER)[0])
    return newest


def lost_commits(path: Path, before: Index | None, read: Index | None) -> str:
    """Return why commits in the log of the file `path` would be lost, "" if all are read.

    `before` is the index from before the file was opened, `read` the index that SQLite has built since. Raises OSError.
    """
    log = log_of(path)
    try:
        with log.open("rb") as file:
            return _judged(file.fileno(), log, before, read)
    except FileNotFoundError:
        if before is not None and before.frames > before.played:
            return f"{log} is missing, with commits that are not in the file"
        return ""


def _judged(descriptor: int, log: Path, before: Index | None, read: Index | None) -> str:
    size = os.fstat(descriptor).st_size
    header = os.pread(descriptor, _HEADER, 0)
    if size <= _HEADER:
        lost = before is not None and before.frames > before.played
        return f"{log} was cut to {size} bytes, with commits that are not in the file" if lost else ""
    if not is_sound(header):
        return f"{log} is damaged: its header is not what was written" if _has_commits(descriptor, size, before) else ""
    present = header[16:24]
    count = read.frames if read is not None and read.salts == present else 0
    if before is not None and before.salts == present and before.frames > count:
        return f"{log} is damaged: of {before.frames} pages that were committed {count} can be read"
    behind = [each for each in frames(descriptor, count) if each.salts == present]
    commit = next((each for each in behind if each.pages), None)
    if commit is None:
        return ""
    # Some disks get the last frame of a commit repeatedly, up to the end of a sector.
    later = [each for each in behind if each.number > commit.number and each.page != commit.page]
    return f"{log} is damaged: commits follow page {count + 1} of it, which is not what was written" if later else ""


def frames(descriptor: int, first: int = 0) -> Iterator[Frame]:
    """Yield the frames of an open log from index `first` on, whether sound or not."""
    step = _FRAME_HEADER + page_size(descriptor)
    for number in range(first, (os.fstat(descriptor).st_size - _HEADER) // step):
        head = os.pread(descriptor, _FRAME_HEADER, _HEADER + number * step)
        page, pages = struct.unpack_from(">II", head)
        yield Frame(number, page, pages, head[8:16], struct.unpack_from(">II", head, 16))


def has_frames(descriptor: int) -> bool:
    """Return True if an open log has more than a header."""
    return os.fstat(descriptor).st_size > _HEADER


def page_size(descriptor: int) -> int:
    """Return the page size in the header of an open log, or the default if that is not valid."""
    found = int.from_bytes(os.pread(descriptor, 4, 8), "big")
    return found if found in (512 << shift for shift in range(8)) else 4096


def page_at(descriptor: int, number: int) -> bytes:
    """Return the page in the frame with this index."""
    size = page_size(descriptor)
    return os.pread(descriptor, size, _HEADER + number * (_FRAME_HEADER + size) + _FRAME_HEADER)


def salts(descriptor: int) -> bytes:
    """Return the salts of an open log's frames: those of its header, or of the first frame if the header is damaged.

    Frames with other salts are left from a cycle of the log that is already in the file.
    """
    header = os.pread(descriptor, _HEADER, 0)
    return header[16:24] if len(header) == _HEADER and is_sound(header) else os.pread(descriptor, 8, _HEADER + 8)


def is_whole(descriptor: int, frame: Frame, before: tuple[int, int]) -> bool:
    """Return True if a frame matches its checksum, which continues that of the frame before it."""
    head = struct.pack(">II", frame.page, frame.pages)
    page = page_at(descriptor, frame.number)
    return len(page) % 8 == 0 and any(
        _checksum(page, _checksum(head, before, big_endian), big_endian) == frame.checksum
        for big_endian in _orders(descriptor)
    )


def first_checksum(descriptor: int) -> tuple[int, int]:
    """Return the checksum in the header of an open log, which that of the first frame continues."""
    first, second = struct.unpack(">II", os.pread(descriptor, 8, 24))
    return first, second


def is_sound(header: bytes) -> bool:
    """Return True if the header of a log matches its checksum."""
    magic, version = struct.unpack_from(">II", header)
    if magic not in _MAGIC or version != _VERSION:
        return False
    return _checksum(header[:24], (0, 0), bool(magic & 1)) == struct.unpack_from(">II", header, 24)


def _orders(descriptor: int) -> tuple[bool, ...]:
    """Return the possible byte orders of checksums, True for big-endian."""
    magic = int.from_bytes(os.pread(descriptor, 4, 0), "big")
    return (bool(magic & 1),) if magic in _MAGIC else (False, True)


def _has_commits(descriptor: int, size: int, before: Index | None) -> bool:
    """Return True if there are commits behind a damaged header: a header is synced before any frame."""
    if size < _HEADER + _FRAME_HEADER + page_size(descriptor):
        return False
    checksum = first_checksum(descriptor)
    for frame in frames(descriptor):
        if frame.number == 0 and before is not None and before.frames > before.played and before.salts == frame.salts:
            return True
        if is_whole(descriptor, frame, checksum):
            return True
        checksum = frame.checksum
        if frame.number >= _FIRST_FRAMES:
            break
    return False


def _checksum(data: bytes, start: tuple[int, int], big_endian: bool) -> tuple[int, int]:
    first, second = start
    words = struct.unpack(f"{'>' if big_endian else '<'}{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second
