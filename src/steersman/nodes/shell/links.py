"""Programs that create and resolve symbolic links."""

from __future__ import annotations

import posixpath

from steersman.nodes.shell.effects import MOST_PATH, Execution, Link, Missing, Work, World, Write, line
from steersman.nodes.shell.options import options_of
from steersman.nodes.shell.paths import absolute, may_be_folder, may_be_of_image


def ln(world: World, words: list[str]) -> Execution:
    """`ln [-s] [-f] [-n] [-T] TARGET... [LINK|FOLDER]`; a hard link is a copy."""
    options = options_of(words, "sfnTv", "")
    if options is None:
        answer = yield Missing("ln")
        return answer if isinstance(answer, int) else 1
    if not options.rest:
        yield _error_line("missing operand")
        return 1
    flags, targets, last = options.flags, options.rest[:-1], options.rest[-1]
    if not targets:
        targets, last = [last], "."
    goal = absolute(world, last)
    yield from world.spend(files=2 * world.many_files + 64)
    into = "T" not in flags and world.is_folder(goal) and not ("n" in flags and world.is_link(goal))
    if len(targets) > 1 and not into:
        yield _error_line(f"target '{last}': Not a directory")
        return 1
    code = 0
    for target in targets:
        shown = posixpath.join(last, posixpath.basename(target.rstrip("/"))) if into else last
        why = yield from _create_link(world, target, shown, flags)
        if why:
            yield _error_line(why)
            code = 1
    return code


def _create_link(world: World, target: str, path: str, flags: set[str]) -> Work[str]:
    """Create a link. Return the reason of a failure, "" for success."""
    yield from world.spend(len(target) + len(path), files=4 * world.many_files + 64)
    place = absolute(world, path)
    data: bytes | None = Link(target.encode(errors="surrogateescape"))
    if "s" not in flags:
        source = absolute(world, target)
        if world.is_folder(source):
            return f"{target}: Operation not permitted"
        data = b"" if world.read(source) is None and may_be_of_image(world, source) else world.read(source)
    if data is None:
        return f"{target}: No such file or directory"
    if len(target) > MOST_PATH:
        return f"{path}: File name too long"
    is_folder = world.is_folder(place) and not world.is_link(place)
    if is_folder or (place in world.files and "f" not in flags):
        return f"{path}: File exists"
    if not may_be_folder(world, posixpath.dirname(place)):
        return f"{path}: No such file or directory"
    return "" if world.put_entry(place, data) else f"{path}: No space left on device"


def readlink(world: World, words: list[str]) -> Execution:
    """`readlink PATH`: the target of a link; with `-f`, `-e` and `-m` the resolved path."""
    options = options_of(words, "fenmqsvz", "")
    if options is None or options.flags & {"f", "e", "m"}:
        return (yield from real_path(world, words))
    code = 0
    for each in options.rest:
        file = world.files.get(absolute(world, each))
        yield from world.spend(len(each), lines=1)
        if isinstance(file, Link):
            yield Write(1, bytes(file) + (b"" if "n" in options.flags else b"\n"))
        else:
            code = 1
    return code


def real_path(world: World, words: list[str]) -> Execution:
    """`realpath PATH`, `readlink -f PATH`: the resolved path."""
    for each in words:
        if not each.startswith("-"):
            yield from world.spend(len(each), lines=1)
            yield line(world.resolved(absolute(world, each)))
    return 0


def _error_line(why: str) -> Write:
    return Write(2, f"ln: {why}\n".encode(errors="surrogateescape"))
