"""The process of a cluster: a file in its folder that the process locks.

The file has two locks. A lock of `flock` is inherited by a forked process, so that a claim on the folder passes to the
child without a gap. For a lock of `fcntl` the kernel reports the process that holds it, while a number in the file
could be forged.
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

from steersman.cli.up.page import FILE
from steersman.machinery.private_files import make_own_folder, open_own

_NAME: Final = "up.pid"
_WITHOUT_DATA: Final = frozenset({_NAME, "up.log", FILE})
_LOCK: Final = struct.Struct("@qqihh" if sys.platform == "darwin" else "@hhqqi")
"""`struct flock` of fcntl(2)."""


class Running(Struct, frozen=True):
    """A process that runs a cluster; `since` is its start in seconds since the epoch.

    `pid` is 0 if unknown: the process is just starting, or has a version that does not set the second lock.
    """

    pid: int
    since: float


def claim(folder: Path) -> IO[str] | None:
    """Claim a folder for this process until the returned file is closed; return None if it is claimed already.

    After `hand_over` a forked process inherits the claim, and takes it over by `write_pid`. Raises OSError, also for a
    folder or a file of another user.
    """
    make_own_folder(folder)
    file = os.fdopen(open_own(folder / _NAME, os.O_RDWR | os.O_CREAT), "r+", encoding="ascii")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    if not _is_at(folder / _NAME, file):  # another process has just removed it with the folder
        file.close()
        return claim(folder)
    write_pid(file)
    return file


@contextlib.contextmanager
def new_folder_taken_back(folder: Path) -> Iterator[None]:
    """Remove a folder afterwards that was created meanwhile and has only a claim and a log, after a failed start."""
    was_there, process = os.path.lexists(folder), os.getpid()
    try:
        yield
    finally:
        if not was_there and os.getpid() == process:
            with contextlib.suppress(OSError):
                _remove_if_empty(folder)


def _remove_if_empty(folder: Path) -> None:
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
    """Return True if `path` refers to the open file."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def write_pid(file: IO[str]) -> None:
    """Write this process's pid to a claimed file and lock it. Raises OSError."""
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    file.seek(0)
    file.truncate()
    file.write(f"{os.getpid()}\n")
    file.flush()


def hand_over(file: IO[str]) -> None:
    """Release the lock that identifies this process, so that a child forked afterwards can take it."""
    fcntl.lockf(file, fcntl.LOCK_UN)


def running(folder: Path) -> Running | None:
    """Return the process of a folder's cluster, or None. Raises OSError for a file that is a link, or another
    user's.
    """
    try:
        descriptor = open_own(folder / _NAME, os.O_RDWR)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with os.fdopen(descriptor, "r+", encoding="ascii", errors="replace") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared, so that several processes can check concurrently
        except BlockingIOError:
            pid = _holder(file)
            # the kernel does not report a process's own locks
            if not pid and file.read(20).strip() == str(os.getpid()):
                pid = os.getpid()
            return Running(pid, os.fstat(file.fileno()).st_mtime)
        return None


def end(folder: Path, found: Running) -> None:
    """Send SIGTERM to the process of a folder's cluster, if it is still `found`.

    Raises ProcessLookupError if that process has ended, and OSError.
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
    """Return the pid of the process that holds the fcntl(2) lock of a file, or 0."""
    is_mac = sys.platform == "darwin"
    request = (0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET) if is_mac else (fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    answer = _LOCK.unpack(fcntl.fcntl(file, fcntl.F_GETLK, _LOCK.pack(*request)))
    kind, pid = (answer[3], answer[2]) if is_mac else (answer[0], answer[4])
    return 0 if kind == fcntl.F_UNLCK else int(pid)
