"""Files that are read anew when they have changed, such as certificates, keys and authorities."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Final, Generic, TypeVar

T = TypeVar("T")

CHECK_EVERY: Final = 2.0
"""Seconds between two looks at the same files."""

Stamp = tuple[int, int, int]


class FollowedFiles(Generic[T]):
    """The value that was read from files, which is read anew when it is asked for and the files have changed.

    Files that cannot be used leave the value as it was, and are tried again with each look.
    """

    __slots__ = ("_accepted", "_checked", "_names", "_read", "_refused", "_refused_stamps", "_stamps", "value")

    value: T
    """The value that was read last."""

    def __init__(
        self,
        names: Sequence[str],
        read: Callable[[], T],
        refused: Callable[[Exception], None],
        *,
        accepted: Callable[[], None] | None = None,
        first: Callable[[], T] | None = None,
    ) -> None:
        """Read the files by `first`, or else by `read`, which reads them anew later. Raises what that raises.

        When files have changed, `accepted` is called once they are read. `refused` is called once for each change with
        the OSError or ValueError for which they cannot be used.
        """
        self._names = tuple(names)
        self._read = read
        self._refused = refused
        self._accepted = accepted
        self._checked = monotonic()
        self._stamps = self._refused_stamps = self._look()  # before they are read: a change meanwhile is seen later
        self.value = (first or read)()

    def current(self) -> T:
        """Return the value, after a look at the files if the last one was long ago."""
        if monotonic() - self._checked >= CHECK_EVERY:
            self.look()
        return self.value

    def look(self) -> None:
        """Read the files anew if they have changed."""
        self._checked = monotonic()
        stamps = self._look()
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

    def _look(self) -> tuple[Stamp | None, ...]:
        return tuple(map(stamp, self._names))


def stamp(name: str | os.PathLike[str]) -> Stamp | None:
    """Return what changes when a file is replaced or written; None for one that is not there or hidden."""
    try:
        status = os.stat(name)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
