"""Values read from files, such as certificates and keys, that are read again when the files have changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Final, Generic, TypeVar

T = TypeVar("T")

CHECK_EVERY: Final = 2.0
"""Seconds between two checks of the same files for changes."""

Stamp = tuple[int, int, int]
"""Modification time in nanoseconds, size in bytes, and inode of a file."""


class FollowedFiles(Generic[T]):
    """Value read from files. `current` reads the files again if they have changed since.

    While changed files cannot be used, the previous value stays, and each check tries to read them again.
    """

    __slots__ = ("_accepted", "_checked", "_names", "_read", "_refused", "_refused_stamps", "_stamps", "value")

    value: T
    """Value that was read last."""

    def __init__(
        self,
        names: Sequence[str],
        read: Callable[[], T],
        refused: Callable[[Exception], None],
        *,
        accepted: Callable[[], None] | None = None,
        first: Callable[[], T] | None = None,
    ) -> None:
        """Read the files `names` with `first` (by default with `read`). Raises what the reader raises.

        `read` also reads the files again later. After a changed version of them was read, `accepted` is called. If a
        changed version cannot be used, `refused` is called once with the OSError or ValueError.
        """
        self._names = tuple(names)
        self._read = read
        self._refused = refused
        self._accepted = accepted
        self._checked = monotonic()
        # Before the files are read, so that a change meanwhile is noticed later.
        self._stamps = self._refused_stamps = self._current_stamps()
        self.value = (first or read)()

    def current(self) -> T:
        """Return the value. If the last check of the files is over `CHECK_EVERY` seconds ago, check them first."""
        if monotonic() - self._checked >= CHECK_EVERY:
            self.refresh()
        return self.value

    def refresh(self) -> None:
        """Read the files again if they have changed."""
        self._checked = monotonic()
        stamps = self._current_stamps()
        if stamps == self._stamps:
            return
        try:
            self.value = self._read()
        except (OSError, ValueError) as error:
            if stamps != self._refused_stamps:
                self._refused(error)
            self._refused_stamps = stamps
            return
        self._stamps = self._refused_stamps = stamps
        if self._accepted is not None:
            self._accepted()

    def _current_stamps(self) -> tuple[Stamp | None, ...]:
        return tuple(map(stamp, self._names))


def stamp(name: str | os.PathLike[str]) -> Stamp | None:
    """Return a stamp that changes when the file is replaced or written; None if the file cannot be found or
    accessed.
    """
    try:
        status = os.stat(name)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
