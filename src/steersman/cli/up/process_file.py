"""The process of a cluster: a file in its folder that the process keeps locked while it lives.

The file is locked twice. `flock` goes over to a process that is forked, so that a folder is claimed without a gap. Of
the lock of `fcntl` the kernel tells which process has it: a number in the file could be anybody's.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from msgspec import Struct

from steersman.machinery.private_files import make_own_folder, open_own

_NAME: Final = "up.pid"
_WITHOUT_DATA: Final = frozenset({_NAME, "up.log"})
_LOCK: Final = struct.Struct("@qqihh" if sys.platform == "darwin" else "@hhqqi")
"""`struct flock` of fcntl(2)."""


class Running(Struct, frozen=True):
    """A process that is a cluster; `since` is when it began, in seconds of the epoch.

    `pid` is 0 while it is not known: the process is just starting, or of a version that did not let it be known.
    """

    pid: int
    since: float


def claim(folder: Path) -> IO[str] | None:
    """Makes this process the cluster of a folder, until the file that is returned is closed; None if there is one.

    A process that is forked keeps the claim too, once `hand_over` was called; it says with `write_pid` that it is the
    one. Raises OSError, also for a folder or a file of another user.
    """
    make_own_folder(folder)
    file = os.fdopen(open_own(folder / _NAME, os.O_RDWR | os.O_CREAT), "r+", encoding="ascii")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    if not _is_at(folder / _NAME, file):  # another process has just taken it away, with the folder
        file.close()
        return claim(folder)
    write_pid(file)
    return file


@contextlib.contextmanager
def new_folder_taken_back(folder: Path) -> Iterator[None]:
    """Take a folder away at the end that was made meanwhile and holds nothing but a claim and a log: a start that has
    failed leaves nothing behind."""
    was_there, process = os.path.lexists(folder), os.getpid()
    try:
        yield
    finally:
        if not was_there and os.getpid() == process:
            with contextlib.suppress(OSError):
                _take_away(folder)


def _take_away(folder: Path) -> None:
    if not _WITHOUT_DATA.issuperset(os.listdir(folder)):
        return
    claimed = claim(folder)
    if claimed is None:
        return
    with claimed:
        for name in os.listdir(folder):
            if name in _WITHOUT_DATA:
                os.unlink(folder / name)
        folder.rmdir()


def _is_at(path: Path, file: IO[str]) -> bool:
    """Return True if an open file is the one that has a name."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def write_pid(file: IO[str]) -> None:
    """Says in a claimed file that it is this process. Raises OSError."""
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    file.seek(0)
    file.truncate()
    file.write(f"{os.getpid()}\n")
    file.flush()


def hand_over(file: IO[str]) -> None:
    """Lets a process that is forked after this say that it is the cluster."""
    fcntl.lockf(file, fcntl.LOCK_UN)


def running(folder: Path) -> Running | None:
    """The process that is the cluster of a folder. Raises OSError for a file that is a link, or another user's."""
    try:
        descriptor = open_own(folder / _NAME, os.O_RDWR)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with os.fdopen(descriptor, "r+", encoding="ascii", errors="replace") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # several may look at the same time
        except BlockingIOError:
            pid = _holder(file)
            if not pid and file.read(20).strip() == str(os.getpid()):  # which the kernel does not tell of its own locks
                pid = os.getpid()
            return Running(pid, os.fstat(file.fileno()).st_mtime)
        return None


def end(folder: Path, found: Running) -> None:
    """Send SIGTERM to the process that is the cluster of a folder, if that is still the one that was found.

    Raises ProcessLookupError if it has gone, OSError.
    """
    with contextlib.ExitStack() as stack:
        if hasattr(os, "pidfd_open"):
            process = os.pidfd_open(found.pid)
            stack.callback(os.close, process)
        still = running(folder)
        if found.pid <= 0 or still is None or still.pid != found.pid:
            raise ProcessLookupError
        if hasattr(os, "pidfd_open"):
            signal.pidfd_send_signal(process, signal.SIGTERM)
        else:
            os.kill(found.pid, signal.SIGTERM)


def _holder(file: IO[str]) -> int:
    """The process that has locked a file with fcntl(2), 0 if none has."""
    is_mac = sys.platform == "darwin"
    asked = (0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET) if is_mac else (fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    told = _LOCK.unpack(fcntl.fcntl(file, fcntl.F_GETLK, _LOCK.pack(*asked)))
    kind, pid = (told[3], told[2]) if is_mac else (told[0], told[4])
    return 0 if kind == fcntl.F_UNLCK else int(pid)
