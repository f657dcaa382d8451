"""Expansion of the words of a script: variables, command substitution, arithmetic, field splitting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from steersman.net.ascii import is_digits
from steersman.nodes.shell import wildcards
from steersman.nodes.shell.effects import Execution, Work, World, Write
from steersman.nodes.shell.numbers import arithmetic
from steersman.nodes.shell.patterns import glob_work, shorter
from steersman.nodes.shell.script import Arithmetic, Function, Output, Script, Text, Variable, Word
from steersman.nodes.shell.syntax import Reading, ShellSyntaxError
from steersman.nodes.shell.wildcards import Pieces
from steersman.work.patterns import late_pattern

_MOST_CHARACTERS: Final = 1 << 18
"""Characters of the words of one command."""
_MOST_WORDS: Final = 1 << 14
"""Words of one command."""
_MATCHED_AT_ONCE: Final = 128
"""Words that are matched with paths between two effects."""
_SPLIT_AT_ONCE: Final = 1 << 12
"""Characters that are split into words between two effects."""
_PIECES: Final = 64
"""Parts of words that are expanded between two effects."""
_BLANKS: Final = late_pattern("[ \\t\\n]+")
_TRAP_ITSELF: Final = 128
"""Overhead of a trap in characters."""


def _has_text(pieces: Pieces) -> bool:
    return any(text for text, _ in pieces)


class Exit(Exception):
    """Ends the shell with an exit code."""

    def __init__(self, code: int) -> None:
        self.code = code


class Return(Exit):
    """Ends a function; outside of a function, the script."""


class Break(Exception):
    """Ends a loop, or with `again` only the current iteration."""

    def __init__(self, *, again: bool) -> None:
        self.again = again


class Expansion:
    """Variables and arguments of one shell, and the expansion of its words."""

    def __init__(self, world: World, depth: int) -> None:
        self.world = world
        self.depth = depth
        self.code = 0
        """Exit code of the last command."""
        self.name = "sh"
        self._pieces = 0
        """Parts of words expanded so far."""
        self.outputs = 0
        """Command substitutions done so far."""
        self.given: Sequence[str] = ()
        """Arguments of the script, or of the current function."""
        self.passed = 0.0
        """Seconds that its commands have waited."""
        self.background = 0.0
        """Seconds that its longest background job takes."""
        self.fails_at_once = False
        """True after `set -e`."""
        self.functions: dict[str, Function] = {}
        """Functions by name. The shell of a command substitution shares them with the shell around it."""
        self.traps: dict[str, str] = {}
        """Commands of traps by signal; the shell itself raises only EXIT."""

    def output(self, output: Output) -> Work[str]:
        """Run the script of a command substitution and return its output."""
        raise NotImplementedError

    def read(self, reading: Reading[Script]) -> Work[Script]:
        """Parse a script whose text is complete. Raises ShellSyntaxError."""
        raise NotImplementedError

    def run_script(self, script: Script) -> Execution:
        """Run a script in this shell. Raises Exit, Break."""
        raise NotImplementedError

    def count_waits(self, execution: Execution) -> Execution:
        """Run a program and count the time that it waits."""
        raise NotImplementedError

    def assign(self, values: Mapping[str, str]) -> None:
        """Set variables. Raises ShellSyntaxError if they exceed the bound."""
        if not self.world.assign(values):
            raise ShellSyntaxError("out of memory")

    def set_trap(self, signal: str, text: str) -> None:
        """Set the command of a trap; "" removes it. Raises ShellSyntaxError if it exceeds the bound."""
        before = self.traps.pop(signal, "")
        self.world.count_characters(-len(signal) - len(before) - _TRAP_ITSELF if before else 0)
        if text:
            if not self.world.count_characters(len(signal) + len(text) + _TRAP_ITSELF):
                raise ShellSyntaxError("out of memory")
            self.traps[signal] = text

    def forget_traps(self) -> None:
        """Remove all traps."""
        for signal in tuple(self.traps):
            self.set_trap(signal, "")

    def _pattern(self, word: Word) -> Work[str]:
        pieces: list[str] = []
        room = _MOST_CHARACTERS
        for part, quoted in word.parts:
            text = part.text if isinstance(part, Text) else (yield from self._part(part))
            room = yield from self._within(room, text)
            pieces.append(wildcards.quoted(text) if quoted else text)
        return "".join(pieces)

    def _words(self, words: Sequence[Word]) -> Work[list[str]]:
        """Return the expanded words of a command. Raises ShellSyntaxError if they are too long or too many."""
        fields: list[str | Pieces] = []
        room = _MOST_CHARACTERS
        for word in words:
            pieces: Pieces = []
            begun = False
            for part, quoted in word.parts:
                if isinstance(part, Variable) and part.name == "@" and quoted and not part.operator:
                    for number, each in enumerate(self.given):
                        room = yield from self._within(room, each)
                        if number:
                            fields.append(pieces)
                            pieces = []
                        pieces.append((each, True))
                        begun = True
                    continue
                text = part.text if isinstance(part, Text) else (yield from self._part(part))
                room = yield from self._within(room, text)
                if quoted or isinstance(part, Text):
                    pieces.append((text, quoted))
                    begun = True
                    continue
                pieces, begun = yield from self._split(text, fields, pieces, begun=begun)
                if len(fields) > _MOST_WORDS:
                    raise ShellSyntaxError("argument list too long")
            if begun or _has_text(pieces):
                fields.append(pieces)
        return (yield from self._matched(fields))

    def _split(self, text: str, found: list[str | Pieces], pieces: Pieces, *, begun: bool) -> Work[tuple[Pieces, bool]]:
        """Split an unquoted text into words, which are added to `found`.

        Return the pieces of the last word, and if it has begun.

        A word that consists of one piece is added as a string: a list of pieces for each of many words would be much
        garbage.
        """
        for at in range(0, len(text), _SPLIT_AT_ONCE):
            first, *others = _BLANKS.split(text[at : at + _SPLIT_AT_ONCE])
            pieces.append((first, False))
            begun = begun or bool(first)
            number = len(others)
            if others:
                if begun or _has_text(pieces):
                    found.append(pieces)
                found += [each for each in others[:-1] if each]
                pieces, begun = [(others[-1], False)], bool(others[-1])
            yield from self.world.spend(len(text[at : at + _SPLIT_AT_ONCE]), lines=number + 1)
        return pieces, begun

    def _matched(self, words: list[str | Pieces]) -> Work[list[str]]:
        """Return words with wildcards replaced by the paths that they match.

        Raises ShellSyntaxError if these are too long.
        """
        expanded: list[str] = []
        room = _MOST_CHARACTERS
        for number, word in enumerate(words):
            if not (number + 1) % _MATCHED_AT_ONCE:
                yield from self.world.spend(lines=_MATCHED_AT_ONCE)
            pieces = [(word, False)] if isinstance(word, str) else word
            paths = yield from wildcards.matching(self.world, pieces)
            if len(paths) > 1:
                for path in paths:
                    room = yield from self._within(room, path)
            expanded += paths
            if len(expanded) > _MOST_WORDS:
                raise ShellSyntaxError("argument list too long")
        return expanded

    def _text(self, word: Word) -> Work[str]:
        pieces: list[str] = []
        room = _MOST_CHARACTERS
        for part, _ in word.parts:
            pieces.append(part.text if isinstance(part, Text) else (yield from self._part(part)))
            room = yield from self._within(room, pieces[-1])
        return "".join(pieces)

    def _within(self, room: int, text: str) -> Work[int]:
        """Return the number of characters that are left after `text`. Raises ShellSyntaxError if it is too long."""
        if len(text) > room:
            raise ShellSyntaxError("argument list too long")
        self._pieces += 1
        if len(text) >= 1 << 10 or not self._pieces % _PIECES:
            yield from self.world.spend(len(text), steps=_PIECES >> 2)
        return room - len(text)

    def _part(self, part: Variable | Output | Arithmetic) -> Work[str]:
        match part:
            case Output():
                return (yield from self.output(part))
            case Arithmetic():
                yield from self.world.spend(len(part.expression))
                return str(arithmetic(part.expression, self.world.environment))
            case Variable():
                return (yield from self._variable(part))

    def _variable(self, variable: Variable) -> Work[str]:
        value, operator = self._value(variable.name), variable.operator
        if operator == "length":
            return str(len(value))
        if variable.word is None:
            return value
        if operator[0] in "#%":
            pattern = yield from self._pattern(variable.word)
            yield from self.world.spend(2 * len(value) + glob_work(pattern, len(value)))
            return shorter(pattern, value, operator)
        is_set = bool(value) or (variable.name in self.world.environment and ":" not in operator)
        match operator[-1]:
            case "+":
                return (yield from self._text(variable.word)) if is_set else ""
            case _ if is_set:
                return value
            case "?":
                why = (yield from self._text(variable.word)) or "parameter not set"
                yield Write(2, f"{self.name}: {variable.name}: {why}\n".encode(errors="replace"))
                raise Exit(2)
        value = yield from self._text(variable.word)
        if operator[-1] == "=":
            self.assign({variable.name: value})
        return value

    def _value(self, name: str) -> str:
        match name:
            case "?":
                return str(self.code)
            case "$" | "!":
                return "1"
            case "#":
                return str(len(self.given))
            case "@" | "*":
                return " ".join(self.given)
            case "0":
                return self.name
        if is_digits(name):
            number = int(name[:4])
            return self.given[number - 1] if number <= len(self.given) else ""
        return self.world.environment.get(name, "")
