"""The program `tar`, as `kubectl cp` uses it: archives are written and read file by file.

Headers are parsed here and not by `tarfile`, whose parsing of extended headers takes quadratic time in some supported
versions of Python (CVE-2024-6232).
"""

from __future__ import annotations

import posixpath
import tarfile
from collections import deque
from typing import Final

from msgspec import Struct, field

from steersman.net.ascii import is_digits
from steersman.nodes.shell.effects import (
    MOST_BUFFERED,
    MOST_FILE_BYTES,
    MOST_PATH,
    Buffer,
    Execution,
    Link,
    NoSpace,
    OutOfMemory,
    Read,
    Work,
    World,
    Write,
    bytes_of_file,
)
from steersman.nodes.shell.paths import absolute, may_be_folder, tree
from steersman.work.patterns import late_pattern

_MOST_ARCHIVE: Final = 4 * MOST_FILE_BYTES
"""Bytes of an archive that is read: files that fit into a container, with their headers."""
_BLOCK: Final = tarfile.BLOCKSIZE
_MOST_SAID: Final = 64 << 10
"""Bytes of an extended header."""
_RECORDS: Final = 256
"""Records of an extended header that are parsed between two effects."""
_MOST_DIGITS: Final = 20
_OCTAL: Final = late_pattern(rb"[ \0]*+([0-7]*+)[ \0]*+")
_FULL: Final = b"tar: write error: No space left on device\n"
_IGNORED: Final = frozenset("mpovhk")
_WITHOUT_EFFECT: Final = frozenset({"--no-same-permissions", "--no-same-owner", "--overwrite"})


class _Malformed(Exception):
    """The data is not a valid archive."""


class _Options(Struct):
    action: str = ""
    archive: str = "-"
    folder: str = ""
    paths: list[str] = field(default_factory=list)


class _Member(Struct):
    """File, folder or link in an archive."""

    name: str
    kind: bytes
    target: str
    mode: int
    start: int
    size: int


def tar(world: World, words: list[str]) -> Execution:
    """`tar cf - PATH...`, `tar xf - [-C FOLDER]`, `tar tf -`; the archive may also be a file in the container."""
    options, why = _options(words)
    if why:
        yield Write(2, f"tar: {why}\n".encode(errors="replace"))
        return 1
    folder = absolute(world, options.folder) if options.folder else world.folder
    yield from world.spend(files=world.many_files)
    if not may_be_folder(world, folder):
        why = f"can't change directory to '{options.folder}': No such file or directory"
        yield Write(2, f"tar: {why}\n".encode(errors="replace"))
        return 1
    if options.action == "c":
        return (yield from _create(world, options, folder))
    if options.archive != "-":
        data = world.read(absolute(world, options.archive))
        return (yield from _take_apart(world, data, folder, lists=options.action == "t"))
    taken = bytearray()
    held = 0
    try:
        while isinstance(piece := (yield Read()), bytes):
            if not world.memory.reserve(len(piece)):
                raise OutOfMemory
            held += len(piece)
            taken += piece
            yield from world.spend(len(piece))
            if len(taken) > _MOST_ARCHIVE:
                return (yield from _take_apart(world, None, folder, lists=False))
        return (yield from _take_apart(world, bytes(taken), folder, lists=options.action == "t"))
    finally:
        world.memory.release(held)


def _options(words: list[str]) -> tuple[_Options, str]:
    """Parse the arguments. Return the options, and an error message or ""."""
    options, rest = _Options(), deque(words)
    if rest and not rest[0].startswith("-"):
        rest[0] = f"-{rest[0]}"
    while rest:
        word = rest.popleft()
        if word == "--":
            options.paths += rest
            break
        if not word.startswith("-") or word == "-":
            options.paths.append(word)
        elif word.startswith("--"):
            if word not in _WITHOUT_EFFECT:
                return options, f"unrecognized option '{word}'"
        else:
            for letter in word[1:]:
                if letter in "cxt":
                    options.action = letter
                elif letter in "fC":
                    if not rest:
                        return options, f"option requires an argument -- '{letter}'"
                    if letter == "f":
                        options.archive = rest.popleft()
                    else:
                        options.folder = rest.popleft()
                elif letter not in _IGNORED:
                    return options, f"unrecognized option: {letter}"
    return options, "" if options.action else "must specify one of -c, -x, -t"


