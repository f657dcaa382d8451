"""Files after a power cut: synced data, and of the rest the pages that the kernel happened to have written.

Out of the journal of `lies.c`. The kernel writes pages. A sync that fails leaves pages that are not on the disk and are
taken for written all the same: they are read as if they were there, until the power goes. Names of files are taken for
durable at once.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Final

PAGE: Final = 4096
_RECORD: Final = struct.Struct("=4q")


class Kind(IntEnum):
    """Kinds of journal records, the numbers of lies.c."""

    WRITTEN = 1
    SYNCED = 2
    NOT_SYNCED = 3
    CUT = 4
    REMOVED = 5
    RENAMED = 6


@dataclass
class Image:
    """One file, as it is read and as it is on the disk."""

    cached: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    dirty: set[int] = field(default_factory=set)
    """Numbers of pages that the kernel has still to write."""

    def write(self, at: int, data: bytes) -> None:
        _put(self.cached, at, data)
        self.dirty.update(range(at // PAGE, (at + len(data) - 1) // PAGE + 1))

    def differing(self, content: bytes) -> list[int]:
        """The pages in which it is read otherwise than `content`."""
        pages = range(max(len(content), len(self.cached)) // PAGE + 1)
        return [
            page
            for page in pages
            if content[page * PAGE : (page + 1) * PAGE] != self.cached[page * PAGE : (page + 1) * PAGE]
        ]

    def adopt(self, content: bytes) -> None:
        """It is read as this, whatever was noted."""
        self.dirty.update(self.differing(content))
        self.cached[:] = content
        del self.durable[len(content) :]

    def settle(self, chance: random.Random, share: float) -> None:
        """Decide for each dirty page if it is written, with the probability `share`; no page is dirty afterwards."""
        for page in sorted(self.dirty):
            if chance.random() < share:
                _put(self.durable, page * PAGE, self.cached[page * PAGE : (page + 1) * PAGE])
        self.dirty.clear()

    def cut(self, size: int) -> None:
        for each in (self.cached, self.durable):
            del each[size:]
        if size > len(self.cached):
            self.cached.extend(bytes(size - len(self.cached)))
        self.dirty = {page for page in self.dirty if page * PAGE < size}


def _put(image: bytearray, at: int, data: bytes | bytearray) -> None:
    if len(image) < at:
        image.extend(bytes(at - len(image)))
    image[at : at + len(data)] = data


class Disk:
    """All files of a folder that were written with a journal."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.files: dict[str, Image] = {}

    def replay(self, journal: bytes) -> None:
        """Goes through a journal, which may end amid a record."""
        for kind, path, at, data in records(journal):
            if kind == Kind.WRITTEN:
                self.files.setdefault(path, Image()).write(at, data)
                continue
            image = self.files.get(path)
            if image is None:
                continue  # it is written in another way, which is not noted
            if kind == Kind.SYNCED:
                image.settle(self._chance, 1.0)
            elif kind == Kind.NOT_SYNCED:
                image.settle(self._chance, self._chance.choice((0.0, 0.5)))
            elif kind == Kind.CUT:
                image.cut(at)
            else:
                del self.files[path]
                if kind == Kind.RENAMED:
                    self.files[data.decode()] = image

    def cut_power(self) -> dict[str, Image]:
        """Return the durable and cached contents of each file after a power cut."""
        share = self._chance.choice((0.0, 0.5, 1.0))
        for image in self.files.values():
            image.settle(self._chance, share)
            image.cached[:] = image.durable
        return self.files


def records(journal: bytes) -> Iterator[tuple[Kind, str, int, bytes]]:
    """Yield the records of a journal: kind, file, offset (or size), and bytes."""
    start = 0
    while start + _RECORD.size <= len(journal):
        kind, path_length, at, size = _RECORD.unpack_from(journal, start)
        start += _RECORD.size
        path = journal[start : start + path_length]
        start += path_length
        if start + size > len(journal):
            return
        yield Kind(kind), path.decode(), at, journal[start : start + size]
        start += size


class Power:
    """Power of a process that writes with a journal; it can be cut once the process has been killed."""

    def __init__(self, journal: Path, chance: random.Random) -> None:
        self._journal = journal
        self._disk = Disk(chance)

    def catch_up(self) -> None:
        """Takes in what the process has done, which has ended. Who is killed may have written what it had not noted."""
        if self._journal.exists():
            self._disk.replay(self._journal.read_bytes())
            self._journal.unlink()
        for path, image in list(self._disk.files.items()):
            file = Path(path)
            if path.endswith("-shm") or not file.exists():  # shared memory, which no disk keeps
                del self._disk.files[path]
            else:
                image.adopt(file.read_bytes())

    def cut(self) -> str:
        """Leaves of the files what a power cut would leave. Says what is gone."""
        self.catch_up()
        gone = []
        for path, image in self._disk.cut_power().items():
            file = Path(path)
            if number := image.differing(file.read_bytes()):
                gone.append(f"{len(number)} pages of {file.name}")
                file.write_bytes(image.durable)
        return ", ".join(gone) or "nothing"
