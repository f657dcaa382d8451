"""`tar` in simulated containers, as `kubectl cp` uses it: archives of their files, file by file."""

from __future__ import annotations

import posixpath
import tarfile
from collections.abc import Generator
from dataclasses import dataclass, field
from io import BytesIO
from typing import Final

from steersman.nodes.shell.effects import (
    MOST_FILE_BYTES,
    Answer,
    Course,
    Effect,
    NoSpace,
    ReadLine,
    Wait,
    World,
    Write,
    taken_by,
)
from steersman.nodes.shell.paths import absolute, folders_of

_MOST_ARCHIVE: Final = 4 * MOST_FILE_BYTES
"""Bytes that are read: files that fit into a container, with their headers."""
_AT_ONCE: Final = 8
"""Files that are worked on before others have their turn."""
_IGNORED: Final = frozenset("mpovhk")
_WITHOUT_EFFECT: Final = frozenset({"--no-same-permissions", "--no-same-owner", "--overwrite"})


@dataclass(slots=True)
class _Options:
    action: str = ""
    archive: str = "-"
    folder: str = ""
    paths: list[str] = field(default_factory=list)


def tar(world: World, words: list[str]) -> Course:
    """`tar cf - PATH...`, `tar xf - [-C FOLDER]`, `tar tf -`: an archive may also be one of the files."""
    options, why = _options(words)
    if why:
        yield Write(2, f"tar: {why}\n".encode())
        return 1
    folder = absolute(world, options.folder) if options.folder else world.folder
    if options.action == "c":
        return (yield from _create(world, options, folder))
    data = yield from _read(world, options.archive)
    if data is None:
        yield Write(2, b"tar: short read\n")
        return 1
    return (yield from _take_apart(world, data, folder, lists=options.action == "t"))


def _options(words: list[str]) -> tuple[_Options, str]:
    """What is asked for, or why it is not understood."""
    options, rest = _Options(), list(words)
    if rest and not rest[0].startswith("-"):
        rest[0] = f"-{rest[0]}"
    while rest:
        word = rest.pop(0)
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
                        options.archive = rest.pop(0)
                    else:
                        options.folder = rest.pop(0)
                elif letter not in _IGNORED:
                    return options, f"unrecognized option: {letter}"
    return options, "" if options.action else "must specify one of -c, -x, -t"


def _read(world: World, archive: str) -> Generator[Effect, Answer, bytes | None]:
    """An archive, None where there is none or too much of it."""
    if archive != "-":
        return world.files.get(absolute(world, archive))
    taken = bytearray()
    while isinstance(line := (yield ReadLine()), bytes):
        taken += line
        if len(taken) > _MOST_ARCHIVE:
            return None
    world.handled(len(taken))
    return bytes(taken)


def _take_apart(world: World, data: bytes, folder: str, *, lists: bool) -> Course:
    """Puts the files of an archive below a folder, or lists them."""
    code, room = 0, world.room(folder)
    try:
        with tarfile.open(fileobj=BytesIO(data), mode="r|") as archive:
            for number, member in enumerate(archive):
                if number % _AT_ONCE == _AT_ONCE - 1:
                    yield Wait(0)
                if lists:
                    yield Write(1, f"{member.name}\n".encode(errors="surrogateescape"))
                elif member.isfile():
                    room -= _put(world, archive, member, folder, room)
                    if room < 0:
                        yield Write(2, f"tar: {member.name}: No space left on device\n".encode(errors="replace"))
                        return 1
                elif not member.isdir():
                    yield Write(
                        2, f"tar: can't create {member.name}: Operation not permitted\n".encode(errors="replace")
                    )
                    code = 1
    except (tarfile.TarError, ValueError, RecursionError):
        yield Write(2, b"tar: invalid tar magic\n")
        return 1
    return code


def _put(world: World, archive: tarfile.TarFile, member: tarfile.TarInfo, folder: str, room: int) -> int:
    """Puts a file where there is room for it; how much more of that it takes."""
    if member.size > MOST_FILE_BYTES:
        return member.size
    source = archive.extractfile(member)
    contents = b"" if source is None else source.read(member.size)
    path = posixpath.normpath(posixpath.join(folder, member.name.lstrip("/")))
    more = taken_by(path, contents) - taken_by(path, world.files.get(path))
    if more <= room:
        try:
            world.files[path] = contents
        except NoSpace:
            return room + 1
    return more


def _create(world: World, options: _Options, folder: str) -> Course:
    """Writes the files on some paths, and below them."""
    code, number = 0, 0
    taken: bytearray | None = None if options.archive == "-" else bytearray()
    for path in options.paths:
        found = _found(world, posixpath.normpath(posixpath.join(folder, path)), path)
        if not found:
            yield Write(2, f"tar: {path}: No such file or directory\n".encode(errors="replace"))
            code = 1
        elif path.startswith("/"):
            yield Write(2, b"tar: removing leading '/' from member names\n")
        for name, place in found:
            piece = _member(name.lstrip("/"), world.files.get(place), int(world.now()))
            world.handled(len(piece))
            if taken is None:
                yield Write(1, piece)
            else:
                taken += piece
            number += 1
            if not number % _AT_ONCE:
                yield Wait(0)
    end = bytes(2 * tarfile.BLOCKSIZE)
    if taken is None:
        yield Write(1, end)
    elif not world.put(absolute(world, options.archive), bytes(taken) + end):
        yield Write(2, b"tar: write error: No space left on device\n")
        return 1
    if code:
        yield Write(2, b"tar: error exit delayed from previous errors\n")
    return code


def _found(world: World, place: str, path: str) -> list[tuple[str, str]]:
    """What is on a path and below it: the name in the archive, the place in the container."""
    if place in world.files:
        return [(path, place)]
    below = place.rstrip("/") + "/"
    inside = sorted(each for each in {*world.files, *folders_of(world)} if each.startswith(below))
    if not inside and place not in folders_of(world):
        return []
    return [(path, place), *((posixpath.join(path, each[len(below) :]), each) for each in inside)]


def _member(name: str, contents: bytes | None, now: int) -> bytes:
    """The bytes of a file, or of a folder where there are no contents."""
    info = tarfile.TarInfo(name or ".")
    info.mtime, info.uname, info.gname = now, "root", "root"
    if contents is None:
        info.type, info.mode = tarfile.DIRTYPE, 0o755
        return info.tobuf(tarfile.GNU_FORMAT)
    info.size = len(contents)
    return info.tobuf(tarfile.GNU_FORMAT) + contents + bytes(-len(contents) % tarfile.BLOCKSIZE)
