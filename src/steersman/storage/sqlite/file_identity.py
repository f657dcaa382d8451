"""The identity of the database file and its log: their names must still lead to the open files."""

from __future__ import annotations

import os
from pathlib import Path

from steersman.storage.sqlite import wal


class FileGone(Exception):
    """The error if the open file or its log has lost its name: a restart would not find its content."""


class FileIdentity:
    """The names of both files, which are checked after each commit.

    A folder may be deleted, or another disk mounted over it, while SQLite continues to write to files that nobody will
    find.
    """

    def __init__(self, path: Path) -> None:
        self._names = (str(path), str(wal.log_of(path)))
        self._seen = [_identity(self._names[0]), None]

    def check(self) -> None:
        """Raise FileGone unless both names lead to the same files as before."""
        for number, name in enumerate(self._names):
            try:
                found = _identity(name)
            except OSError as error:
                raise FileGone(f"{name}: {error.strerror}") from None
            if self._seen[number] is None:
                self._seen[number] = found
            elif self._seen[number] != found:
                raise FileGone(f"{name} is another file than the one that is written")


def _identity(name: str) -> tuple[int, int] | None:
    status = os.stat(name)
    return status.st_dev, status.st_ino
