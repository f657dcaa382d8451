"""The program `sed`: addresses, and the commands `s`, `d`, `p`, `q`, `=`, `a`, `i`, `c`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from steersman.net.ascii import is_digits
from steersman.nodes.shell.effects import (
    MOST_BUFFERED,
    PIECE,
    Buffer,
    Execution,
    Missing,
    OutOfMemory,
    Work,
    World,
    Write,
)
from steersman.nodes.shell.lines import Input
from steersman.nodes.shell.options import options_of
from steersman.nodes.shell.paths import absolute
from steersman.nodes.shell.patterns import PatternError, regular, searching
from steersman.work.patterns import late_pattern

if TYPE_CHECKING:
    import re2

_MOST_COMMANDS: Final = 100
_MOST_PARTS: Final = 1024
"""Parts of a replacement."""
_REFERENCE: Final = late_pattern(r"\\(.)|&", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t"}


class _Unknown(Exception):
    """The script uses something that is not supported."""


class _Address(Struct, frozen=True):
    """Address of lines: a line's number, the last line, or the lines that match a pattern."""

    number: int = 0
    is_last: bool = False
    pattern: re2._Regexp | None = None

    def holds(self, number: int, text: bytes, *, is_last: bool) -> bool:
        if self.pattern is not None:
            return self.pattern.search(text) is not None
        return is_last if self.is_last else number == self.number


class _Command(Struct):
    letter: str
    begin: _Address | None = None
    end: _Address | None = None
    is_negated: bool = False
    pattern: re2._Regexp | None = None
    text: str = ""
    parts: tuple[bytes | int, ...] = ()
    """Parts of the replacement: bytes, and numbers of groups."""
    flags: str = ""
    is_within: bool = False
    """True if the last line was in the command's range and the range goes on."""

    def is_for(self, number: int, text: bytes, *, is_last: bool) -> bool:
        """Return True if the command applies to a line. Must be called for each line in order."""
        return self._is_addressed(number, text, is_last=is_last) != self.is_negated

    def _is_addressed(self, number: int, text: bytes, *, is_last: bool) -> bool:
        if self.begin is None:
            return True
        if self.end is None:
            return self.begin.holds(number, text, is_last=is_last)
        if self.is_within:
            over = self.end.number and number >= self.end.number
            self.is_within = not (over or self.end.holds(number, text, is_last=is_last))
            return not (self.end.number and number > self.end.number)
        if not self.begin.holds(number, text, is_last=is_last):
            return False
        self.is_within = not (self.end.number and number >= self.end.number)
        return True


def sed(world: World, words: list[str]) -> Execution:
    """`sed [-Einr] [-e] SCRIPT [FILE...]`."""
    words = ["-i" if each.startswith("-i") and len(each) > 2 else each for each in words]
    options = options_of(words, "Einrsz", "e")
    script = "" if options is None else "\n".join(options.values("e") or options.rest[:1])
    try:
        if options is None:
            raise _Unknown
        paths = options.rest[0 if options.values("e") else 1 :]
        reader = _Reader(script, extended=bool({"E", "r"} & options.flags))
        commands = yield from reader.commands(world)
    except _Unknown:
        answer = yield Missing("sed")
        if isinstance(answer, int):
            return answer
        yield Write(2, b"sed: unsupported command\n")
        return 1
    except PatternError as error:
        yield Write(2, f"sed: bad regex: {error}\n".encode(errors="replace"))
        return 1
    silent = "n" in options.flags
    if "i" not in options.flags:
        return (yield from _edited(world, Input(world, "sed", paths), commands, _written, silent=silent))
    code = 0
    for each in paths:
        source, taken = Input(world, "sed", [each]), Buffer(world.memory)

        def keep(data: bytes, taken: Buffer = taken) -> Work[None]:
            taken.add(data)
            yield from ()

        for command in commands:
            command.is_within = False
        code = (yield from _edited(world, source, commands, keep, silent=silent)) or code
        yield from world.spend(files=world.many_files)
        if not source.code and not world.put(absolute(world, each), bytes(taken.data)):
            yield Write(2, f"sed: {each}: No space left on device\n".encode(errors="replace"))
            return 1
    return code


