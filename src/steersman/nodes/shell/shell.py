"""Interpreter of commands and scripts (`syntax`), which runs them as a series of effects."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from steersman.nodes.shell.built_in import BUILT_IN, SHELLS, where
from steersman.nodes.shell.effects import (
    TERMINATED,
    Answer,
    Buffer,
    Effect,
    Execution,
    Missing,
    OutOfMemory,
    ReadLine,
    Repeated,
    Unread,
    Wait,
    Work,
    World,
    Write,
    answer_effects,
    capture_output,
    with_input,
)
from steersman.nodes.shell.expansion import Break, Exit, Expansion, Return
from steersman.nodes.shell.paths import absolute
from steersman.nodes.shell.patterns import glob, glob_work
from steersman.nodes.shell.programs import PROGRAMS
from steersman.nodes.shell.script import (
    Case,
    Command,
    Document,
    For,
    Function,
    Group,
    If,
    Loop,
    Output,
    Pipeline,
    Redirect,
    Redirected,
    Script,
    Simple,
    Word,
)
from steersman.nodes.shell.syntax import PARTS_A_TURN, Ask, Reader, Reading, ShellSyntaxError
from steersman.work.patterns import late_pattern

_MOST_DEPTH: Final = 16
"""Depth of shells in shells, and of functions that call functions."""
_INTEGER: Final = late_pattern("-?[0-9]{1,18}", re.ASCII)
_STREAMS: Final = MappingProxyType({"&1": 1, "&2": 2, "/dev/stdout": 1, "/dev/stderr": 2})
_DEVICES: Final = frozenset({"/dev/full", "/dev/null", "/dev/tty", "/dev/zero"})
"""Files that discard what is written into them."""
_RUNNERS: Final = frozenset({"command", "exec", "nohup", "time"})
"""Commands whose arguments are a command."""


class Shell(Expansion):
    """One shell: its functions, its traps, the exit code of its last command."""

    def __init__(self, world: World, depth: int = 0) -> None:
        super().__init__(world, depth)
        self._replaced: dict[str, Function | None] | None = None
        """Functions to restore at the end of the current subshell, None for a new name; None outside of subshells."""
        self.process_traps: Final = self.traps
        """Traps outside of subshells, which are those for signals to the shell's process."""
        self.inner: Shell | None = None
        """The shell that the command starts, if the command is a shell."""

    def run(self, words: Sequence[str]) -> Execution:
        """Run the command of a container. It is not parsed by a shell, unless it starts one."""
        if not words:
            return 0
        name = words[0].rpartition("/")[2]
        if name in SHELLS:
            return (yield from self._shell(words))
        program = PROGRAMS.get(name)
        if program is None:
            answer = yield Missing(words[0], is_first=True)
            return answer if isinstance(answer, int) else 127
        try:
            return (yield from self.count_waits(program(self.world, list(words[1:]))))
        except OutOfMemory:
            yield Write(2, f"{name}: out of memory\n".encode())
            return 1

    def _program(self, words: Sequence[str]) -> Execution:
        """Run a program, or a shell, that a script calls."""
        name = words[0].rpartition("/")[2]
        if name in SHELLS:
            return (yield from self._shell(words))
        program = PROGRAMS.get(name)
        if program is not None:
            return (yield from self.count_waits(program(self.world, list(words[1:]))))
        data = self.world.files.get(absolute(self.world, words[0])) if "/" in words[0] else None
        if data is not None:  # a script file that exists in the container
            return (yield from self._shell(["sh", *words]))
        answer = yield Missing(words[0])
        if isinstance(answer, int):
            return answer
        yield Write(2, f"{self.name}: {words[0]}: not found\n".encode(errors="replace"))
        return 127

    def _shell(self, words: Sequence[str]) -> Execution:
        """Run `sh -c SCRIPT [NAME ARGUMENTS]`, `sh FILE`, or a shell that reads its commands line by line."""
        script, fails_at_once, at = False, False, 1
        while at < len(words) and words[at].startswith("-") and len(words[at]) > 1:
            script, fails_at_once = script or "c" in words[at], fails_at_once or "e" in words[at]
            at += 2 if words[at] == "-o" else 1
        rest = list(words[at:])
        if self.depth >= _MOST_DEPTH:
            yield Write(2, b"sh: too many shells\n")
            return 2
        inner = self.inner = Shell(self.world, self.depth + 1)
        inner.fails_at_once = fails_at_once
        if script and rest:
            inner.name, inner.given = (rest[1] if len(rest) > 1 else words[0]), rest[2:]
            return (yield from inner.run_to_end(inner.script(rest[0])))
        if rest:
            data = self.world.read(absolute(self.world, rest[0]))
            if data is None:
                yield Write(2, f"sh: can't open '{rest[0]}': No such file or directory\n".encode(errors="replace"))
                return 2
            inner.name, inner.given = rest[0], rest[1:]
            return (yield from inner.run_to_end(inner.script(data.decode(errors="replace"))))
        return (yield from inner.run_to_end(_lines(inner)))

    def run_to_end(self, execution: Execution) -> Execution:
        """Run everything that a shell does, and release what its functions and traps take of the bounds."""
        try:
            return (yield from execution)
        finally:
            self.world.count_characters(-sum(each.size for each in self.functions.values()))
            self.forget_traps()

    def script(self, text: str) -> Execution:
        """Parse and run a whole script, with its trap for EXIT."""
        try:
            script = yield from self.read(Reader(text).whole())
        except (ShellSyntaxError, RecursionError) as error:
            yield Unread(str(error))
            yield Write(2, f"{self.name}: syntax error: {error}\n".encode(errors="replace"))
            return 2
        try:
            code = yield from self.parsed(script)
        except Exit as end:
            code = end.code
        return (yield from self.run_exit_trap(code))

    def parsed(self, script: Script) -> Execution:
        """Run a parsed script, or a line of a shell that reads its commands. Raises Exit."""
        try:
            return (yield from self.run_script(script))
        except (ShellSyntaxError, RecursionError) as error:
            yield Unread(str(error))
            yield Write(2, f"{self.name}: syntax error: {error}\n".encode(errors="replace"))
        except OutOfMemory:
            yield Write(2, f"{self.name}: out of memory\n".encode(errors="replace"))
        except Break:
            return 0
        return 2

    def run_exit_trap(self, code: int) -> Execution:
        """Run the command of the trap for EXIT, at the end of a shell. Return the exit code."""
        ended = yield from self._run_trap("EXIT", code)
        return code if ended is None else ended

    def run_termination_trap(self) -> Work[int | None]:
        """Run the command of the trap for SIGTERM.

        Return the exit code; None if there is no trap or the shell goes on.
        """
        inside, self.traps = self.traps, self.process_traps
        try:
            code = yield from self._run_trap("TERM", TERMINATED)
            return None if code is None else (yield from self.run_exit_trap(code))
        finally:
            self.traps = inside

    def _run_trap(self, signal: str, code: int) -> Work[int | None]:
        """Run the command of a trap. Return the exit code if the command ends the shell, otherwise None."""
        text = self.traps.get(signal, "")
        self.set_trap(signal, "")
        if text:
            self.code = code
            try:
                yield from self.parsed((yield from self.read(Reader(text).whole())))
            except Exit as end:
                return end.code
            except ShellSyntaxError as error:
                yield Write(2, f"{self.name}: syntax error: {error}\n".encode(errors="replace"))
        return None

    def read(self, reading: Reading[Script]) -> Work[Script]:
        """Parse a script whose text is complete. Raises ShellSyntaxError."""
        try:
            while True:
                next(reading)
                yield from self.world.spend(steps=PARTS_A_TURN // 4)
        except StopIteration as done:
            script: Script = done.value
            return script

    # Lists

    def run_script(self, script: Script) -> Execution:
        for before, pipeline, background in script.steps:
            if (before == "&&" and self.code) or (before == "||" and not self.code):
                continue
            if background:  # `&`: the script does not wait for it
                yield from self._in_background(pipeline)
                self.code = 0
                continue
            self.code = yield from self._pipeline(pipeline)
            if self.fails_at_once and self.code and not pipeline.negated and before == ";":
                raise Exit(self.code)
        return self.code

    def _in_background(self, pipeline: Pipeline) -> Execution:
        """Run the part of a background job before it waits; the wait is counted for `wait`, the rest is not run."""
        passed = self.passed
        execution = self._subshell(self._pipeline(pipeline))
        answer: Answer = None
        while True:
            try:
                effect = execution.send(answer)
            except StopIteration:
                break
            if isinstance(effect, Wait) and effect.seconds > 0:
                self.background = max(self.background, effect.seconds)
                break
            answer = yield effect
        execution.close()
        self.passed = passed
        return 0

    def _pipeline(self, pipeline: Pipeline) -> Execution:
        data: Buffer | None = None
        code = 0
        for number, command in enumerate(pipeline.commands):
            execution = self._command(command)
            if len(pipeline.commands) > 1:
                execution = self._subshell(execution)
            if data is not None:
                execution = with_input(execution, bytes(data.data))
            if number < len(pipeline.commands) - 1:
                taken = Buffer(self.world.memory)
                code = yield from capture_output(execution, taken)
                data = taken
                yield from self.world.spend(len(taken.data))
            else:
                code = yield from execution
        return int(code == 0) if pipeline.negated else code

    def _command(self, command: Command) -> Execution:
        match command:
            case Simple():
                return (yield from self._simple(command))
            case Redirected():
                return (yield from self._run_redirected(self._command(command.command), command.redirects))
            case Group():
                execution = self.run_script(command.script)
                return (yield from self._subshell(execution) if command.is_subshell else execution)
            case Loop():
                return (yield from self._loop(command))
            case For():
                return (yield from self._for(command))
            case Case():
                return (yield from self._case(command))
            case Function():
                self._define(command)
                return 0
            case If():
                for condition, then in command.branches:
                    if (yield from self._run_condition(condition)) == 0:
                        return (yield from self.run_script(then))
                return 0 if command.otherwise is None else (yield from self.run_script(command.otherwise))

    def _define(self, function: Function) -> None:
        """Define a function. Raises ShellSyntaxError if it exceeds the bound."""
        before = self.functions.get(function.name)
        is_kept = self._replaced is not None and function.name not in self._replaced
        if not self.world.count_characters(function.size - (0 if before is None or is_kept else before.size)):
            raise ShellSyntaxError("out of memory")
        if self._replaced is not None and is_kept:
            self._replaced[function.name] = before
        self.functions[function.name] = function

    def _restore_functions(self, replaced: dict[str, Function | None]) -> None:
        """Undo the definitions of a subshell."""
        for name, before in replaced.items():
            self.world.count_characters(-self.functions.pop(name).size)
            if before is not None:
                self.functions[name] = before

    def _run_condition(self, condition: Script) -> Execution:
        """Run a condition, whose failure does not end a shell with `set -e`."""
        before, self.fails_at_once = self.fails_at_once, False
        try:
            return (yield from self.run_script(condition))
        finally:
            self.fails_at_once = before

    def _subshell(self, execution: Execution) -> Execution:
        """Run `execution` in a subshell, which begins without traps, and whose trap for EXIT runs at its end.

        Variables, functions, arguments, traps, the working directory and `set -e` are restored afterwards.
        """
        folder, changes = self.world.folder, self.world.watch_variables()
        given, fails_at_once = self.given, self.fails_at_once
        replaced: dict[str, Function | None] = {}
        outer, self._replaced = self._replaced, replaced
        traps, self.traps = self.traps, {}
        try:
            try:
                code = yield from execution
            except Exit as end:
                code = end.code
            except Break:
                code = 0
            return (yield from self.run_exit_trap(code))
        finally:
            self.forget_traps()
            self.traps = traps
            self._replaced = outer
            self._restore_functions(replaced)
            self.given, self.fails_at_once = given, fails_at_once
            self.world.folder = folder
            self.world.stop_watching(changes, undo=True)

    def _case(self, case: Case) -> Execution:
        text = yield from self._text(case.word)
        for patterns, script in case.branches:
            yield from self._count_command()
            for pattern in patterns:
                if (yield from self._matches(pattern, text)):
                    return (yield from self.run_script(script))
        return 0

    def _matches(self, pattern: Word, text: str) -> Work[bool]:
        """Return True if a text matches a pattern, whose quoted parts are literal."""
        expanded = yield from self._pattern(pattern)
        yield from self.world.spend(len(text) + glob_work(expanded, len(text)), lines=1, steps=len(expanded) >> 5)
        return glob(expanded, text)

    # Loops

    def _loop(self, loop: Loop) -> Execution:
        code = 0
        while True:
            changes, since = self.world.watch_variables(), self.passed
            try:
                if ((yield from self._run_condition(loop.condition)) == 0) == loop.until:
                    return code
                try:
                    code = yield from self.run_script(loop.body)
                except Break as end:
                    if not end.again:
                        return 0
            finally:
                self.world.stop_watching(changes)
            yield from self._count_command()
            yield from self._repeat(changes, self.passed - since)

    def _repeat(self, before: Mapping[str, str | None], period: float) -> Execution:
        """Offer to skip iterations that would do the same again; integer variables that change are advanced
        accordingly.
        """
        steps: dict[str, int] = {}
        variables = self.world.environment
        for name, old in before.items():
            value = variables.get(name)
            if old != value:
                if old is None or value is None or not (_INTEGER.fullmatch(old) and _INTEGER.fullmatch(value)):
                    return 0
                steps[name] = int(value) - int(old)
        if period > 0:
            left_out = yield Repeated(period)
            if isinstance(left_out, int):
                self.world.assign({name: str(int(variables[name]) + left_out * step) for name, step in steps.items()})
        return 0

    def _for(self, loop: For) -> Execution:
        code = 0
        for word in self.given if loop.words is None else (yield from self._words(loop.words)):
            self.assign({loop.name: word})
            try:
                code = yield from self.run_script(loop.body)
            except Break as end:
                if not end.again:
                    return 0
            yield from self._count_command()
        return code

    def _count_command(self) -> Execution:
        """Count a command. Many commands that take no time yield to other tasks, and too many wait for ever."""
        self.world.steps += 1
        yield from self.world.spend(steps=1)
        return 0

    def count_waits(self, execution: Execution) -> Execution:
        """Run a program and count the time that it waits."""

        def count(effect: Effect) -> Work[Answer]:
            if isinstance(effect, Wait) and effect.seconds > 0:
                self.passed += effect.seconds
                self.world.steps = 0
            return (yield effect)

        return answer_effects(execution, count)

    # Simple commands

    def _simple(self, command: Simple) -> Execution:
        yield from self._count_command()
        assigned, outputs = {}, self.outputs
        for name, word in command.assignments:
            assigned[name] = yield from self._text(word)
        words = yield from self._words(command.words)
        if not words:
            self.assign(assigned)
            code = self.code if self.outputs > outputs else 0
            return (yield from self._run_redirected(_nothing(code), command.redirects)) if command.redirects else code
        if not assigned:
            return (yield from self._run_redirected(self._run_by_name(words), command.redirects))
        before = {name: self.world.environment.get(name) for name in assigned}
        self.assign(assigned)
        try:
            return (yield from self._run_redirected(self._run_by_name(words), command.redirects))
        finally:
            self.world.stop_watching(before, undo=True)

    def _run_by_name(self, words: list[str]) -> Execution:
        name, rest = words[0], words[1:]
        if name in self.functions:
            return (yield from self._call_function(self.functions[name].body, rest))
        if name == "command" and rest[:1] == ["-v"]:
            return (yield from where(self, rest))
        if name in _RUNNERS:
            code = (yield from self._run_by_name(rest)) if rest else 0
            if name == "exec" and rest:
                raise Exit(code)
            return code
        built_in = BUILT_IN.get(name)
        if built_in is not None:
            return (yield from built_in(self, rest))
        return (yield from self._program(words))

    def _call_function(self, body: Command, given: Sequence[str]) -> Execution:
        """Run the body of a function."""
        if self.depth >= _MOST_DEPTH:
            raise ShellSyntaxError("maximum function recursion depth exceeded")
        before, self.given = self.given, given
        self.depth += 1
        try:
            return (yield from self._command(body))
        except Return as end:
            return end.code
        finally:
            self.given = before
            self.depth -= 1

    def _run_redirected(self, execution: Execution, redirects: Sequence[Redirect]) -> Execution:
        after: list[tuple[str, Buffer, bool]] = []
        for redirect in redirects:
            if isinstance(redirect.target, Document):
                execution = with_input(
                    execution, (yield from self._text(redirect.target.word)).encode(errors="surrogateescape")
                )
                continue
            target = yield from self._text(redirect.target)
            if target in _STREAMS:
                execution = _redirect_stream(execution, redirect.stream, _STREAMS[target])
            elif redirect.operator == "<":
                place = absolute(self.world, target)
                data = b"" if place in _DEVICES else self.world.read(place)
                if data is None:
                    yield Write(2, f"{self.name}: can't open {target}: no such file\n".encode(errors="replace"))
                    return 1
                yield from self.world.spend(len(data))
                execution = with_input(execution, data)
            else:
                taken = Buffer(self.world.memory)
                execution = capture_output(execution, taken, redirect.stream)
                after.append((target, taken, redirect.operator == ">>"))
        code = yield from execution
        for target, taken, more in after:
            yield from self.world.spend(len(taken.data), files=self.world.many_files)
            why = self._write_file(absolute(self.world, target), bytes(taken.data), more=more)
            if why:
                yield Write(2, f"{self.name}: {why.format(target)}\n".encode(errors="replace"))
                return 1
        return code

    def _write_file(self, path: str, data: bytes, *, more: bool) -> str:
        """Write a file. Return an error message with `{}` for the path; "" for success."""
        if path in _DEVICES:
            return ""
        if self.world.is_folder(path):
            return "can't create {}: Is a directory"
        data = (self.world.read(path) or b"") + data if more else data
        return "" if self.world.put(path, data) else "write error: No space left on device"

    def output(self, output: Output) -> Work[str]:
        taken = Buffer(self.world.memory)
        inner = Shell(self.world, self.depth + 1)
        if inner.depth > _MOST_DEPTH:
            raise ShellSyntaxError("nested too deeply")
        inner.functions, inner.given, inner.name = self.functions, self.given, self.name
        inner.code = self.code
        try:
            self.code = yield from capture_output(inner._subshell(inner.run_script(output.script)), taken)
        finally:
            inner.forget_traps()
        self.passed += inner.passed
        self.outputs += 1
        return taken.data.decode(errors="replace").rstrip("\n")


def _nothing(code: int) -> Execution:
    yield from ()
    return code


def _redirect_stream(execution: Execution, stream: int, to: int) -> Execution:
    """Run a command with one of its output streams redirected to the other."""

    def redirect(effect: Effect) -> Work[Answer]:
        if isinstance(effect, Write) and effect.stream == stream:
            effect = Write(to, effect.data)
        return (yield effect)

    return answer_effects(execution, redirect)


def _lines(shell: Shell) -> Execution:
    """Read and run commands line by line; a command that is incomplete at the end of its line reads more lines."""
    while True:
        if shell.world.interactive:
            yield Write(2, f"{shell.world.folder} # ".encode(errors="replace"))
        line = yield ReadLine()
        if not isinstance(line, bytes):
            return (yield from shell.run_exit_trap(shell.code))
        yield from shell.world.spend(len(line), steps=1)
        try:
            script = yield from _line(shell, line.decode(errors="replace"))
        except (ShellSyntaxError, RecursionError) as error:
            yield Write(2, f"sh: syntax error: {error}\n".encode(errors="replace"))
            shell.code = 2
            continue
        try:
            yield from shell.parsed(script)
        except Exit as end:
            return (yield from shell.run_exit_trap(end.code))


def _line(shell: Shell, text: str) -> Work[Script]:
    """Parse the script that begins with the line `text`, reading more lines as needed. Raises ShellSyntaxError."""

    def answer(asked: Ask) -> Work[str | None]:
        if asked is not Ask.MORE:
            yield from shell.world.spend(steps=PARTS_A_TURN // 4)
            return None
        if shell.world.interactive:
            yield Write(2, b"> ")
        line = yield ReadLine()
        yield from shell.world.spend(lines=8)
        return line.decode(errors="replace") if isinstance(line, bytes) else None

    return answer_effects(Reader(text, grows=True).whole(), answer)
