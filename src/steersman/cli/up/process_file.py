"""Which process a cluster is: a file in its folder that the process keeps locked while it lives."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO, Final

_NAME: Final = "up.pid"


def claim(folder: Path) -> IO[str] | None:
    """Makes this process the cluster of a folder, until the file that is returned is closed; None if there is one.

    Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = open(folder / _NAME, "a+", encoding="ascii")  # noqa: SIM115 - it stays open
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    file.seek(0)
    file.truncate()
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file


def running(folder: Path) -> int | None:
    """The process that is the cluster of a folder."""
    try:
        with open(folder / _NAME, "r+", encoding="ascii") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(file.read(20))
            return None
    except (OSError, ValueError):
        return None
