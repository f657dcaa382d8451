"""The file of a log: it is moved aside when it is full, and old ones are removed or compressed.

Names, order and limits are those of gopkg.in/natefinch/lumberjack, which upstream writes with. All of it blocks.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from msgspec import Struct

from steersman.machinery.private_files import make_folders
from steersman.machinery.values.times import unix_now

_MEGABYTE: Final = 1 << 20
_STAMP: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}", re.ASCII)
_LAYOUT: Final = "%Y-%m-%dT%H-%M-%S.%f"
_COMPRESSED: Final = ".gz"
_PERMISSIONS: Final = 0o777


class Limits(Struct, frozen=True, kw_only=True):
    """`size` in MiB, 0 for any; `age` of old files in days and `backups`, their number, 0 for any."""

    size: int = 100
    age: int = 366
    backups: int = 100
    compress: bool = False


class LogFile:
    """A file that lines are appended to. Used by one thread."""

    def __init__(self, path: Path, limits: Limits, later: Callable[[Callable[[], None]], object]) -> None:
        """`later` runs what may take long, beside the writing. Raises OSError where no file can be made."""
        self._path: Final = path
        self._limits: Final = limits
        self._later: Final = later
        self._most: Final = limits.size * _MEGABYTE
        self._size = 0
        self._cleaning: Final = threading.Lock()
        self._to_clean = False
        make_folders(path.parent)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_RDWR | os.O_CLOEXEC, 0o600))
        self._file = -1

    def write(self, lines: Sequence[bytes]) -> Iterator[tuple[int, OSError]]:
        """Appends lines, as many at once as fit; the numbers of those that could not be written, and why.

        Of a line that could be written in part only nothing stays.
        """
        at = 0
        while at < len(lines):
            try:
                at += self._append(lines[at : self._end(lines, at)])
            except OSError as error:
                yield at, error
                at += 1

    def _end(self, lines: Sequence[bytes], at: int) -> int:
        """Up to which of the lines from this one on the file has room, for which it makes room. Raises OSError."""
        size = len(lines[at])
        if self._most and size > self._most:
            raise OSError(f"write length {size} exceeds maximum file size {self._most}")
        if self._file < 0:
            self._open(size)
        if not self._has_room(size):
            self._rotate()
        end = at + 1
        while end < len(lines) and self._has_room(size + len(lines[end])):
            size += len(lines[end])
            end += 1
        return end

    def close(self) -> None:
        """Closes the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _has_room(self, size: int) -> bool:
        return not self._most or self._size + size <= self._most

    def _append(self, lines: Sequence[bytes]) -> int:
        """How many lines were written, 1 at least. Raises OSError, and then none was."""
        data = b"".join(lines)
        written = os.write(self._file, data)
        self._size += written
        if written == len(data):
            return len(lines)
        done = whole = 0
        while whole + len(lines[done]) <= written:
            whole += len(lines[done])
            done += 1
        with contextlib.suppress(OSError):  # a device cannot be cut
            os.ftruncate(self._file, self._size - written + whole)
            self._size += whole - written
        if not done:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return done

    def _open(self, size: int) -> None:
        """Opens the file there is, or a new one where it is full. Raises OSError."""
        self._clean()
        try:
            found = self._path.stat()
        except FileNotFoundError:
            self._open_new()
            return
        if self._most and found.st_size + size >= self._most:
            self._rotate()
            return
        self._file = os.open(self._path, os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC)
        self._size = found.st_size
        if _ends_in_a_line(self._path, found.st_size):
            try:
                self._size += os.write(self._file, b"\n")
            except OSError:
                self.close()
                raise

    def _rotate(self) -> None:
        self.close()
        self._open_new()
        self._clean()

    def _open_new(self) -> None:
        """Opens a new file, of the mode of the one that was there, which is moved aside. Raises OSError."""
        mode = 0o600
        make_folders(self._path.parent, 0o755)
        with contextlib.suppress(FileNotFoundError):
            mode = self._path.stat().st_mode & _PERMISSIONS
            self._path.rename(self._aside())
        flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(self._path, flags, mode)
        self._size = 0

    def _aside(self) -> Path:
        """A name that nothing has yet: the file may be full twice in a millisecond, and clocks are set back."""
        path, when = self._path, datetime.fromtimestamp(unix_now(), UTC)
        while True:
            target = path.with_name(f"{path.stem}-{when.strftime(_LAYOUT)[:-3]}{path.suffix}")
            if not (target.exists() or target.with_name(target.name + _COMPRESSED).exists()):
                return target
            when += timedelta(milliseconds=1)

    def _clean(self) -> None:
        limits = self._limits
        if self._most and (limits.backups or limits.age or limits.compress) and not self._to_clean:
            self._to_clean = True
            self._later(self._clean_up)

    def _clean_up(self) -> None:
        """Looks after old files, one at a time: two that compress the same file would lose it."""
        with self._cleaning:
            self._to_clean = False
            clean(self._path, self._limits)


def _ends_in_a_line(path: Path, size: int) -> bool:
    """Whether whoever wrote the file was killed within a line, which the next one must not go on with."""
    if not size:
        return False
    try:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except OSError:  # it is no file, or may be written only
        return False


def clean(path: Path, limits: Limits) -> None:
    """Removes files that were moved aside from `path` and are too many or too old, and compresses the others."""
    old = _moved_aside(path)
    too_many = {}
    if limits.backups:
        names = sorted({_plain(each) for each in old}, key=lambda name: old_stamp(path, name) or _NEVER, reverse=True)
        too_many = dict.fromkeys(names[limits.backups :])
    oldest = datetime.fromtimestamp(unix_now(), UTC) - timedelta(days=limits.age) if limits.age else None
    for each in old:
        stamp = old_stamp(path, _plain(each))
        is_old = oldest is not None and stamp is not None and stamp < oldest
        with contextlib.suppress(OSError):
            if is_old or _plain(each) in too_many:
                each.unlink()
            elif limits.compress and each.suffix != _COMPRESSED:
                _compress(each)


_NEVER: Final = datetime.min.replace(tzinfo=UTC)


def _moved_aside(path: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return [each for each in path.parent.iterdir() if old_stamp(path, _plain(each)) is not None and each.is_file()]
    return []


def _plain(each: Path) -> str:
    return each.name.removesuffix(_COMPRESSED)


def old_stamp(path: Path, name: str) -> datetime | None:
    """When the file of this name was moved aside from `path`; None if it was not."""
    before, after = f"{path.stem}-", path.suffix
    if not (name.startswith(before) and name.endswith(after)):
        return None
    text = name[len(before) : len(name) - len(after)]
    if not _STAMP.fullmatch(text):
        return None
    try:
        return datetime.strptime(text, _LAYOUT).replace(tzinfo=UTC)
    except ValueError:
        return None


def _compress(path: Path) -> None:
    """Puts a compressed file in the place of one. Raises OSError."""
    target = path.with_name(path.name + _COMPRESSED)
    mode = path.stat().st_mode & _PERMISSIONS
    try:
        with (
            path.open("rb") as source,
            open(os.open(target, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, mode), "wb") as file,
            gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6) as packed,
        ):
            shutil.copyfileobj(source, packed, _MEGABYTE)
    except OSError:
        target.unlink(missing_ok=True)
        raise
    path.unlink()
