"""The file of a log that several processes write to. All of it blocks."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from steersman.audit.backends.rotation import Limits, LogFile

_WRITING: Final = 0
_CLEANING: Final = 1
"""Which byte of the lock's file is held by whom; that may take long, and does not keep others from writing."""


class SharedLogFile(LogFile):
    """A LogFile of which each process has its own. One writes at a time, so that one moves the file aside, and lines
    of two processes stand behind each other."""

    def __init__(self, path: Path, limits: Limits, later: Callable[[Callable[[], None]], object], lock: int) -> None:
        """`lock` is the descriptor of a file that all processes have, and that none of them locks otherwise. Raises
        OSError where no file can be made."""
        super().__init__(path, limits, later)
        self._lock: Final = lock

    def write(self, lines: Sequence[bytes]) -> Iterator[tuple[int, OSError]]:
        """See LogFile."""
        with self._held(_WRITING):
            self._look()
            yield from super().write(lines)

    def _look(self) -> None:
        """Finds out whether another process has moved the file aside, or made it longer."""
        if self._file < 0:
            return
        try:
            found, mine = self._path.stat(), os.fstat(self._file)
        except OSError:
            self.close()
            return
        if (found.st_ino, found.st_dev) == (mine.st_ino, mine.st_dev):
            self._size = mine.st_size
        else:
            self.close()

    def _clean_up(self) -> None:
        """Two that compress the same file would lose it."""
        with self._held(_CLEANING):
            super()._clean_up()

    @contextlib.contextmanager
    def _held(self, byte: int) -> Iterator[None]:
        fcntl.lockf(self._lock, fcntl.LOCK_EX, 1, byte)
        try:
            yield
        finally:
            fcntl.lockf(self._lock, fcntl.LOCK_UN, 1, byte)
