"""Lies to a process: about the time, and about what became of its writes to the disk.

`lies.c` is built with the C compiler where there is one, and put into the process by LD_PRELOAD; what it lies about may
be changed at any moment. It reaches programs that call the C library, as CPython, OpenSSL and SQLite do. Programs of Go
ask the kernel themselves: etcd is not reached.
"""

from __future__ import annotations

import errno
import hashlib
import mmap
import os
import shutil
import struct
import subprocess
import sys
from enum import IntEnum
from pathlib import Path
from typing import Final

_SOURCE: Final = Path(__file__).resolve().with_name("lies.c")
_CACHE: Final = Path.home() / ".cache" / "steersman" / "chaos-lies"
ALL: Final = -1
"""So many writes or syncs fail: all, until told otherwise."""


class Field(IntEnum):
    """Numbers of 64 bits, in the order of `struct lies` in lies.c."""

    CLOCK_AHEAD = 0
    SYNCS_FAILING = 1
    SYNC_ERROR = 2
    SYNC_DELAY = 3
    WRITES_FAILING = 4
    WRITE_ERROR = 5
    WRITES_TORN = 6
    READS_FAILING = 7


def built() -> Path | None:
    """The library; None where it cannot be built: there is no compiler, or this is no Linux."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        return None
    library = _CACHE / f"{hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]}.so"
    if not library.exists():
        _CACHE.mkdir(parents=True, exist_ok=True)
        unfinished = library.with_suffix(f".{os.getpid()}")
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", unfinished, _SOURCE, "-ldl"], check=True)
        unfinished.replace(library)
    return library


class Liar:
    """Lies for one process and its children."""

    def __init__(self, library: Path, told: Path, disk: Path) -> None:
        """Keep the lies in the file `told`. Writes fail below the folder `disk`, and are recorded beside `told`."""
        told.write_bytes(bytes(8 * len(Field)))
        self.journal = told.with_suffix(".journal")
        """Journal of the writes to the disk, for `disk_images`."""
        with told.open("r+b") as file:
            self._fields = mmap.mmap(file.fileno(), 0)
        self.environment = {"LD_PRELOAD": str(library), "CHAOS_LIES": str(told), "CHAOS_DISK": str(disk.resolve())}
        self.environment["CHAOS_JOURNAL"] = str(self.journal)
        """Environment variables with which the process must be started."""

    def _tell(self, field: Field, number: int) -> None:
        struct.pack_into("=q", self._fields, 8 * field, number)

    def clock(self, seconds: float) -> None:
        """Its clock of the day goes so far ahead, or is behind where `seconds` are less than 0."""
        self._tell(Field.CLOCK_AHEAD, int(seconds * 1e9))

    def fail_syncs(self, how_many: int, error: int = errno.EIO) -> None:
        """The next fsync and fdatasync fail."""
        self._tell(Field.SYNC_ERROR, error)
        self._tell(Field.SYNCS_FAILING, how_many)

    def slow_syncs(self, seconds: float) -> None:
        """Each takes so much longer."""
        self._tell(Field.SYNC_DELAY, int(seconds * 1e6))

    def fail_writes(self, how_many: int, error: int, *, torn: bool = False) -> None:
        """The next writes to files fail; a torn one has written its first half."""
        self._tell(Field.WRITE_ERROR, error)
        self._tell(Field.WRITES_TORN, torn)
        self._tell(Field.WRITES_FAILING, how_many)

    def fail_reads(self, how_many: int) -> None:
        """The next reads of files fail."""
        self._tell(Field.READS_FAILING, how_many)

    def mend_disk(self) -> None:
        """Reads, writes and syncs do what they say."""
        for field in (Field.SYNCS_FAILING, Field.SYNC_DELAY, Field.WRITES_FAILING, Field.READS_FAILING):
            self._tell(field, 0)