# Extracting


def _take_apart(world: World, data: bytes | None, folder: str, *, lists: bool) -> Execution:
    """Extract the files of an archive below a folder, or list them."""
    if data is None:
        yield Write(2, b"tar: short read\n")
        return 1
    code, room = 0, world.free_bytes(folder)
    yield from world.spend(files=world.many_files)
    try:
        at = 0
        while (found := (yield from _next_member(world, data, at))) is not None:
            member, at = found
            yield from world.spend(member.size, lines=128)
            if lists:
                yield Write(1, f"{member.name}\n".encode(errors="surrogateescape"))
                continue
            made = _extracted(world, member, data, folder)
            if made is None:
                yield Write(2, f"tar: can't create {member.name}: Operation not permitted\n".encode(errors="replace"))
                code = 1
                continue
            path, contents = made
            room -= bytes_of_file(path, contents) - bytes_of_file(path, world.files.get(path))
            if room < 0 or len(path) > MOST_PATH:
                yield Write(2, f"tar: {member.name}: No space left on device\n".encode(errors="replace"))
                return 1
            world.files[path] = contents
    except NoSpace:
        yield Write(2, f"tar: {member.name}: No space left on device\n".encode(errors="replace"))
        return 1
    except _Malformed:
        yield Write(2, b"tar: invalid tar magic\n")
        return 1
    return code


def _extracted(world: World, member: _Member, data: bytes, folder: str) -> tuple[str, bytes] | None:
    """Return the path and content of an extracted member; None for devices and the like."""
    path = posixpath.normpath(posixpath.join(folder, member.name.lstrip("/")))
    path = "/" + path.lstrip("/")
    if member.kind in _FILES:
        return path, data[member.start : member.start + member.size]
    if member.kind == tarfile.DIRTYPE:
        return path.rstrip("/") + "/", b""
    if member.kind == tarfile.SYMTYPE:
        return path, Link(member.target.encode(errors="surrogateescape"))
    if member.kind == tarfile.LNKTYPE:
        linked = world.files.get(posixpath.normpath(posixpath.join(folder, member.target.lstrip("/"))))
        return None if linked is None else (path, linked)
    return None


_FILES: Final = frozenset({tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE, tarfile.GNUTYPE_SPARSE})


def _next_member(world: World, data: bytes, at: int) -> Work[tuple[_Member, int] | None]:
    """Parse the headers of the member at a position. Return the member and the position after it; None at the end.

    Raises _Malformed.
    """
    said: dict[str, str] = {}
    while True:
        header = data[at : at + _BLOCK]
        if not header.strip(b"\0"):
            if at == 0 and not header:
                raise _Malformed
            return None
        if len(header) < _BLOCK:
            raise _Malformed
        _check(header)
        kind, start = header[156:157], at + _BLOCK
        size = _number(header[124:136])
        if kind in (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK):
            if size > _MOST_SAID or start + size > len(data):
                raise _Malformed
            text = data[start : start + size]
            if kind == tarfile.XHDTYPE:
                said.update((yield from _records(world, text)))
            elif kind != tarfile.XGLTYPE:
                name = "path" if kind == tarfile.GNUTYPE_LONGNAME else "linkpath"
                said[name] = _text(text)
            at = start + size + -size % _BLOCK
            yield from world.spend(size, lines=32)
            continue
        if is_digits(size_text := said.get("size", "")):
            if len(size_text) > _MOST_DIGITS:
                raise _Malformed
            size = int(size_text)
        size = 0 if kind in (tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE) else size
        if start + size > len(data):
            raise _Malformed
        name = _text(header[:100])
        if header[257:262] == b"ustar" and header[262:263] == b"\0" and (prefix := _text(header[345:500])):
            name = f"{prefix}/{name}"
        name, target = said.get("path", name), said.get("linkpath", _text(header[157:257]))
        if kind == tarfile.AREGTYPE and name.endswith("/"):
            kind = tarfile.DIRTYPE
        mode = _number(header[100:108]) & 0o7777
        return _Member(name, kind, target, mode, start, size), start + size + -size % _BLOCK