def _written(data: bytes) -> Work[None]:
    yield Write(1, data)


def _edited(
    world: World, source: Input, commands: list[_Command], write: Callable[[bytes], Work[None]], *, silent: bool
) -> Execution:
    """Run the commands on each line. Raises OutOfMemory."""
    number = 0
    made = _Made(write)
    lines = yield from source.lines()
    while lines:
        following = yield from source.lines()
        for at, each in enumerate(lines):
            number += 1
            is_last = not following and at == len(lines) - 1
            quits = yield from _edit(world, commands, each, number, made, is_last=is_last, silent=silent)
            if quits:
                yield from made.flush()
                return source.code
        yield from made.flush()
        lines = following
    return source.code


class _Made:
    """Output that is collected and written in pieces."""

    def __init__(self, write: Callable[[bytes], Work[None]]) -> None:
        self._write = write
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, *data: bytes) -> Work[None]:
        """Add data, and write the collected output if it is large."""
        self._pieces += data
        self._size += sum(map(len, data))
        if self._size > PIECE:
            yield from self.flush()

    def flush(self) -> Work[None]:
        """Write the collected output."""
        if self._pieces:
            data, self._pieces, self._size = b"".join(self._pieces), [], 0
            yield from self._write(data)


def _edit(
    world: World, commands: list[_Command], line: bytes, number: int, made: _Made, *, is_last: bool, silent: bool
) -> Work[bool]:
    """Run the commands on one line. Return True if no further line is to be read. Raises OutOfMemory."""
    text, end = (line[:-1], b"\n") if line.endswith(b"\n") else (line, b"")
    after: list[bytes] = []
    quits = False
    yield from world.spend(len(text), lines=2 * len(commands))
    for command in commands:
        for address in (command.begin, command.end):
            if address is not None and address.pattern is not None:
                yield from searching(world, address.pattern, len(text))
        if not command.is_for(number, text, is_last=is_last):
            continue
        said = command.text.encode("utf-8", errors="surrogateescape")
        match command.letter:
            case "s":
                text, was_found = yield from _substituted(world, command, text)
                if was_found and "p" in command.flags:
                    yield from made.add(text, b"\n")
            case "p":
                yield from made.add(text, b"\n")
            case "=":
                yield from made.add(b"%d\n" % number)
            case "i":
                yield from made.add(said, b"\n")
            case "a":
                after += (said, b"\n")
            case "c" | "d":
                if command.letter == "c":
                    yield from made.add(said, b"\n")
                return False
            case "q":
                quits = True
                break
    if not silent:
        yield from made.add(text, b"\n" if after else end)
    yield from made.add(*after)
    return quits


def _substituted(world: World, command: _Command, text: bytes) -> Work[tuple[bytes, bool]]:
    """Return a line after a substitution, and True if the pattern was found.

    Raises OutOfMemory if the line grows beyond MOST_BUFFERED bytes.
    """
    assert command.pattern is not None
    pieces: list[bytes] = []
    at = size = number = 0
    occurrence = int("".join(each for each in command.flags if is_digits(each))[:6] or 1)
    while True:
        yield from searching(world, command.pattern, len(text) - at)
        match = command.pattern.search(text, at)
        if match is None:
            break
        start, end = match.span()
        yield from world.spend(len(text) - at, lines=2 + len(command.parts))
        number += 1
        made = (
            [match[0]]
            if number < occurrence
            else [
                each if isinstance(each, bytes) else (match[each] or b"") if each <= command.pattern.groups else b""
                for each in command.parts
            ]
        )
        size += sum(map(len, made))
        if size + len(text) > MOST_BUFFERED:
            raise OutOfMemory
        pieces += (text[at:start], *made)
        at = end
        if end == start:
            pieces.append(text[at : at + 1])
            at += 1
        if ("g" not in command.flags and number >= occurrence) or at > len(text):
            break
    if number < occurrence:
        return text, False
    return b"".join((*pieces, text[at:])), True


