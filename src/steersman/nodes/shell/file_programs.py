"""Programs for files and folders."""

from __future__ import annotations

import posixpath
import re
import stat
from collections import deque
from datetime import UTC, datetime
from typing import Final

from steersman.net.ascii import is_digits
from steersman.nodes.shell.effects import (
    MOST_BUFFERED,
    MOST_FILE_BYTES,
    Buffer,
    Execution,
    Link,
    Missing,
    NoSpace,
    Read,
    Work,
    World,
    Write,
    bytes_of_file,
    line,
)
from steersman.nodes.shell.formats import filled
from steersman.nodes.shell.options import options_of
from steersman.nodes.shell.paths import absolute, entries, logical, make_folder, may_be_folder, may_be_of_image, tree
from steersman.nodes.shell.patterns import glob, glob_work
from steersman.work.patterns import late_pattern

_AT_ONCE: Final = 64
_SIZE: Final = late_pattern("([0-9]{1,12})([kKMGbcw]?)B?", re.ASCII)
_UNITS: Final = {"": 1, "c": 1, "w": 2, "b": 512, "k": 1 << 10, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_DISK: Final = 1 << 30
"""KiB of each file system, as `df` shows it."""
_MODE: Final = late_pattern("([ugoa]*)([-+=])([rwxX]*)", re.ASCII)
_LETTERS: Final = {
    "--all": "a",
    "--archive": "a",
    "--directory": "d",
    "--force": "f",
    "--recursive": "r",
    "--symbolic": "s",
}
_NO_FILE: Final = "No such file or directory"
_NO_SPACE: Final = "No space left on device"


def _error_line(name: str, why: str) -> Write:
    return Write(2, f"{name}: {why}\n".encode(errors="surrogateescape"))


def _count_search(world: World) -> Work[None]:
    """Count the work of a search through all files."""
    yield from world.spend(files=world.many_files + 64)


def _flags(words: list[str]) -> set[str]:
    """Return the letters of flags; a long flag counts as its letter, if it has one."""
    flags: set[str] = set()
    for each in words:
        if each.startswith("--"):
            flags.update(_LETTERS.get(each.partition("=")[0], ""))
        elif each.startswith("-"):
            flags.update(each[1:])
    return flags


def ls(world: World, words: list[str]) -> Execution:
    """`ls [-1aAdl] [PATH...]`."""
    flags = _flags(words)
    paths = [each for each in words if not each.startswith("-")] or ["."]
    code = 0
    for path in paths:
        place = absolute(world, path)
        yield from _count_search(world)
        is_file = world.read(place) is not None and not world.is_folder(place)
        is_file = is_file or (world.is_link(place) and ("l" in flags or not world.is_folder(place)))
        if is_file or ("d" in flags and world.is_folder(place)):
            yield line(_row(world, place, path) if "l" in flags else path)
        elif world.is_folder(place):
            if len(paths) > 1:
                yield line(f"{path}:")
            folder = world.resolved(place)
            for number, each in enumerate(entries(world, folder)):
                if flags & {"a", "A"} or not each.startswith("."):
                    yield line(_row(world, posixpath.join(folder, each), each) if "l" in flags else each)
                if "l" in flags or not number % _AT_ONCE:
                    yield from (_count_search(world) if "l" in flags else world.spend(lines=_AT_ONCE))
        else:
            yield _error_line("ls", f"{path}: {_NO_FILE}")
            code = 1
    return code


def _row(world: World, place: str, name: str) -> str:
    mode = world.mode_of(place) or stat.S_IFREG | 0o644
    size = len(world.read(place) or b"")
    file = world.files.get(place)
    if isinstance(file, Link):
        mode, size, name = stat.S_IFLNK | 0o777, len(file), f"{name} -> {file.decode(errors='surrogateescape')}"
    at = datetime.fromtimestamp(min(max(world.now(), 0), 253_402_300_799), UTC)
    return f"{stat.filemode(mode)}    1 root     root     {size:9d} {at:%b %e %H:%M} {name}"


def cd(world: World, words: list[str]) -> Execution:
    """`cd FOLDER`."""
    place = logical(world, words[0] if words else world.environment.get("HOME", "/root"))
    yield from _count_search(world)
    if not may_be_folder(world, place):
        yield Write(2, f"sh: cd: can't cd to {words[0] if words else place}: {_NO_FILE}\n".encode(errors="replace"))
        return 2
    world.folder = place
    return 0


def pwd(world: World, words: list[str]) -> Execution:
    """`pwd`: the working directory."""
    yield line(world.folder)
    return 0


def mkdir(world: World, words: list[str]) -> Execution:
    """`mkdir [-p] [-m MODE] FOLDER...`."""
    options = options_of(words, "pv", "m")
    if options is None:
        return 0
    makes_all, code = "p" in options.flags, 0
    for each in options.rest:
        place = absolute(world, each)
        yield from world.spend(files=8 * world.many_files + 64)
        if world.is_link(place) or (world.read(place) is not None and not world.is_folder(place)):
            why = "" if makes_all and world.is_folder(place) else "File exists"
        elif world.is_folder(place):
            why = "" if makes_all else "File exists"
        elif not makes_all and not may_be_folder(world, posixpath.dirname(place)):
            why = _NO_FILE
        else:
            why = "" if (yield from make_folder(world, place)) else _NO_SPACE
        if why:
            yield _error_line("mkdir", f"can't create directory '{each}': {why}")
            code = 1
    return code


def touch(world: World, words: list[str]) -> Execution:
    """`touch FILE...`."""
    for each in words:
        path = absolute(world, each)
        yield from _count_search(world)
        if each.startswith("-") or world.read(path) is not None or world.is_folder(path):
            continue
        if not world.put(path, b""):
            yield _error_line("touch", f"{path}: {_NO_SPACE}")
            return 1
    return 0


def rm(world: World, words: list[str]) -> Execution:
    """`rm [-f] [-r] PATH...`."""
    flags = _flags(words)
    code = 0
    for each in words:
        if each.startswith("-"):
            continue
        place = absolute(world, each)
        yield from _count_search(world)
        if place != "/" and flags & {"r", "R"}:
            below = [path for path in world.files if path == place or path.startswith(f"{place}/")]
            for number, path in enumerate(below):
                world.files.pop(path, None)
                if not number % _AT_ONCE:
                    yield from world.spend(lines=_AT_ONCE)
            is_gone = bool(below)
        else:
            is_gone = world.files.pop(place, None) is not None
        if not is_gone and "f" not in flags:
            yield _error_line("rm", f"can't remove '{each}': {_NO_FILE}")
            code = 1
    return code


def rmdir(world: World, words: list[str]) -> Execution:
    """`rmdir FOLDER...`."""
    for each in words:
        yield from _count_search(world)
        if world.files.pop(absolute(world, each).rstrip("/") + "/", None) is None:
            yield _error_line("rmdir", f"'{each}': {_NO_FILE}")
            return 1
    return 0


def cp(world: World, words: list[str]) -> Execution:
    """`cp [-a] [-r] FROM... TO`."""
    return (yield from _move(world, "cp", words))


def mv(world: World, words: list[str]) -> Execution:
    """`mv FROM... TO`."""
    return (yield from _move(world, "mv", words))


def _move(world: World, name: str, words: list[str]) -> Execution:
    flags = _flags(words)
    paths = [each for each in words if not each.startswith("-")]
    if len(paths) < 2:
        yield _error_line(name, "missing file operand")
        return 1
    target = absolute(world, paths[-1])
    yield from _count_search(world)
    into, code = world.is_folder(target) or paths[-1].endswith("/"), 0
    for each in paths[:-1]:
        place = absolute(world, each)
        goal = posixpath.join(target, posixpath.basename(place)) if into else target
        whole = name == "mv" or bool(flags & {"r", "R", "a"})
        keeps_links = name == "mv" or bool(flags & {"a", "d", "P"})
        if world.read(place) is None and not world.is_folder(place) and may_be_of_image(world, place):
            why = yield from _copy_from_image(world, place, goal, whole=bool(flags & {"r", "R", "a"}))
        else:
            why = yield from _copy(world, place, goal, whole=whole, keeps_links=keeps_links)
        if why:
            yield _error_line(name, f"can't stat '{each}': {why}" if why == _NO_FILE else f"{each}: {why}")
            code = 1
        elif name == "mv" and place != goal:
            for path in [path for path in world.files if path == place or path.startswith(f"{place}/")]:
                del world.files[path]
    return code


def _copy_from_image(world: World, place: str, goal: str, *, whole: bool) -> Work[str]:
    """Copy from the image: a file becomes empty, and so does a folder. A pattern may stand for any files.

    Returns the reason of a failure, "" for success.
    """
    if any(each in posixpath.basename(place) for each in "*?["):
        return "" if world.is_folder(posixpath.dirname(goal)) else _NO_FILE
    if whole:
        return "" if (yield from make_folder(world, goal)) else _NO_SPACE
    return "" if world.put(goal, b"") else _NO_SPACE


def _copy(world: World, place: str, goal: str, *, whole: bool, keeps_links: bool) -> Work[str]:
    """Copy a file, or with `whole` a folder with its content. Return the reason of a failure, "" for success."""
    yield from _count_search(world)
    data = world.files[place] if keeps_links and world.is_link(place) else world.read(place)
    if isinstance(data, Link) or (data is not None and not world.is_folder(place)):
        put = world.put_entry if keeps_links else world.put
        return "" if put(goal, data) else _NO_SPACE
    place = world.resolved(place)
    if not world.is_folder(place):
        return _NO_FILE
    if not whole:
        return "omitting directory"
    if goal == place or goal.startswith(f"{place.rstrip('/')}/"):
        return "can't copy a directory into itself"
    room = world.free_bytes(goal)
    for number, path in enumerate([path for path in world.files if path.startswith(f"{place.rstrip('/')}/")]):
        copy = goal + path[len(place.rstrip("/")) :]
        room -= bytes_of_file(copy, world.files[path]) - bytes_of_file(copy, world.files.get(copy))
        if room < 0:
            return _NO_SPACE
        try:
            world.files[copy] = world.files[path]
        except NoSpace:
            return _NO_SPACE
        if not number % _AT_ONCE:
            yield from world.spend(lines=_AT_ONCE)
    return "" if (yield from make_folder(world, goal)) else _NO_SPACE


def chmod(world: World, words: list[str]) -> Execution:
    """`chmod [-R] MODE PATH...`."""
    paths = [each for each in words if not each.startswith("-R")]
    if len(paths) < 2:
        yield _error_line("chmod", "missing operand")
        return 1
    code = 0
    for each in paths[1:]:
        place = absolute(world, each)
        yield from _count_search(world)
        mode = world.mode_of(place)
        if mode is None and may_be_of_image(world, place):
            continue
        if mode is None:
            yield _error_line("chmod", f"{each}: {_NO_FILE}")
            code = 1
            continue
        place = world.resolved(place)
        changed = _change_mode(stat.S_IMODE(mode), paths[0])
        if changed is None:
            yield _error_line("chmod", f"invalid mode '{paths[0]}'")
            return 1
        if len(world.modes) < MOST_FILE_BYTES >> 8 or place in world.modes:
            world.modes[place] = changed
    return code


def _change_mode(mode: int, said: str) -> int | None:
    """Return a mode given in octal, or changed as by `u+x,go-w`; None for invalid text."""
    if re.fullmatch("[0-7]{1,5}", said, re.ASCII):
        return int(said, 8) & 0o7777
    for each in said.split(",")[:16]:
        match = _MODE.fullmatch(each if each[:1] in "ugoa" else f"a{each}")
        if match is None:
            return None
        bits = sum(
            {"r": 4, "w": 2, "x": 1, "X": 1}[letter]
            for letter in set(match[3]) - {"X"} | ({"x"} if "X" in match[3] else set())
        )
        for who, shift in (("u", 6), ("g", 3), ("o", 0)):
            if who not in match[1] and "a" not in match[1]:
                continue
            mask = bits << shift
            kept = mode & ~(7 << shift) if match[2] == "=" else mode
            mode = kept & ~mask if match[2] == "-" else kept | mask
    return mode


def dd(world: World, words: list[str]) -> Execution:
    """`dd if=FILE of=FILE bs=SIZE count=BLOCKS`; random numbers are zeros."""
    operands = dict(each.partition("=")[::2] for each in words)
    sizes = {name: _size(operands.get(name, "512" if name == "bs" else "")) for name in ("bs", "count", "skip", "seek")}
    source, target = operands.get("if", ""), operands.get("of", "")
    block = sizes["bs"] or 512
    most = MOST_FILE_BYTES + 1
    size = most if sizes["count"] is None else min(most, block * sizes["count"])
    if source in ("/dev/zero", "/dev/urandom", "/dev/random"):
        if sizes["count"] is None and target:
            yield _error_line("dd", f"error writing '{target}': {_NO_SPACE}")
            return 1
        data = bytes(size)
    elif source:
        yield from _count_search(world)
        found = b"" if source == "/dev/null" else world.read(absolute(world, source))
        if found is None:
            yield _error_line("dd", f"can't open '{source}': {_NO_FILE}")
            return 1
        data = found[block * (sizes["skip"] or 0) :][:size]
    else:
        taken = Buffer(world.memory)
        while len(taken.data) < min(size, MOST_BUFFERED) and isinstance(piece := (yield Read()), bytes):
            taken.add(piece)
            yield from world.spend(len(piece))
        data = bytes(taken.data[:size])
    yield from world.spend(len(data), files=world.many_files)
    if not target:
        for at in range(0, len(data), 1 << 15):
            yield Write(1, data[at : at + (1 << 15)])
    elif target != "/dev/null":
        path = absolute(world, target)
        start = block * (sizes["seek"] or 0)
        before = (world.read(path) or b"") if "notrunc" in operands.get("conv", "") or start else b""
        if start + len(data) > MOST_FILE_BYTES:
            yield _error_line("dd", f"error writing '{target}': {_NO_SPACE}")
            return 1
        made = before[:start].ljust(start, b"\0") + data
        made += before[len(made) :] if "notrunc" in operands.get("conv", "") else b""
        if not world.put(path, made):
            yield _error_line("dd", f"error writing '{target}': {_NO_SPACE}")
            return 1
    whole, rest = divmod(len(data), block)
    records = f"{whole}+{int(rest > 0)}"
    yield Write(2, f"{records} records in\n{records} records out\n{len(data)} bytes copied\n".encode())
    return 0


def _size(said: str) -> int | None:
    match = _SIZE.fullmatch(said)
    return None if match is None else int(match[1]) * _UNITS[match[2]]


def find(world: World, words: list[str]) -> Execution:
    """`find [PATH...] [-name PATTERN] [-type f|d|l] [-maxdepth N] [-mindepth N] [-print] [-delete]`."""
    at = next((number for number, each in enumerate(words) if each.startswith(("-", "(", "!"))), len(words))
    paths, tests = words[:at] or ["."], deque(words[at:])
    options: dict[str, str] = {}
    while tests:
        name = tests.popleft()
        if name in ("-print", "-delete"):
            options[name] = ""
        elif name in ("-name", "-iname", "-path", "-type", "-maxdepth", "-mindepth") and tests:
            options[name] = tests.popleft()
        else:
            answer = yield Missing("find")
            if isinstance(answer, int):
                return answer
            yield _error_line("find", f"unrecognized: {name}")
            return 1
    code = 0
    for path in paths:
        place = absolute(world, path)
        yield from _count_search(world)
        if path.endswith("/"):
            place = world.resolved(place)
        is_folder = world.is_folder(place) and not world.is_link(place)
        if not is_folder and place not in world.files and world.read(place) is None:
            yield _error_line("find", f"{path}: {_NO_FILE}")
            code = 1
            continue
        inside = (yield from tree(world, place)) if is_folder else []
        yield from world.spend(lines=4 * len(inside))
        for each in [place, *inside]:
            shown = path if each == place else posixpath.join(path, each[len(place.rstrip("/")) + 1 :])
            depth = each.count("/") - place.rstrip("/").count("/") if each != place else 0
            yield from world.spend(sum(glob_work(value, len(shown)) for value in options.values()), lines=8)
            is_file = each in world.files
            kind = "d" if not is_file and (is_folder or each != place) else "l" if world.is_link(each) else "f"
            if _is_found(shown, options, depth, kind):
                if "-delete" in options:
                    world.files.pop(each, None)
                else:
                    yield line(shown)
    return code


def _is_found(path: str, given: dict[str, str], depth: int, kind: str) -> bool:
    name = posixpath.basename(path.rstrip("/")) or path
    for test, value in given.items():
        match test:
            case "-name" if not glob(value, name):
                return False
            case "-iname" if not glob(value.lower(), name.lower()):
                return False
            case "-path" if not glob(value, path):
                return False
            case "-type" if value != kind:
                return False
            case "-maxdepth" if is_digits(value) and depth > int(value[:6]):
                return False
            case "-mindepth" if is_digits(value) and depth < int(value[:6]):
                return False
    return True


def df(world: World, words: list[str]) -> Execution:
    """`df [-h] [-k] [PATH]`: file systems and their used space."""
    readable = any(each.startswith("-") and "h" in each for each in words)
    paths = [each for each in words if not each.startswith("-")]
    mounted = {"/": "overlay", **world.file_systems}
    if paths:
        place = absolute(world, paths[0])
        around = [each for each in mounted if place == each or place.startswith(f"{each.rstrip('/')}/")]
        mounted = {max(around, key=len): mounted[max(around, key=len)]}
    yield line(
        "Filesystem           Size      Used Available Use% Mounted on"
        if readable
        else "Filesystem           1K-blocks      Used Available Use% Mounted on"
    )
    for path, kind in mounted.items():
        yield from _count_search(world)
        start = path.rstrip("/") + "/"
        used = sum(len(data) for name, data in world.files.items() if name.startswith(start)) >> 10
        if readable:
            row = f"{kind:<20} {_DISK >> 20}.0G {used}.0K {(_DISK - used) >> 20}.0G   0% {path}"
        else:
            row = f"{kind:<20} {_DISK:>9} {used:>9} {_DISK - used:>9}   0% {path}"
        yield line(row)
    return 0


def du(world: World, words: list[str]) -> Execution:
    """`du [-s] [-h] [-k] [PATH]`: KiB of a folder."""
    for path in [each for each in words if not each.startswith("-")] or ["."]:
        place = absolute(world, path)
        yield from _count_search(world)
        if world.mode_of(place) is None:
            yield _error_line("du", f"{path}: {_NO_FILE}")
            return 1
        start = place.rstrip("/") + "/"
        size = sum(len(data) for name, data in world.files.items() if name == place or name.startswith(start))
        yield line(f"{(size + 1023) >> 10}\t{path}")
    return 0


def status(world: World, words: list[str]) -> Execution:
    """`stat [-L] [-c FORMAT] PATH...`."""
    options = options_of(words, "Lf", "c")
    if options is None:
        return 1
    form = options.values("c")[-1] if options.values("c") else "  File: %n\n  Size: %s\nAccess: (%a/%A)"
    for each in options.rest:
        place = absolute(world, each)
        yield from _count_search(world)
        linked = None if "L" in options.flags else world.files.get(place)
        is_link = isinstance(linked, Link)
        mode = stat.S_IFLNK | 0o777 if is_link else world.mode_of(place)
        if mode is None:
            yield _error_line("stat", f"can't stat '{each}': {_NO_FILE}")
            return 1
        kind = "symbolic link" if is_link else "directory" if stat.S_ISDIR(mode) else "regular file"
        size = len((linked if is_link else world.read(place)) or b"")
        shown = {
            "n": each,
            "s": str(size),
            "a": f"{stat.S_IMODE(mode):o}",
            "A": stat.filemode(mode),
            "F": kind,
            "u": str(world.identity.user),
            "g": str(world.identity.group),
            "U": "root",
            "G": "root",
        }

        def put(found: re.Match[str], shown: dict[str, str] = shown) -> str:
            return shown.get(found[1], found[0])

        yield line((yield from filled(world, form, put)))
    return 0


def basename(world: World, words: list[str]) -> Execution:
    """`basename PATH [SUFFIX]`."""
    if not words:
        return 1
    name = posixpath.basename(words[0].rstrip("/"))
    yield line(name.removesuffix(words[1]) if len(words) > 1 and name != words[1] else name)
    return 0


def dirname(world: World, words: list[str]) -> Execution:
    """`dirname PATH`."""
    if not words:
        return 1
    yield line(posixpath.dirname(words[0].rstrip("/")) or ("/" if words[0].startswith("/") else "."))
    return 0
