"""Members of tar and zip archives, read as streams and never written to disk."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, Protocol

from steersman.dumps.errors import DumpError
from steersman.work.patterns import late_pattern

MOST_UNPACKED: Final = 8 << 30
"""Most bytes of an archive once it is unpacked, including members that are skipped, such as logs."""
MOST_MEMBERS: Final = 100_000
"""Most members of an archive."""
_BLOCK: Final = 512
_PIECE: Final = 1 << 20
"""Bytes that are unpacked at a time."""
_MOST_NAME: Final = 1 << 16
"""Most bytes of the header that has a member's long name."""
_REGULAR: Final = frozenset({b"0", b"\0", b"7"})
"""Types of members that are files. Links, devices and folders are skipped."""
_LONG_NAME: Final = frozenset({b"L", b"x"})
"""Types of headers that may have the name of the next member: of GNU, and of POSIX."""
GZIP: Final = b"\x1f\x8b"
ZIP: Final = b"PK\x03\x04"
_LENGTH: Final = late_pattern(rb"[0-9]{1,6}")
_DAMAGED: Final = (
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,
    RuntimeError,
    EOFError,
    ValueError,
    struct.error,
)
"""Errors of the standard library for a damaged zip archive, or one that it cannot read."""
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Methods of compression that can be unpacked in pieces: `zipfile` unpacks 4 KiB of bzip2 to some GiB in one call."""
_GZIP_WINDOW: Final = 31
"""zlib's number for data with gzip's header."""


class Bytes(Protocol):
    """Source of bytes."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none at the end."""
        ...


class Member(NamedTuple):
    """A file of an archive: its name, its size, and the source of its bytes, which is valid until the next member."""

    name: str
    size: int
    content: Bytes


class Unpacked:
    """Bytes of a gzip file, unpacked as they are read, up to `MOST_UNPACKED`. Raises DumpError."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self._inflater = zlib.decompressobj(_GZIP_WINDOW)
        self._rest = b""
        self._left = MOST_UNPACKED

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none at the end."""
        pieces: list[bytes] = []
        missing = size
        while missing > 0 and (piece := self._piece(min(missing, _PIECE))):
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)

    def _piece(self, size: int) -> bytes:
        while True:
            try:
                found = self._inflater.decompress(self._rest, size)
            except zlib.error as error:
                raise DumpError(f"{self._path}: damaged gzip data: {error}") from None
            self._rest = self._inflater.unconsumed_tail
            if found:
                self._left -= len(found)
                if self._left < 0:
                    raise DumpError(f"{self._path}: unpacks to more than {MOST_UNPACKED >> 30} GiB")
                return found
            if self._inflater.eof:  # of one of several parts
                self._rest = self._inflater.unused_data or self._file.read(_PIECE)
                if not self._rest.startswith(GZIP):
                    return b""
                self._inflater = zlib.decompressobj(_GZIP_WINDOW)
            elif not self._rest:
                self._rest = self._file.read(_PIECE)
                if not self._rest:
                    raise DumpError(f"{self._path}: the gzip data ends early")


class _Part:
    """The bytes of one member of a tar file."""

    def __init__(self, path: Path, source: Bytes, size: int) -> None:
        self._path = path
        self._source = source
        self.left = size

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes of the member, none at its end. Raises DumpError."""
        found = self._source.read(min(size, self.left))
        if not found and self.left and size:
            raise DumpError(f"{self._path}: the archive ends early")
        self.left -= len(found)
        return found


def is_tar(head: bytes) -> bool:
    """Return True if bytes are the beginning of a tar file."""
    return head[257:262] == b"ustar"


def tar_members(path: Path, source: Bytes) -> Iterator[Member]:
    """Yield the files of a tar archive. Raises DumpError."""
    name = ""
    for _ in range(MOST_MEMBERS):
        header = source.read(_BLOCK)
        if len(header) < _BLOCK or not header.strip(b"\0"):
            return
        size, kind = _size(path, header), header[156:157]
        part = _Part(path, source, size)
        if kind in _LONG_NAME:
            if size > _MOST_NAME:
                raise DumpError(f"{path}: a header of {size} bytes in the archive")
            name = _long_name(kind, part.read(size)) or name
        else:
            if kind in _REGULAR:
                yield Member(name or _short_name(header), size, part)
            name = ""
        _skip(part, -size % _BLOCK)
    raise DumpError(f"{path}: more than {MOST_MEMBERS} members")


def _skip(part: _Part, padding: int) -> None:
    """Read the rest of a member, and the padding behind it."""
    while part.left:
        part.read(_PIECE)
    part.left = padding
    while part.left:
        part.read(padding)


def _size(path: Path, header: bytes) -> int:
    field = header[124:136]
    if field[0] & 0x80:  # binary, for 8 GiB and more
        size = int.from_bytes(field[1:], "big")
    else:
        try:
            size = int(field.strip(b" \0") or b"0", 8)
        except ValueError:
            raise DumpError(f"{path}: damaged archive") from None
    if not 0 <= size <= MOST_UNPACKED:
        raise DumpError(f"{path}: a member of {size} bytes")
    return size


def _short_name(header: bytes) -> str:
    name, prefix = (header[at : at + length].split(b"\0", 1)[0] for at, length in ((0, 100), (345, 155)))
    whole = prefix + b"/" + name if prefix and header[257:263] == b"ustar\0" else name
    return whole.decode(errors="replace")


def _long_name(kind: bytes, data: bytes) -> str:
    """Return the name in a header of GNU or POSIX, "" if the header has none."""
    if kind == b"L":
        return data.split(b"\0", 1)[0].decode(errors="replace")
    while data:
        length, space, _ = data.partition(b" ")
        if not space or not _LENGTH.fullmatch(length) or not len(length) < int(length) <= len(data):
            return ""
        record, data = data[len(length) + 1 : int(length) - 1], data[int(length) :]
        if record.startswith(b"path="):
            return record[5:].decode(errors="replace")
    return ""


def zip_members(path: Path) -> Iterator[Member]:
    """Yield the files of a zip archive. Raises DumpError."""
    left = MOST_UNPACKED
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if len(entries) > MOST_MEMBERS:
                raise DumpError(f"{path}: more than {MOST_MEMBERS} members")
            for each in entries:
                left -= each.file_size
                if left < 0:
                    raise DumpError(f"{path}: unpacks to more than {MOST_UNPACKED >> 30} GiB")
                if each.compress_type not in _METHODS:
                    raise DumpError(f"{path}: {each.filename}: only deflated members of zip archives are read")
                if not each.is_dir():
                    with archive.open(each) as content:
                        yield Member(each.filename, each.file_size, _ZipPart(path, content))
    except _DAMAGED as error:
        raise _damaged(path, error) from None


class _ZipPart:
    """The bytes of one member of a zip file."""

    def __init__(self, path: Path, source: Bytes) -> None:
        self._path = path
        self._source = source

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes of the member, none at its end. Raises DumpError, OSError."""
        try:
            return self._source.read(size)
        except _DAMAGED as error:
            raise _damaged(self._path, error) from None


def _damaged(path: Path, error: Exception) -> DumpError:
    return DumpError(f"{path}: damaged zip archive: {str(error) or 'it ends early'}")