def _check(header: bytes) -> None:
    """Verify the checksum of a header. Raises _Malformed."""
    checksum = _number(header[148:156])
    if sum(header[:148]) + 256 + sum(header[156:]) != checksum:
        raise _Malformed


def _number(text: bytes) -> int:
    """Parse a number of a header, in octal or (GNU) binary; never negative. Raises _Malformed."""
    if text[:1] == b"\x80":
        return int.from_bytes(text[1:], "big")
    match = _OCTAL.fullmatch(text)
    if match is None:
        raise _Malformed
    return int(match[1] or b"0", 8)


def _text(data: bytes) -> str:
    return data.partition(b"\0")[0].decode(errors="surrogateescape")


def _records(world: World, data: bytes) -> Work[dict[str, str]]:
    """Parse the relevant records (`LENGTH NAME=VALUE`) of an extended header. Raises _Malformed."""
    records: dict[str, str] = {}
    at = number = 0
    while at < len(data) and data[at : at + 1] != b"\0":
        space = data.find(b" ", at, at + _MOST_DIGITS)
        digits = data[at:space].decode("latin-1")
        if space < 0 or not is_digits(digits):
            raise _Malformed
        end = at + int(digits)
        if not space < end <= len(data) or data[end - 1 : end] != b"\n":
            raise _Malformed
        name, _, value = data[space + 1 : end - 1].partition(b"=")
        if name in (b"path", b"linkpath", b"size"):
            records[name.decode()] = value.decode(errors="surrogateescape")
        at = end
        number += 1
        if not number % _RECORDS:
            yield from world.spend(lines=_RECORDS)
    return records


# Creating


def _create(world: World, options: _Options, folder: str) -> Execution:
    """Create an archive of the files on some paths and below them."""
    code = 0
    taken = None if options.archive == "-" else Buffer(world.memory)
    for path in options.paths:
        yield from world.spend(files=2 * world.many_files + 64)
        paths = yield from _files_below(world, posixpath.normpath(posixpath.join(folder, path)), path)
        yield from world.spend(lines=len(paths))
        if not paths:
            yield Write(2, f"tar: {path}: No such file or directory\n".encode(errors="replace"))
            code = 1
        elif path.startswith("/"):
            yield Write(2, b"tar: removing leading '/' from member names\n")
        for name, place in paths:
            piece = _member(name.lstrip("/"), world.files.get(place), int(world.now()))
            yield from world.spend(len(piece), lines=256)
            if taken is None:
                yield Write(1, piece)
                continue
            if len(taken.data) + len(piece) > MOST_BUFFERED:
                yield Write(2, _FULL)
                return 1
            taken.add(piece)
    end = bytes(2 * _BLOCK)
    if taken is None:
        yield Write(1, end)
    elif not world.put(absolute(world, options.archive), bytes(taken.data) + end):
        yield Write(2, _FULL)
        return 1
    if code:
        yield Write(2, b"tar: error exit delayed from previous errors\n")
    return code


def _files_below(world: World, place: str, path: str) -> Work[list[tuple[str, str]]]:
    """Return the files on a path and below it: pairs of the name in the archive and the path in the container."""
    if place in world.files:
        return [(path, place)]
    inside = yield from tree(world, place)
    if not inside and not world.is_folder(place):
        return []
    start = len(place.rstrip("/")) + 1
    return [(path, place), *((posixpath.join(path, each[start:]), each) for each in inside)]


def _member(name: str, contents: bytes | None, now: int) -> bytes:
    """Return the bytes of a member with its header; `contents` None makes a folder."""
    info = tarfile.TarInfo(name or ".")
    info.mtime, info.uname, info.gname = now, "root", "root"
    if contents is None:
        info.type, info.mode = tarfile.DIRTYPE, 0o755
        return info.tobuf(tarfile.GNU_FORMAT)
    if isinstance(contents, Link):
        info.type, info.linkname = tarfile.SYMTYPE, contents.decode(errors="surrogateescape")
        return info.tobuf(tarfile.GNU_FORMAT)
    info.size = len(contents)
    return info.tobuf(tarfile.GNU_FORMAT) + contents + bytes(-len(contents) % _BLOCK)
