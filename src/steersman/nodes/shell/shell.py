"""Runs commands and scripts (`syntax`), as a series of effects."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from steersman.net.ascii import is_digits
from steersman.nodes.shell.effects import (
    Answer,
    Course,
    Effect,
    Missing,
    ReadLine,
    Repeated,
    Unread,
    Wait,
    World,
    Write,
    between,
    captured,
    fed,
)
from steersman.nodes.shell.numbers import arithmetic
from steersman.nodes.shell.paths import absolute
from steersman.nodes.shell.programs import PROGRAMS
from steersman.nodes.shell.syntax import (
    Arithmetic,
    Command,
    For,
    Group,
    If,
    Loop,
    Output,
    Pipeline,
    Redirect,
    Redirected,
    Script,
    ShellSyntaxError,
    Simple,
    Text,
    Variable,
    Word,
    parse,
)

SHELLS: Final = frozenset({"sh", "bash", "ash", "dash"})
_GIVES_WAY: Final = 64
_MOST_WORDS: Final = 1 << 18
"""Characters of the words of one command."""
_MOST_VARIABLES: Final = 1 << 22
"""Characters of all variables."""
_STEP_VARIABLES: Final = 256
"""Variables that are looked at in one step."""
_MOST_DEPTH: Final = 16
"""Of shells in shells."""
_INTEGER: Final = re.compile("-?[0-9]{1,18}", re.ASCII)
_STREAMS: Final = MappingProxyType({"&1": 1, "&2": 2, "/dev/stdout": 1, "/dev/stderr": 2})
_DEVICES: Final = frozenset({"/dev/full", "/dev/null", "/dev/tty", "/dev/zero"})
"""What is written there is gone."""
_BLANKS: Final = re.compile("[ \\t\\n]+")


class _Exit(Exception):
    def __init__(self, code: int) -> None:
        self.code = code


class _Break(Exception):
    def __init__(self, *, again: bool) -> None:
        self.again = again


class Shell:
    """One shell: its variables, its folder, the exit code of its last command."""

    def __init__(self, world: World, depth: int = 0) -> None:
        self.world = world
        self.code = 0
        self._depth = depth
        self._name = "sh"
        self._given: Sequence[str] = ()
        self._passed = 0.0
        self._background = 0.0
        """Seconds that what runs in the background takes."""
        self._fails_at_once = False
        """`set -e`."""

    def run(self, words: Sequence[str]) -> Course:
        """A command as it is given to a container: no shell reads it, unless it is one."""
        if not words:
            return 0
        name = words[0].rpartition("/")[2]
        if name in SHELLS:
            return (yield from self._shell(words))
        program = PROGRAMS.get(name)
        if program is None:
            answer = yield Missing(words[0])
            return answer if isinstance(answer, int) else 127
        return (yield from self._counted(program(self.world, list(words[1:]))))

    def _shell(self, words: Sequence[str]) -> Course:
        """`sh -c SCRIPT [NAME ARGUMENTS]`, `sh FILE`, or one that reads its commands line by line."""
        rest = list(words[1:])
        script, fails_at_once = False, False
        while rest and rest[0].startswith("-") and len(rest[0]) > 1:
            flag = rest.pop(0)
            script, fails_at_once = script or "c" in flag, fails_at_once or "e" in flag
        if self._depth >= _MOST_DEPTH:
            yield Write(2, b"sh: too many shells\n")
            return 2
        inner = Shell(self.world, self._depth + 1)
        inner._fails_at_once = fails_at_once
        if script and rest:
            inner._name, inner._given = (rest[1] if len(rest) > 1 else words[0]), rest[2:]
            return (yield from inner.script(rest[0]))
        if rest:
            data = self.world.files.get(absolute(self.world, rest[0]))
            if data is None:
                yield Write(2, f"sh: can't open '{rest[0]}': No such file or directory\n".encode())
                return 2
            inner._name, inner._given = rest[0], rest[1:]
            return (yield from inner.script(data.decode(errors="replace")))
        return (yield from _lines(inner))

    def script(self, text: str) -> Course:
        """A script to its end."""
        try:
            return (yield from self._script(parse(text)))
        except (ShellSyntaxError, RecursionError) as error:
            yield Unread(str(error))
            yield Write(2, f"{self._name}: syntax error: {error}\n".encode())
            return 2
        except _Exit as end:
            return end.code
        except _Break:
            return 0

    def parsed(self, script: Script) -> Course:
        """One line of a shell that reads more of them."""
        try:
            return (yield from self._script(script))
        except (ShellSyntaxError, RecursionError) as error:
            yield Write(2, f"{self._name}: syntax error: {error}\n".encode())
            return 2
        except _Break:
            return 0

    # Lists

    def _script(self, script: Script) -> Course:
        for before, pipeline, background in script.steps:
            if (before == "&&" and self.code) or (before == "||" and not self.code):
                continue
            if background:  # nothing of it is waited for
                yield from self._in_background(pipeline)
                self.code = 0
                continue
            self.code = yield from self._pipeline(pipeline)
            if self._fails_at_once and self.code and not pipeline.negated and before == ";":
                raise _Exit(self.code)
        return self.code

    def _in_background(self, pipeline: Pipeline) -> Course:
        """Runs what it does before it waits, and leaves that to `wait`."""
        passed = self._passed
        for effect in self._pipeline(pipeline):
            if isinstance(effect, Wait) and effect.seconds > 0:
                self._background = max(self._background, effect.seconds)
                break
            yield effect
        self._passed = passed
        return 0

    def _pipeline(self, pipeline: Pipeline) -> Course:
        data: bytes | None = None
        code = 0
        for number, command in enumerate(pipeline.commands):
            course = self._command(command)
            if data is not None:
                course = fed(course, data)
            if number < len(pipeline.commands) - 1:
                taken = bytearray()
                code = yield from captured(course, taken)
                data = bytes(taken)
                self.world.handled(len(data))
            else:
                code = yield from course
        return int(code == 0) if pipeline.negated else code

    def _command(self, command: Command) -> Course:
        match command:
            case Simple():
                return (yield from self._simple(command))
            case Redirected():
                return (yield from self._redirected(self._command(command.command), command.redirects))
            case Group():
                return (yield from self._script(command.script))
            case Loop():
                return (yield from self._loop(command))
            case For():
                return (yield from self._for(command))
            case If():
                for condition, then in command.branches:
                    if (yield from self._judged(condition)) == 0:
                        return (yield from self._script(then))
                return 0 if command.otherwise is None else (yield from self._script(command.otherwise))

    def _judged(self, condition: Script) -> Course:
        """A condition, whose failing fails nothing."""
        before, self._fails_at_once = self._fails_at_once, False
        try:
            return (yield from self._script(condition))
        finally:
            self._fails_at_once = before

    # Loops

    def _loop(self, loop: Loop) -> Course:
        code = 0
        while True:
            before, since = dict(self.world.environment), self._passed
            if ((yield from self._judged(loop.condition)) == 0) == loop.until:
                return code
            try:
                code = yield from self._script(loop.body)
            except _Break as end:
                if not end.again:
                    return 0
            yield from self._once()
            yield from self._repeat(before, self._passed - since)

    def _repeat(self, before: dict[str, str], period: float) -> Course:
        """Leaves out what would be the same again, where that is wanted; numbers that count are moved on."""
        steps: dict[str, int] = {}
        variables = self.world.environment
        for name, value in variables.items():
            if (old := before.get(name)) != value:
                if old is None or not (_INTEGER.fullmatch(old) and _INTEGER.fullmatch(value)):
                    return 0
                steps[name] = int(value) - int(old)
        if period > 0:
            left_out = yield Repeated(period)
            if isinstance(left_out, int):
                for name, step in steps.items():
                    variables[name] = str(int(variables[name]) + left_out * step)
        return 0

    def _for(self, loop: For) -> Course:
        code = 0
        for word in (yield from self._words(loop.words)):
            self._assign({loop.name: word})
            try:
                code = yield from self._script(loop.body)
            except _Break as end:
                if not end.again:
                    return 0
            yield from self._once()
        return code

    def _once(self) -> Course:
        """Counts a step; one of many that take no time gives way, and too many never end."""
        world = self.world
        world.steps += 1 + len(world.environment) // _STEP_VARIABLES
        if world.steps > world.most_steps:
            yield Wait(float("inf"))
        elif not 0 <= world.steps - world.gave_way < _GIVES_WAY:
            world.gave_way = world.steps
            yield Wait(0)
        return 0

    def _assign(self, values: Mapping[str, str]) -> None:
        """Sets variables. Raises ShellSyntaxError where there is no room for them."""
        environment = self.world.environment
        environment.update(values)
        if sum(len(name) + len(value) for name, value in environment.items()) > _MOST_VARIABLES:
            for name in values:
                del environment[name]
            raise ShellSyntaxError("out of memory")

    def _counted(self, course: Course) -> Course:
        """Runs a program, and counts the time that it takes."""

        def count(effect: Effect) -> Generator[Effect, Answer, Answer]:
            if isinstance(effect, Wait) and effect.seconds > 0:
                self._passed += effect.seconds
                if self.world.steps_are_forgotten:
                    self.world.steps = 0
            return (yield effect)

        return between(course, count)

    # Simple commands

    def _simple(self, command: Simple) -> Course:
        yield from self._once()
        assigned = {}
        for name, word in command.assignments:
            assigned[name] = yield from self._text(word)
        words = yield from self._words(command.words)
        if not words:
            self._assign(assigned)
            return 0
        before = dict(self.world.environment) if assigned else None
        self._assign(assigned)
        try:
            return (yield from self._redirected(self._named(words), command.redirects))
        finally:
            if before is not None:
                self.world.environment = before

    def _named(self, words: list[str]) -> Course:
        name, rest = words[0], words[1:]
        match name:
            case "exit" | "return":
                raise _Exit(int(rest[0]) & 255 if rest and _INTEGER.fullmatch(rest[0]) else self.code)
            case "break" | "continue":
                raise _Break(again=name == "continue")
            case "exec" | "command" | "nohup" | "time":
                code = (yield from self._named(rest)) if rest else 0
                if name == "exec" and rest:
                    raise _Exit(code)
                return code
            case "export":
                self._assign(dict(each.partition("=")[::2] for each in rest if "=" in each))
                return 0
            case "unset":
                for each in rest:
                    self.world.environment.pop(each, None)
                return 0
            case "set":
                self._fails_at_once = self._fails_at_once or any(each.startswith("-") and "e" in each for each in rest)
                return 0
            case "trap" | "ulimit" | "umask":
                return 0
            case "wait":
                seconds, self._background = self._background, 0.0
                return (yield from self._counted(PROGRAMS["sleep"](self.world, [str(seconds)])))
            case "eval":
                return (yield from self._script(parse(" ".join(rest))))
            case "read":
                line = yield ReadLine()
                if not isinstance(line, bytes):
                    return 1
                names = [each for each in rest if not each.startswith("-")] or ["REPLY"]
                values = line.decode(errors="replace").strip("\n").split(" ", len(names) - 1)
                self._assign(dict(zip(names, [*values, *[""] * len(names)], strict=False)))
                return 0
        program = PROGRAMS.get(name.rpartition("/")[2])
        if program is None and name.rpartition("/")[2] not in SHELLS:
            answer = yield Missing(name)
            if isinstance(answer, int):
                return answer
            yield Write(2, f"{self._name}: {name}: not found\n".encode())
            return 127
        return (yield from self.run(words))

    def _redirected(self, course: Course, redirects: Sequence[Redirect]) -> Course:
        after: list[tuple[str, bytearray, bool]] = []
        for redirect in redirects:
            target = yield from self._text(redirect.target)
            if target in _STREAMS:
                course = _turned(course, redirect.stream, _STREAMS[target])
            elif redirect.operator == "<":
                data = self.world.files.get(absolute(self.world, target))
                if data is None:
                    yield Write(2, f"{self._name}: can't open {target}: no such file\n".encode())
                    return 1
                course = fed(course, data)
            else:
                taken = bytearray()
                course = captured(course, taken, redirect.stream)
                after.append((target, taken, redirect.operator == ">>"))
        code = yield from course
        for target, taken, more in after:
            if not self._put(absolute(self.world, target), bytes(taken), more=more):
                yield Write(2, f"{self._name}: write error: No space left on device\n".encode())
                return 1
        return code

    def _put(self, path: str, data: bytes, *, more: bool) -> bool:
        self.world.handled(len(data))
        if path in _DEVICES:
            return True
        return self.world.put(path, self.world.files.get(path, b"") + data if more else data)

    # Words

    def _words(self, words: Sequence[Word]) -> Generator[Effect, Answer, list[str]]:
        """The words that some come to, once what is in them has been put in. Raises ShellSyntaxError where they are
        too long."""
        found: list[str] = []
        room = _MOST_WORDS
        for word in words:
            pieces: list[str] = []
            begun = False
            for part, quoted in word.parts:
                text = part.text if isinstance(part, Text) else (yield from self._part(part))
                room = self._within(room, text)
                if quoted or isinstance(part, Text):
                    pieces.append(text)
                    begun = True
                    continue
                split = _BLANKS.split(text)
                for number, each in enumerate(split):
                    if number and (begun or any(pieces)):
                        found.append("".join(pieces))
                        pieces, begun = [], False
                    pieces.append(each)
                    begun = begun or bool(each)
            if begun or any(pieces):
                found.append("".join(pieces))
        return found

    def _text(self, word: Word) -> Generator[Effect, Answer, str]:
        pieces: list[str] = []
        room = _MOST_WORDS
        for part, _ in word.parts:
            pieces.append(part.text if isinstance(part, Text) else (yield from self._part(part)))
            room = self._within(room, pieces[-1])
        return "".join(pieces)

    def _within(self, room: int, text: str) -> int:
        """The characters that are left when some text has been put in. Raises ShellSyntaxError if there are none."""
        if len(text) > room:
            raise ShellSyntaxError("argument list too long")
        self.world.handled(len(text))
        return room - len(text)

    def _part(self, part: Variable | Output | Arithmetic) -> Generator[Effect, Answer, str]:
        match part:
            case Output():
                taken = bytearray()
                inner = Shell(self.world, self._depth + 1)
                if inner._depth > _MOST_DEPTH:
                    raise ShellSyntaxError("nested too deeply")
                self.code = yield from captured(inner._script(part.script), taken)
                self._passed += inner._passed
                return taken.decode(errors="replace").rstrip("\n")
            case Arithmetic():
                return str(arithmetic(part.expression, self.world.environment))
            case Variable():
                value = self._value(part.name)
                if not value and part.default is not None:
                    return (yield from self._text(part.default))
                return value

    def _value(self, name: str) -> str:
        match name:
            case "?":
                return str(self.code)
            case "$" | "!":
                return "1"
            case "#":
                return str(len(self._given))
            case "@" | "*":
                return " ".join(self._given)
            case "0":
                return self._name
        if is_digits(name):
            number = int(name[:4])
            return self._given[number - 1] if number <= len(self._given) else ""
        return self.world.environment.get(name, "")


def _turned(course: Course, stream: int, to: int) -> Course:
    """Runs a command of which one stream goes where the other one does."""

    def turn(effect: Effect) -> Generator[Effect, Answer, Answer]:
        if isinstance(effect, Write) and effect.stream == stream:
            effect = Write(to, effect.data)
        return (yield effect)

    return between(course, turn)


def _lines(shell: Shell) -> Course:
    """Runs what is read, line by line; a script that goes on after its line is read on."""
    pending = ""
    while True:
        if shell.world.interactive:
            yield Write(2, b"> " if pending else f"{shell.world.folder} # ".encode())
        line = yield ReadLine()
        if not isinstance(line, bytes):
            return shell.code
        pending += line.decode(errors="replace")
        try:
            script = parse(pending)
        except ShellSyntaxError as error:
            if "unexpected end of file" in str(error) or "unterminated" in str(error):
                continue
            yield Write(2, f"sh: syntax error: {error}\n".encode())
            shell.code, pending = 2, ""
            continue
        pending = ""
        try:
            yield from shell.parsed(script)
        except _Exit as end:
            return end.code
