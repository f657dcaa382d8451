"""Programs of simulated containers."""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import Final

from steersman.net.ascii import is_digits
from steersman.nodes.shell import file_programs, links, text_programs
from steersman.nodes.shell.agnhost import agnhost
from steersman.nodes.shell.effects import Execution, Kill, Missing, Wait, Work, World, Write, line
from steersman.nodes.shell.formats import filled
from steersman.nodes.shell.lines import Input
from steersman.nodes.shell.machine import getent, hostname, identity, mount, nproc, nslookup, ps, uname, uptime, whoami
from steersman.nodes.shell.numbers import arithmetic, seconds_of
from steersman.nodes.shell.options import options_of
from steersman.nodes.shell.paths import absolute
from steersman.nodes.shell.sed import sed
from steersman.nodes.shell.tar import tar
from steersman.work.patterns import late_pattern

Program = Callable[[World, "list[str]"], Execution]
_MOST_NUMBERS: Final = 1_000_000
"""Numbers that `seq` prints."""
_NUMBERS_AT_ONCE: Final = 1000
_LAST_SECOND: Final = 253_402_300_799.0
"""Last second of the year 9999."""
_ESCAPES: Final = MappingProxyType({"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "0": "\0", "a": "\a", "e": "\x1b"})
_ESCAPED: Final = late_pattern(r"\\(.)")
_FORMAT: Final = late_pattern(r"%(%|-?[0-9]{0,3}[sdi])|\\(.)", re.ASCII)
_ESCAPED_AT_ONCE: Final = 1 << 13
"""Characters whose escapes are replaced between two effects."""
_FORMATTED_AT_ONCE: Final = 256
"""Verbs of a format that are processed between two effects."""
_SIGNALS: Final = MappingProxyType({"TERM": 15, "KILL": 9, "INT": 2, "HUP": 1, "QUIT": 3, "USR1": 10, "USR2": 12})


def _unescaped(world: World, text: str) -> Work[str]:
    """Return a text with its backslash escapes replaced."""
    pieces: list[str] = []
    for at in range(0, len(text), _ESCAPED_AT_ONCE):
        # An escape must stay whole: a backslash at the end of a piece is carried over to the next piece.
        pieces.append(text[at : at + _ESCAPED_AT_ONCE])
    found: list[str] = []
    carried = ""
    for each in pieces:
        part = carried + each
        ends = len(part) - len(part.rstrip("\\"))
        carried = "\\" if ends % 2 else ""
        part = part[: len(part) - len(carried)]
        found.append(_ESCAPED.sub(lambda escape: _ESCAPES.get(escape[1], escape[0]), part))
        yield from world.spend(len(part) * 4)
    return "".join((*found, carried))


def _echo(world: World, words: list[str]) -> Execution:
    end, escapes, at = "\n", False, 0
    while at < len(words) and re.fullmatch("-[neE]{1,8}", words[at]):
        end = "" if "n" in words[at] else end
        escapes = escapes or "e" in words[at]
        at += 1
    text = " ".join(words[at:])
    if escapes:
        text = yield from _unescaped(world, text)
    yield Write(1, f"{text}{end}".encode(errors="surrogateescape"))
    return 0


def _printf(world: World, words: list[str]) -> Execution:
    """`printf FORMAT [VALUE...]`; the format is reused while there are values."""
    if not words:
        return 1
    form, values = words[0], deque(words[1:])
    taken: list[str] = []
    while True:
        before, at = len(values), 0
        for number, found in enumerate(_FORMAT.finditer(form)):
            taken += (form[at : found.start()], _formatted(found, values))
            at = found.end()
            if not (number + 1) % _FORMATTED_AT_ONCE:
                yield Write(1, "".join(taken).encode(errors="surrogateescape"))
                taken.clear()
                yield from world.spend(steps=_FORMATTED_AT_ONCE >> 2)
        taken.append(form[at:])
        if not values or len(values) == before:
            break
        yield from world.spend(len(form), lines=8)
        if len(taken) > _FORMATTED_AT_ONCE:
            yield Write(1, "".join(taken).encode(errors="surrogateescape"))
            taken.clear()
    yield Write(1, "".join(taken).encode(errors="surrogateescape"))
    return 0


def _formatted(found: re.Match[str], values: deque[str]) -> str:
    """Return the text for a verb or an escape of a format."""
    if found[2] is not None:
        return _ESCAPES.get(found[2], found[0])
    if found[1] == "%":
        return "%"
    value = values.popleft() if values else ""
    width, verb = found[1][:-1], found[1][-1]
    if verb != "s":
        value = str(int(value)) if re.fullmatch("-?[0-9]{1,18}", value, re.ASCII) else "0"
    if verb != "s" and width.startswith("0"):
        return value.zfill(int(width))
    size = int(width.lstrip("-") or 0)
    return value.ljust(size) if width.startswith("-") else value.rjust(size)


def _env(world: World, words: list[str]) -> Execution:
    for number, (name, value) in enumerate(tuple(world.environment.items())):
        yield line(f"{name}={value}")
        if not number % 16:
            yield from world.spend(steps=4)
    return 0


def _printenv(world: World, words: list[str]) -> Execution:
    if not words:
        return (yield from _env(world, words))
    for each in words:
        if each in world.environment:
            yield line(world.environment[each])
        yield from world.spend(lines=1)
    return int(any(each not in world.environment for each in words))


def _date(world: World, words: list[str]) -> Execution:
    now = datetime.fromtimestamp(min(world.now(), _LAST_SECOND), UTC)
    form = next((each[1:] for each in words if each.startswith("+")), "")
    if not form:
        yield line(now.strftime(f"%a %b {now.day:2d} %H:%M:%S UTC %Y"))
        return 0
    parts = {
        "Y": "%Y",
        "m": "%m",
        "d": "%d",
        "H": "%H",
        "M": "%M",
        "S": "%S",
        "F": "%Y-%m-%d",
        "T": "%H:%M:%S",
        "Z": "UTC",
        "z": "+0000",
        "y": "%y",
        "b": "%b",
        "a": "%a",
        "j": "%j",
    }

    def put(found: re.Match[str]) -> str:
        match found[1]:
            case "s":
                return str(int(now.timestamp()))
            case "N":
                return f"{now.microsecond:06d}000"
            case "%":
                return "%"
        return now.strftime(parts[found[1]]) if found[1] in parts else found[0]

    yield line((yield from filled(world, form, put)))
    return 0


def _sleep(world: World, words: list[str]) -> Execution:
    seconds = seconds_of(words)
    if seconds is None:
        yield Write(2, f"sleep: invalid number '{' '.join(words)}'\n".encode(errors="surrogateescape"))
        return 1
    yield Wait(seconds)
    return 0


def _true(world: World, words: list[str]) -> Execution:
    yield from ()
    return 0


def _false(world: World, words: list[str]) -> Execution:
    yield from ()
    return 1


def _seq(world: World, words: list[str]) -> Execution:
    numbers = [int(each) for each in words if re.fullmatch("-?[0-9]{1,9}", each, re.ASCII)]
    if not numbers or len(numbers) > 3 or (len(numbers) == 3 and not numbers[1]):
        yield Write(2, b"seq: invalid number\n")
        return 1
    first = numbers[0] if len(numbers) > 1 else 1
    step = numbers[1] if len(numbers) == 3 else 1
    last = numbers[-1] + (1 if step > 0 else -1)
    values = range(first, last, step)
    if len(values) > _MOST_NUMBERS:
        yield Write(2, b"seq: too many numbers\n")
        return 1
    for at in range(0, len(values), _NUMBERS_AT_ONCE):
        part = values[at : at + _NUMBERS_AT_ONCE]
        yield Write(1, "".join(f"{each}\n" for each in part).encode())
        yield from world.spend(lines=len(part))
    return 0


def _test(world: World, words: list[str]) -> Execution:
    """`test`: conditions connected by `-a` (`&&`) and `-o` (`||`), each optionally negated by `!`."""
    words = words[:-1] if words and words[-1] in ("]", "]]") else words
    at = 0
    for number in range(len(words) + 1):
        if number < len(words) and words[number] not in ("-o", "||"):
            continue
        if (yield from _all_hold(world, words[at:number])):
            return 0
        at = number + 1
    return 1


def _all_hold(world: World, words: list[str]) -> Work[bool]:
    for part in _parts(words):
        if any(each in _OF_FILES for each in part):
            yield from world.spend(files=3 * world.many_files + 64)
        if not _test_result(world, part):
            return False
    return True


def _parts(words: list[str]) -> Iterator[list[str]]:
    at = 0
    for number in range(len(words) + 1):
        if number == len(words) or words[number] in ("-a", "&&"):
            yield words[at:number]
            at = number + 1


def _test_result(world: World, words: list[str]) -> bool:
    negated = words[:1] == ["!"] and len(words) > 1
    return _evaluate_test(world, words[1:] if negated else words) != negated


def _evaluate_test(world: World, words: list[str]) -> bool:
    match words:
        case []:
            return False
        case ["-z", text]:
            return not text
        case ["-n", text] | [text]:
            return bool(text)
        case ["-f", path]:
            return _mode(world, path) is not None and not world.is_folder(absolute(world, path))
        case ["-h" | "-L", path]:
            return world.is_link(absolute(world, path))
        case ["-d", path]:
            return world.is_folder(absolute(world, path))
        case ["-s", path]:
            return bool(world.read(absolute(world, path))) or world.is_folder(absolute(world, path))
        case ["-x", path]:
            mode = _mode(world, path)
            return mode is not None and bool(mode & 0o111)
        case ["-e" | "-r" | "-w", path]:
            return _mode(world, path) is not None
        case [left, "=" | "==", right]:
            return left == right
        case [left, "!=", right]:
            return left != right
        case [left, operator, right] if re.fullmatch("-?[0-9]{1,18}", left) and re.fullmatch("-?[0-9]{1,18}", right):
            one, two = int(left), int(right)
            return {
                "-eq": one == two,
                "-ne": one != two,
                "-lt": one < two,
                "-le": one <= two,
                "-gt": one > two,
                "-ge": one >= two,
            }.get(operator, False)
    return False


def _mode(world: World, path: str) -> int | None:
    return world.mode_of(absolute(world, path))


def _kill(world: World, words: list[str]) -> Execution:
    signal, rest = 15, list(words)
    if rest and rest[0].startswith("-"):
        name = rest.pop(0).removeprefix("-")
        name = rest.pop(0) if name == "s" and rest else name
        signal = int(name[:2]) if is_digits(name) else _SIGNALS.get(name.removeprefix("SIG"), 15)
    if rest != ["1"]:
        yield Write(2, f"sh: can't kill pid {' '.join(rest)}: No such process\n".encode(errors="surrogateescape"))
        return 1
    yield Kill(signal)
    return 0


def _expr(world: World, words: list[str]) -> Execution:
    value = arithmetic(" ".join("==" if each == "=" else each for each in words), {})
    yield line(words[0] if len(words) == 1 else str(value))
    return int(not value)


def _checksum(world: World, words: list[str], *, name: str) -> Execution:
    """`md5sum`, `sha256sum`...: checksums of files."""
    paths = [each for each in words if not each.startswith("-")] or ["-"]
    code = 0
    for each in paths:
        source = Input(world, f"{name}sum", [each])
        digest = hashlib.new(name, usedforsecurity=False)
        while piece := (yield from source.piece()):
            digest.update(piece)
        code = code or source.code
        if not source.code:
            yield line(f"{digest.hexdigest()}  {each}")
    return code


def _base64(world: World, words: list[str]) -> Execution:
    """`base64 [-d] [-w COLUMNS] [FILE]`."""
    options = options_of(words, "di", "w")
    source = Input(world, "base64", [] if options is None else options.rest)
    data = yield from source.all()
    yield from world.spend(2 * len(data))
    if options is not None and "d" in options.flags:
        try:
            yield Write(1, b64decode(data))
        except ValueError:
            yield Write(2, b"base64: truncated input\n")
            return 1
        return source.code
    made = b64encode(data)
    said = options.values("w")[-1] if options is not None and options.values("w") else ""
    wide = int(said[:6]) if is_digits(said) else 76
    wide = max(wide, 16) if wide else len(made) or 1
    for at in range(0, len(made), 512 * wide):
        part = made[at : at + 512 * wide]
        yield Write(1, b"".join(part[place : place + wide] + b"\n" for place in range(0, len(part), wide)))
        yield from world.spend(len(part), lines=512)
    return source.code


def _timeout(world: World, words: list[str]) -> Execution:
    """Run `timeout SECONDS sleep N`. Any other command counts as a missing program, as its duration is not known."""
    rest = [each for each in words if not each.startswith("-")]
    limit, taken = seconds_of(rest[:1]), seconds_of(rest[2:]) if rest[1:2] == ["sleep"] else None
    if limit is None or taken is None:
        answer = yield Missing("timeout")
        return answer if isinstance(answer, int) else 127
    yield Wait(min(limit, taken))
    return 124 if taken > limit else 0


_OF_FILES: Final = frozenset({"-d", "-e", "-f", "-h", "-L", "-r", "-s", "-w", "-x"})
PROGRAMS: Final[Mapping[str, Program]] = MappingProxyType(
    {
        ":": _true,
        "[": _test,
        "[[": _test,
        "agnhost": agnhost,
        "agnhost-2": partial(agnhost, name="/agnhost-2"),
        "awk": text_programs.awk,
        "base64": _base64,
        "basename": file_programs.basename,
        "cat": text_programs.cat,
        "cd": file_programs.cd,
        "chgrp": _true,
        "chmod": file_programs.chmod,
        "chown": _true,
        "cp": file_programs.cp,
        "cut": text_programs.cut,
        "date": _date,
        "dd": file_programs.dd,
        "df": file_programs.df,
        "dirname": file_programs.dirname,
        "du": file_programs.du,
        "echo": _echo,
        "env": _env,
        "expr": _expr,
        "false": _false,
        "find": file_programs.find,
        "getent": getent,
        "grep": text_programs.grep,
        "egrep": lambda world, words: text_programs.grep(world, ["-E", *words]),
        "fgrep": lambda world, words: text_programs.grep(world, ["-F", *words]),
        "head": text_programs.head,
        "hostname": hostname,
        "id": identity,
        "kill": _kill,
        "ln": links.ln,
        "ls": file_programs.ls,
        "md5sum": partial(_checksum, name="md5"),
        "mkdir": file_programs.mkdir,
        "mount": mount,
        "mv": file_programs.mv,
        "nproc": nproc,
        "nslookup": nslookup,
        "pause": lambda world, words: _sleep(world, ["infinity"]),
        "printenv": _printenv,
        "printf": _printf,
        "ps": ps,
        "pwd": file_programs.pwd,
        "readlink": links.readlink,
        "realpath": links.real_path,
        "rm": file_programs.rm,
        "rmdir": file_programs.rmdir,
        "sed": sed,
        "seq": _seq,
        "sha1sum": partial(_checksum, name="sha1"),
        "sha256sum": partial(_checksum, name="sha256"),
        "sha512sum": partial(_checksum, name="sha512"),
        "sleep": _sleep,
        "sort": text_programs.sort,
        "stat": file_programs.status,
        "sync": _true,
        "tail": text_programs.tail,
        "tar": tar,
        "tee": text_programs.tee,
        "test": _test,
        "timeout": _timeout,
        "touch": file_programs.touch,
        "tr": text_programs.tr,
        "true": _true,
        "uname": uname,
        "uniq": text_programs.uniq,
        "uptime": uptime,
        "wc": text_programs.wc,
        "whoami": whoami,
    }
)
"""Programs by name; each gets the arguments after its name."""
