"""The programs that there are in simulated containers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import Final

from steersman.net.ascii import is_digits
from steersman.nodes.shell.agnhost import agnhost
from steersman.nodes.shell.effects import Course, Kill, Missing, ReadLine, Wait, World, Write, line
from steersman.nodes.shell.machine import hostname, identity, mount, uname, whoami
from steersman.nodes.shell.numbers import arithmetic, seconds_of
from steersman.nodes.shell.paths import absolute, folders_of
from steersman.nodes.shell.tar import tar

Program = Callable[[World, "list[str]"], Course]
_MOST_NUMBERS: Final = 5000
"""Of `seq`."""
_LAST_SECOND: Final = 253_402_300_799.0
"""Of the year 9999."""
_ESCAPES: Final = MappingProxyType({"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "0": "\0", "a": "\a", "e": "\x1b"})
_ESCAPED: Final = re.compile(r"\\(.)")
_LOWER: Final = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz")
_PRINTED_COLUMNS: Final = re.compile(r"\{ *print ((?:\$[0-9]{1,3}(?:, ?)?)+) *\}", re.ASCII)
_COLUMN: Final = re.compile(r"\$([0-9]+)", re.ASCII)
_WORD: Final = re.compile(rb"\S+")
_FORMAT: Final = re.compile(r"%(%|-?[0-9]{0,3}[sdi])|\\(.)", re.ASCII)
_SIGNALS: Final = MappingProxyType({"TERM": 15, "KILL": 9, "INT": 2, "HUP": 1, "QUIT": 3, "USR1": 10, "USR2": 12})


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[0]), text)


def _echo(world: World, words: list[str]) -> Course:
    end, escapes = "\n", False
    while words and re.fullmatch("-[neE]+", words[0]):
        end = "" if "n" in words[0] else end
        escapes = escapes or "e" in words[0]
        words = words[1:]
    text = " ".join(words)
    yield Write(1, f"{_unescaped(text) if escapes else text}{end}".encode(errors="surrogateescape"))
    return 0


def _printf(world: World, words: list[str]) -> Course:
    if not words:
        return 1
    values = iter(words[1:])

    def put(found: re.Match[str]) -> str:
        if found[2] is not None:
            return _ESCAPES.get(found[2], found[0])
        if found[1] == "%":
            return "%"
        value = next(values, "")
        if found[1][-1] != "s":
            value = value if re.fullmatch("-?[0-9]{1,18}", value, re.ASCII) else "0"
            return f"{int(value):{found[1][:-1].replace('-', '<') or ''}d}"
        width = found[1][:-1]
        size = int(width.lstrip("-") or 0)
        return value.ljust(size) if width.startswith("-") else value.rjust(size)

    yield Write(1, _FORMAT.sub(put, words[0]).encode(errors="surrogateescape"))
    return 0


def _contents(world: World, name: str, paths: list[str], found: list[bytes]) -> Course:
    """Puts the files on some paths, or what is read, into `found`."""
    code = 0
    if not paths:
        while isinstance(line := (yield ReadLine()), bytes):
            found.append(line)
        return 0
    for path in paths:
        if path in ("-", "/dev/stdin"):
            yield from _contents(world, name, [], found)
            continue
        place = absolute(world, path)
        data = b"" if place == "/dev/null" else world.read(place)
        if data is None:
            why = "read error: Is a directory" if place in folders_of(world) else "No such file or directory"
            opening = "" if place in folders_of(world) else "can't open "
            yield Write(2, f"{name}: {opening}'{path}': {why}\n".encode())
            code = 1
        else:
            found.append(data)
    return code


def _cat(world: World, words: list[str]) -> Course:
    paths = [each for each in words if not each.startswith("-") or each == "-"]
    if not paths:  # what is read is written at once
        while isinstance(line := (yield ReadLine()), bytes):
            yield Write(1, line)
        return 0
    code = 0
    for path in paths:
        found: list[bytes] = []
        code = (yield from _contents(world, "cat", [path], found)) or code
        if found:
            yield Write(1, b"".join(found))
    return code


def _tail(world: World, words: list[str]) -> Course:
    return (yield from _ends(world, "tail", words))


def _head(world: World, words: list[str]) -> Course:
    return (yield from _ends(world, "head", words))


def _ends(world: World, name: str, words: list[str]) -> Course:
    wanted, paths, follows = 10, [], False
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in ("-f", "-F"):
            follows = True
        elif word == "-n" and rest and is_digits(rest[0]):
            wanted = int(rest.pop(0)[:9])
        elif word.startswith("-") and is_digits(word.lstrip("-n")):
            wanted = int(word.lstrip("-n")[:9])
        elif not word.startswith("-"):
            paths.append(word)
    found: list[bytes] = []
    code = yield from _contents(world, name, paths, found)
    lines = b"".join(found).splitlines(keepends=True)
    lines = lines[:wanted] if name == "head" else lines[max(0, len(lines) - wanted) :]
    if lines:
        yield Write(1, b"".join(lines))
    if follows and name == "tail" and paths and not code:
        yield Wait(float("inf"))
    return code


def _wc(world: World, words: list[str]) -> Course:
    found: list[bytes] = []
    paths = [each for each in words if not each.startswith("-")]
    code = yield from _contents(world, "wc", paths, found)
    data = b"".join(found)
    counts = {"-l": data.count(b"\n"), "-w": len(_WORD.findall(data)), "-c": len(data)}
    wanted = [each for each in words if each in counts] or list(counts)
    yield line(" ".join(str(counts[each]) for each in wanted))
    return code


def _folded(line: bytes, flags: set[str]) -> bytes:
    return line.translate(_LOWER) if "i" in flags else line


def _grep(world: World, words: list[str]) -> Course:
    flags = {letter for each in words if each.startswith("-") for letter in each[1:]}
    rest = [each for each in words if not each.startswith("-")]
    if not rest:
        yield Write(2, b"grep: no pattern\n")
        return 2
    wanted = rest[0].encode(errors="surrogateescape")
    found: list[bytes] = []
    code = yield from _contents(world, "grep", rest[1:], found)
    lines = [
        each for each in b"".join(found).splitlines(keepends=True)
        if (_folded(wanted, flags) in _folded(each, flags)) != ("v" in flags)
    ]  # fmt: skip
    if "c" in flags:
        yield line(str(len(lines)))
    elif lines and "q" not in flags:
        yield Write(1, b"".join(lines))
    return code or int(not lines)


def _awk(world: World, words: list[str]) -> Course:
    """`awk '{print $1, $3}'` alone; what else it does is not known."""
    columns = _PRINTED_COLUMNS.fullmatch(words[0]) if words else None
    if columns is None:
        answer = yield Missing("awk")
        return answer if isinstance(answer, int) else 127
    found: list[bytes] = []
    code = yield from _contents(world, "awk", words[1:], found)
    wanted = [int(each) for each in _COLUMN.findall(columns[1])]
    for each in b"".join(found).splitlines(keepends=True):
        parts = [each.rstrip(b"\n"), *_WORD.findall(each)]
        yield Write(1, b" ".join(parts[at] if at < len(parts) else b"" for at in wanted) + b"\n")
    return code


def _env(world: World, words: list[str]) -> Course:
    for name, value in world.environment.items():
        yield line(f"{name}={value}")
    return 0


def _printenv(world: World, words: list[str]) -> Course:
    if not words:
        return (yield from _env(world, words))
    for each in words:
        if each in world.environment:
            yield line(world.environment[each])
    return int(any(each not in world.environment for each in words))


def _date(world: World, words: list[str]) -> Course:
    now = datetime.fromtimestamp(min(world.now(), _LAST_SECOND), UTC)
    form = next((each[1:] for each in words if each.startswith("+")), "")
    if not form:
        yield line(now.strftime(f"%a %b {now.day:2d} %H:%M:%S UTC %Y"))
        return 0
    parts = {"Y": "%Y", "m": "%m", "d": "%d", "H": "%H", "M": "%M", "S": "%S", "F": "%Y-%m-%d", "T": "%H:%M:%S",
             "Z": "UTC", "z": "+0000", "y": "%y", "b": "%b", "a": "%a", "j": "%j"}  # fmt: skip

    def put(found: re.Match[str]) -> str:
        match found[1]:
            case "s":
                return str(int(now.timestamp()))
            case "N":
                return f"{now.microsecond:06d}000"
            case "%":
                return "%"
        return now.strftime(parts[found[1]]) if found[1] in parts else found[0]

    yield line(re.sub("%(.)", put, form))
    return 0


def _sleep(world: World, words: list[str]) -> Course:
    seconds = seconds_of(words)
    if seconds is None:
        yield Write(2, f"sleep: invalid number '{' '.join(words)}'\n".encode())
        return 1
    yield Wait(seconds)
    return 0


def _true(world: World, words: list[str]) -> Course:
    yield from ()
    return 0


def _false(world: World, words: list[str]) -> Course:
    yield from ()
    return 1


def _entries(world: World, folder: str) -> Iterator[str]:
    start = folder.rstrip("/") + "/"
    names = {
        path[len(start) :].partition("/")[0] for path in (*world.files, *folders_of(world)) if path.startswith(start)
    }
    yield from sorted(names - {""})


def _ls(world: World, words: list[str]) -> Course:
    code = 0
    paths = [each for each in words if not each.startswith("-")] or ["."]
    hidden = any(each.startswith("-") and "a" in each for each in words)
    for path in paths:
        place = absolute(world, path)
        if place in world.files:
            yield line(path)
        elif place in folders_of(world):
            if len(paths) > 1:
                yield line(f"{path}:")
            for each in _entries(world, place):
                if hidden or not each.startswith("."):
                    yield line(each)
        else:
            yield Write(2, f"ls: {path}: No such file or directory\n".encode())
            code = 1
    return code


def _cd(world: World, words: list[str]) -> Course:
    place = absolute(world, words[0] if words else "/root")
    if place not in folders_of(world):
        yield Write(2, f"sh: cd: can't cd to {words[0]}: No such file or directory\n".encode())
        return 2
    world.folder = place
    return 0


def _pwd(world: World, words: list[str]) -> Course:
    yield line(world.folder)
    return 0


def _seq(world: World, words: list[str]) -> Course:
    numbers = [int(each) for each in words if re.fullmatch("-?[0-9]{1,9}", each, re.ASCII)]
    if not numbers or len(numbers) > 3 or (len(numbers) == 3 and not numbers[1]):
        yield Write(2, b"seq: invalid number\n")
        return 1
    first = numbers[0] if len(numbers) > 1 else 1
    step = numbers[1] if len(numbers) == 3 else 1
    last = numbers[-1] + (1 if step > 0 else -1)
    found = range(first, last, step)
    if len(found) > _MOST_NUMBERS:
        yield Write(2, b"seq: too many numbers\n")
        return 1
    if found:
        yield Write(1, "".join(f"{each}\n" for each in found).encode())
    return 0


def _test(world: World, words: list[str]) -> Course:
    yield from ()
    words = words[:-1] if words and words[-1] in ("]", "]]") else words
    negated = words[:1] == ["!"]
    return int(_holds(world, words[1:] if negated else words) == negated)


def _holds(world: World, words: list[str]) -> bool:
    match words:
        case []:
            return False
        case ["-z", text]:
            return not text
        case ["-n", text] | [text]:
            return bool(text)
        case ["-f", path]:
            return world.read(absolute(world, path)) is not None
        case ["-d", path]:
            return absolute(world, path) in folders_of(world)
        case ["-e" | "-r" | "-s", path]:
            return world.read(absolute(world, path)) is not None or absolute(world, path) in folders_of(world)
        case [left, "=" | "==", right]:
            return left == right
        case [left, "!=", right]:
            return left != right
        case [left, operator, right] if re.fullmatch("-?[0-9]{1,18}", left) and re.fullmatch("-?[0-9]{1,18}", right):
            one, two = int(left), int(right)
            return {"-eq": one == two, "-ne": one != two, "-lt": one < two, "-le": one <= two, "-gt": one > two,
                    "-ge": one >= two}.get(operator, False)  # fmt: skip
    return False


def _kill(world: World, words: list[str]) -> Course:
    signal, rest = 15, list(words)
    if rest and rest[0].startswith("-"):
        name = rest.pop(0).removeprefix("-")
        name = rest.pop(0) if name == "s" and rest else name
        signal = int(name[:2]) if is_digits(name) else _SIGNALS.get(name.removeprefix("SIG"), 15)
    if rest != ["1"]:
        yield Write(2, f"sh: can't kill pid {' '.join(rest)}: No such process\n".encode())
        return 1
    yield Kill(signal)
    return 0


def _touch(world: World, words: list[str]) -> Course:
    for each in words:
        path = absolute(world, each)
        if path not in world.files and not world.put(path, b""):
            yield Write(2, f"touch: {path}: No space left on device\n".encode())
            return 1
    return 0


def _rm(world: World, words: list[str]) -> Course:
    code = 0
    forced = any(each.startswith("-") and "f" in each for each in words)
    for each in words:
        if not each.startswith("-") and world.files.pop(absolute(world, each), None) is None and not forced:
            yield Write(2, f"rm: can't remove '{each}': No such file or directory\n".encode())
            code = 1
    return code


def _expr(world: World, words: list[str]) -> Course:
    value = arithmetic(" ".join("==" if each == "=" else each for each in words), {})
    yield line(words[0] if len(words) == 1 else str(value))
    return int(not value)


PROGRAMS: Final[Mapping[str, Program]] = MappingProxyType({
    ":": _true, "[": _test, "[[": _test, "agnhost": agnhost, "agnhost-2": partial(agnhost, name="/agnhost-2"),
    "awk": _awk, "cat": _cat, "cd": _cd, "date": _date, "echo": _echo, "env": _env, "expr": _expr, "false": _false,
    "grep": _grep, "head": _head, "hostname": hostname, "id": identity, "kill": _kill, "ls": _ls, "mkdir": _true,
    "mount": mount, "printenv": _printenv, "printf": _printf, "pwd": _pwd, "rm": _rm, "seq": _seq, "sleep": _sleep,
    "sync": _true, "tail": _tail, "tar": tar, "test": _test, "touch": _touch, "true": _true, "uname": uname, "wc": _wc,
    "whoami": whoami, "pause": lambda world, words: _sleep(world, ["infinity"]),
})  # fmt: skip
"""By name; each is given what follows its name."""
