"""Log file with rotation: a full file is renamed, and old files are removed or compressed.

Names, order and limits are those of gopkg.in/natefinch/lumberjack, which upstream uses. All functions block.
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
from steersman.work.patterns import late_pattern

MEGABYTE: Final = 1 << 20
_STAMP: Final = late_pattern(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}", re.ASCII)
_LAYOUT: Final = "%Y-%m-%dT%H-%M-%S.%f"
_COMPRESSED: Final = ".gz"
_PERMISSIONS: Final = 0o777


class Limits(Struct, frozen=True, kw_only=True):
    """Limits of a log file: `size` in MiB, `age` of old files in days, and number of `backups`; 0 means no limit."""

    size: int = 100
    age: int = 366
    backups: int = 100
    compress: bool = False


class LogFile:
    """A rotated log file, used by one thread."""

    def __init__(self, path: Path, limits: Limits, later: Callable[[Callable[[], None]], object]) -> None:
        """Create the file if it does not exist; `later` runs slow work in another thread. Raises OSError."""
        self._path: Final = path
        self._limits: Final = limits
        self._later: Final = later
        self._most: Final = limits.size * MEGABYTE
        self._size = 0
        self._cleaning: Final = threading.Lock()
        self._to_clean = False
        make_folders(path.parent)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_RDWR | os.O_CLOEXEC, 0o600))
        self._file = -1

    def write(self, lines: Sequence[bytes]) -> Iterator[tuple[int, OSError]]:
        """Append lines, as many as possible per system call. Yields (index, error) of lines that could not be written.

        A partly written line is removed again.
        """
        at = 0
        while at < len(lines):
            try:
                at += self._append(lines[at : self._end(lines, at)])
            except OSError as error:
                yield at, error
                at += 1

    def _end(self, lines: Sequence[bytes], at: int) -> int:
        """Return the index after the last line that fits into the file; rotates the file first if necessary. Raises
        OSError.
        """
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
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _has_room(self, size: int) -> bool:
        return not self._most or self._size + size <= self._most

    def _append(self, lines: Sequence[bytes]) -> int:
        """Return the number of written lines, at least 1. Raises OSError if no line was written."""
        data = b"".join(lines)
        written = os.write(self._file, data)
        self._size += written
        if written == len(data):
            return len(lines)
        done = whole = 0
        while whole + len(lines[done]) <= written:
            whole += len(lines[done])
            done += 1
        with contextlib.suppress(OSError):  # a device cannot be truncated
            os.ftruncate(self._file, self._size - written + whole)
            self._size += whole - written
        if not done:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return done

    def _open(self, size: int) -> None:
        """Open the existing file, or a new one if the existing file is full. Raises OSError."""
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
        """Rename the existing file, and open a new one with the same mode. Raises OSError."""
        mode = 0o600
        make_folders(self._path.parent, 0o755)
        with contextlib.suppress(FileNotFoundError):
            mode = self._path.stat().st_mode & _PERMISSIONS
            self._path.rename(self._aside())
        flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(self._path, flags, mode)
        self._size = 0

    def _aside(self) -> Path:
        """Return an unused name; two rotations may fall into one millisecond, and clocks may be set back."""
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
        """Clean up old files, one clean-up at a time: two that compress the same file would lose it."""
        with self._cleaning:
            self._to_clean = False
            clean(self._path, self._limits)


def _ends_in_a_line(path: Path, size: int) -> bool:
    """Return True if the file's last line is incomplete, since its writer was killed; the next line must not continue
    it.
    """
    if not size:
        return False
    try:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except OSError:  # not a regular file, or not readable
        return False


def clean(path: Path, limits: Limits) -> None:
    """Remove renamed files of `path` that are too many or too old, and compress the others."""
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
    """Return the time at which the file `name` was renamed from `path`; None for other files."""
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
    """Replace a file by a compressed one. Raises OSError."""
    target = path.with_name(path.name + _COMPRESSED)
    mode = path.stat().st_mode & _PERMISSIONS
    try:
        with (
            path.open("rb") as source,
            open(os.open(target, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, mode), "wb") as file,
            gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6) as packed,
        ):
            shutil.copyfileobj(source, packed, MEGABYTE)
    except OSError:
        target.unlink(missing_ok=True)
        raise
    path.unlink()
