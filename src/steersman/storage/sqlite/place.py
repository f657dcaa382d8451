"""Names of the file and of its log of writes, and the files that have these names."""

from __future__ import annotations

import os
from pathlib import Path

from steersman.storage.sqlite import wal


class FileGone(Exception):
    """The file that is written, or its log, has not its name any more: a restart would not find what is in it."""


class Place:
    """The two names, which are looked at after each commit: a folder may be deleted, or another disk mounted over it,
    while SQLite goes on writing what nobody will find."""

    def __init__(self, path: Path) -> None:
        self._names = (str(path), str(wal.log_of(path)))
        self._seen = [_identity(self._names[0]), None]

    def check(self) -> None:
        """Raise FileGone unless both names are those of the files that they were of before."""
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
