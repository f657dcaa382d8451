"""Log file that several processes write to. All functions block."""

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
"""Locked bytes of the lock file: one for writing, and one for clean-up, which takes long and must not block writers."""


class SharedLogFile(LogFile):
    """A LogFile for several processes, each with its own instance.

    One process writes at a time, so that only one rotates the file and lines are never mixed.
    """

    def __init__(self, path: Path, limits: Limits, later: Callable[[Callable[[], None]], object], lock: int) -> None:
        """Open the file; `lock` is the descriptor of a lock file that all processes use only for this. Raises
        OSError.
        """
        super().__init__(path, limits, later)
        self._lock: Final = lock

    def write(self, lines: Sequence[bytes]) -> Iterator[tuple[int, OSError]]:
        """See LogFile."""
        with self._locked(_WRITING):
            self._detect_changes()
            yield from super().write(lines)

    def _detect_changes(self) -> None:
        """Detect that another process has rotated the file or appended to it."""
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
        """Clean up old files, one process at a time: two that compress the same file would lose it."""
        with self._locked(_CLEANING):
            super()._clean_up()

    @contextlib.contextmanager
    def _locked(self, byte: int) -> Iterator[None]:
        fcntl.lockf(self._lock, fcntl.LOCK_EX, 1, byte)
        try:
            yield
        finally:
            fcntl.lockf(self._lock, fcntl.LOCK_UN, 1, byte)
