"""Which process a cluster is: a file in its folder that the process keeps locked while it lives."""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

_NAME: Final = "up.pid"


@dataclass(frozen=True, slots=True)
class Running:
    """A process that is a cluster; `since` is when it began, in seconds of the epoch."""

    pid: int
    since: float


def claim(folder: Path) -> IO[str] | None:
    """Makes this process the cluster of a folder, until the file that is returned is closed; None if there is one.

    A process that is forked keeps the claim too; it says with `write_pid` that it is the one. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = open(folder / _NAME, "a+", encoding="ascii")  # noqa: SIM115 - it stays open
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    write_pid(file)
    return file


def write_pid(file: IO[str]) -> None:
    """Says in a claimed file that it is this process. Raises OSError."""
    file.seek(0)
    file.truncate()
    file.write(f"{os.getpid()}\n")
    file.flush()


def running(folder: Path) -> Running | None:
    """The process that is the cluster of a folder."""
    try:
        with open(folder / _NAME, "r+", encoding="ascii") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return Running(int(file.read(20)), os.fstat(file.fileno()).st_mtime)
            return None
    except (OSError, ValueError):
        return None