def _parts_of(replacement: str) -> tuple[bytes | int, ...]:
    """Parse a replacement into bytes and numbers of groups; 0 is the whole match. Raises _Unknown."""
    parts: list[bytes | int] = []
    at = 0
    for reference in _REFERENCE.finditer(replacement):
        if len(parts) > _MOST_PARTS:
            raise _Unknown
        if reference.start() > at:
            parts.append(replacement[at : reference.start()].encode("utf-8", errors="surrogateescape"))
        at = reference.end()
        said = reference[1]
        if said is None or is_digits(said):
            parts.append(int(said or "0"))
        else:
            parts.append(_ESCAPES.get(said, said).encode("utf-8", errors="surrogateescape"))
    if at < len(replacement):
        parts.append(replacement[at:].encode("utf-8", errors="surrogateescape"))
    return tuple(parts)


class _Reader:
    """Parser of a sed script."""

    def __init__(self, text: str, *, extended: bool) -> None:
        self._text = text
        self._at = 0
        self._extended = extended

    def commands(self, world: World) -> Work[list[_Command]]:
        """Parse the commands. Raises _Unknown, PatternError."""
        commands: list[_Command] = []
        while True:
            while self._at < len(self._text) and self._text[self._at] in " \t\n;":
                self._at += 1
            if self._at >= len(self._text):
                return commands
            if len(commands) >= _MOST_COMMANDS:
                raise _Unknown
            before = self._at
            commands.append(self._command())
            yield from world.spend(16 * (self._at - before), lines=8)

    def _command(self) -> _Command:
        begin = self._address()
        end = None
        if begin is not None and self._ahead() == ",":
            self._at += 1
            end = self._address()
            if end is None:
                raise _Unknown
        is_negated = self._ahead() == "!"
        self._at += is_negated
        letter = self._ahead()
        self._at += 1
        command = _Command(letter, begin, end, is_negated)
        if letter == "s":
            self._substitution(command)
        elif letter in ("a", "i", "c"):
            stop = self._text.find("\n", self._at)
            stop = len(self._text) if stop < 0 else stop
            said = self._text[self._at : stop].lstrip(" ")
            command.text = said.removeprefix("\\").lstrip(" ")
            self._at = stop
        elif not letter or letter not in "dpq=" or self._ahead() not in ("", ";", "\n"):
            raise _Unknown
        return command

    def _ahead(self) -> str:
        while self._text[self._at : self._at + 1] in (" ", "\t"):
            self._at += 1
        return self._text[self._at : self._at + 1]

    def _address(self) -> _Address | None:
        here = self._ahead()
        if here == "$":
            self._at += 1
            return _Address(is_last=True)
        if here == "/":
            self._at += 1
            return _Address(pattern=regular(self._until("/"), extended=self._extended))
        start = self._at
        while is_digits(self._text[self._at : self._at + 1]):
            self._at += 1
        return _Address(int(self._text[start : self._at][:9])) if self._at > start else None

    def _substitution(self, command: _Command) -> None:
        separator = self._text[self._at : self._at + 1]
        if not separator or separator in "\\\n":
            raise _Unknown
        self._at += 1
        pattern = self._until(separator)
        command.text = self._until(separator)
        command.parts = _parts_of(command.text)
        start = self._at
        while (here := self._text[self._at : self._at + 1]) in ("g", "p", "i", "I") or is_digits(here):
            self._at += 1
        command.flags = self._text[start : self._at]
        if self._ahead() not in ("", ";", "\n", "}"):
            raise _Unknown
        command.pattern = regular(pattern, extended=self._extended, ignores_case="i" in command.flags.lower())

    def _until(self, separator: str) -> str:
        """Return the text up to a separator, and consume the separator. An escaped separator is literal."""
        pieces: list[str] = []
        while True:
            here = self._text[self._at : self._at + 1]
            self._at += 1
            if not here:
                raise _Unknown
            if here == separator:
                return "".join(pieces)
            if here == "\\":
                following = self._text[self._at : self._at + 1]
                self._at += 1
                pieces.append(following if following == separator else here + following)
            else:
                pieces.append(here)
