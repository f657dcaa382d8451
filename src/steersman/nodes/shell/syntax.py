"""Scripts as they are written, made into what can be run: the part of POSIX's shell language that scripts of manifests
are made of."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from steersman.net.ascii import is_digits

_MOST_PARTS: Final = 5000
"""Commands, words and redirections of a script."""
_REDIRECT: Final = re.compile("([012]?)(>>|>|<)(&[12])?", re.ASCII)
MOST_CHARACTERS: Final = 64 << 10
"""Of one script."""
_MOST_DEPTH: Final = 32
_NAME: Final = re.compile("[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_ASSIGNMENT: Final = re.compile("([A-Za-z_][A-Za-z0-9_]*)=", re.ASCII)
_OPERATOR: Final = re.compile("&&|\\|\\||;;|>>|<<|[;|&\n()<>]|")
_PLAIN_WORD: Final = re.compile(r"[A-Za-z0-9_!{}]+(?=[\s;&|()<>]|$)", re.ASCII)
_PLAIN: Final = re.compile(r"""[^\s;&|()<>'"\\$`]+""", re.ASCII)
_ENDS: Final = frozenset({"then", "do", "done", "else", "elif", "fi", "}"})


class ShellSyntaxError(ValueError):
    """A script that cannot be read; the text says what was not expected."""


@dataclass(frozen=True, slots=True)
class Text:
    """Characters as they are."""

    text: str


@dataclass(frozen=True, slots=True)
class Variable:
    """`$NAME`, or `${NAME:-default}`."""

    name: str
    default: Word | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """`$(...)`: what a script prints."""

    script: Script


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`$((...))`."""

    expression: str


Part = Text | Variable | Output | Arithmetic


@dataclass(frozen=True, slots=True)
class Word:
    """Parts one after the other, each with whether it is quoted: what is not is split at its blanks."""

    parts: tuple[tuple[Part, bool], ...]

    @property
    def plain(self) -> str | None:
        """Its characters, if it is made of nothing else and nothing of it is quoted."""
        if all(isinstance(part, Text) and not quoted for part, quoted in self.parts):
            return "".join(part.text for part, _ in self.parts if isinstance(part, Text))
        return None


@dataclass(frozen=True, slots=True)
class Redirect:
    """`>file`, `>>file`, `<file`, `2>file`, `2>&1`."""

    stream: int
    operator: str
    target: Word


@dataclass(frozen=True, slots=True)
class Simple:
    """Assignments and a command with what it is given."""

    assignments: tuple[tuple[str, Word], ...] = ()
    words: tuple[Word, ...] = ()
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Loop:
    """`while` (or `until`) a script succeeds, another one runs."""

    condition: Script
    body: Script
    until: bool


@dataclass(frozen=True, slots=True)
class For:
    """A script for each word, which a variable has."""

    name: str
    words: tuple[Word, ...]
    body: Script


@dataclass(frozen=True, slots=True)
class If:
    """Pairs of a condition and what is run if it holds, and what is run if none does."""

    branches: tuple[tuple[Script, Script], ...]
    otherwise: Script | None


@dataclass(frozen=True, slots=True)
class Group:
    """`{ ...; }` or `( ... )`."""

    script: Script


@dataclass(frozen=True, slots=True)
class Redirected:
    """A loop, a condition or a group whose streams lead elsewhere."""

    command: Loop | For | If | Group
    redirects: tuple[Redirect, ...]


Command = Simple | Loop | For | If | Group | Redirected


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands of which each reads what the one before has printed."""

    commands: tuple[Command, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Script:
    """Pipelines with what stands before each: `;`, `&&`, `||`, and whether it is sent to the background."""

    steps: tuple[tuple[str, Pipeline, bool], ...] = field(default=())


def parse(text: str) -> Script:
    """A script. Raises ShellSyntaxError."""
    if len(text) > MOST_CHARACTERS:
        raise ShellSyntaxError("script too long")
    reader = _Reader(text)
    script = reader.script()
    if reader.operator() or reader.at < len(text):
        raise ShellSyntaxError(f'unexpected "{text[reader.at : reader.at + 10]}"')
    return script


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._depth = 0
        self._parts = 0

    # Lists

    def script(self) -> Script:
        """Pipelines up to the end, a closing word or a closing parenthesis."""
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise ShellSyntaxError("nested too deeply")
        steps: list[tuple[str, Pipeline, bool]] = []
        before = ";"
        while True:
            self._blanks(lines=True)
            if self.at >= len(self.text) or self.operator() in (")", ";;") or self._ahead() in _ENDS:
                break
            self._count()
            pipeline = self._pipeline()
            operator = self.operator()
            if operator in (";", "\n", "&", "&&", "||"):
                self.at += len(operator)
            steps.append((before, pipeline, operator == "&"))
            before = operator if operator in ("&&", "||") else ";"
            if not operator or operator in (")", ";;"):
                break
        if before != ";":
            raise ShellSyntaxError("unexpected end of file")
        self._depth -= 1
        return Script(tuple(steps))

    def _count(self) -> None:
        """Counts a part of the script. Raises ShellSyntaxError for too many."""
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise ShellSyntaxError("script too long")

    def _pipeline(self) -> Pipeline:
        negated = self._ahead() == "!"
        if negated:
            self._word_is("!")
        commands = [self._command()]
        while self.operator() == "|":
            self.at += 1
            self._blanks(lines=True)
            self._count()
            commands.append(self._command())
        return Pipeline(tuple(commands), negated)

    # Commands

    def _command(self) -> Command:
        compound = self._compound()
        if compound is None:
            return self._simple()
        redirects: list[Redirect] = []
        self._blanks()
        while (redirect := self._redirect()) is not None:
            redirects.append(redirect)
            self._blanks()
        return Redirected(compound, tuple(redirects)) if redirects else compound

    def _compound(self) -> Loop | For | If | Group | None:
        ahead = self._ahead()
        if self.operator() == "(" or ahead == "{":
            return self._group(")" if ahead != "{" else "}")
        if ahead in ("while", "until"):
            return self._loop(ahead)
        if ahead == "for":
            return self._for()
        if ahead == "if":
            return self._if()
        return None

    def _group(self, end: str) -> Group:
        self._blanks()
        self.at += 1
        script = self.script()
        self._blanks(lines=True)
        if self.text[self.at : self.at + 1] != end:
            raise ShellSyntaxError(f'unexpected end of file (expecting "{end}")')
        self.at += 1
        return Group(script)

    def _loop(self, kind: str) -> Loop:
        self._word_is(kind)
        condition = self.script()
        self._word_is("do")
        body = self.script()
        self._word_is("done")
        return Loop(condition, body, until=kind == "until")

    def _for(self) -> For:
        self._word_is("for")
        name = self._ahead()
        if _NAME.fullmatch(name) is None:
            raise ShellSyntaxError("bad for loop variable")
        self._word_is(name)
        words: list[Word] = []
        if self._ahead() == "in":
            self._word_is("in")
            while (word := self._word()) is not None:
                self._count()
                words.append(word)
        if self.operator() in (";", "\n"):
            self.at += 1
        self._word_is("do")
        body = self.script()
        self._word_is("done")
        return For(name, tuple(words), body)

    def _if(self) -> If:
        self._word_is("if")
        branches: list[tuple[Script, Script]] = []
        otherwise: Script | None = None
        while True:
            condition = self.script()
            self._word_is("then")
            branches.append((condition, self.script()))
            if self._ahead() != "elif":
                break
            self._word_is("elif")
        if self._ahead() == "else":
            self._word_is("else")
            otherwise = self.script()
        self._word_is("fi")
        return If(tuple(branches), otherwise)

    def _simple(self) -> Simple:
        assignments: list[tuple[str, Word]] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            self._blanks()
            self._count()
            if (redirect := self._redirect()) is not None:
                redirects.append(redirect)
                continue
            assigned = None if words else _ASSIGNMENT.match(self.text, self.at)
            if assigned is not None:
                self.at = assigned.end()
                assignments.append((assigned[1], self._word() or Word(())))
                continue
            word = self._word()
            if word is None:
                break
            words.append(word)
        if not (assignments or words or redirects):
            raise ShellSyntaxError(f'unexpected "{self.operator() or "end of file"}"')
        return Simple(tuple(assignments), tuple(words), tuple(redirects))

    def _redirect(self) -> Redirect | None:
        found = _REDIRECT.match(self.text, self.at)
        if found is None:
            return None
        self._count()
        self.at = found.end()
        stream = int(found[1]) if found[1] else 0 if found[2] == "<" else 1
        if found[3]:
            return Redirect(stream, found[2], Word(((Text(found[3]), False),)))
        self._blanks()
        target = self._word()
        if target is None:
            raise ShellSyntaxError("unexpected redirection")
        return Redirect(stream, found[2], target)

    # Words

    def _blanks(self, *, lines: bool = False) -> None:
        while self.at < len(self.text):
            here = self.text[self.at]
            if here == "\\" and self.text[self.at + 1 : self.at + 2] == "\n":
                self.at += 2
            elif here == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif here in " \t\r" or (lines and here in "\n;" and not self.text.startswith(";;", self.at)):
                self.at += 1
            else:
                return

    def operator(self) -> str:
        """The operator that is next, "" if there is none."""
        self._blanks()
        found = _OPERATOR.match(self.text, self.at)
        return found[0] if found is not None else ""

    def _ahead(self) -> str:
        """The next word, if it is a plain one; it stays where it is."""
        self._blanks(lines=True)
        found = _PLAIN_WORD.match(self.text, self.at)
        return found[0] if found is not None else ""

    def _word_is(self, wanted: str) -> None:
        if self._ahead() != wanted:
            raise ShellSyntaxError(f'unexpected end of file (expecting "{wanted}")')
        self.at += len(wanted)

    def _word(self) -> Word | None:
        self._blanks()
        parts: list[tuple[Part, bool]] = []
        while self.at < len(self.text):
            here = self.text[self.at]
            if here in " \t\r\n;&|()<>":
                break
            if here == "'":
                end = self.text.find("'", self.at + 1)
                if end < 0:
                    raise ShellSyntaxError("unterminated quoted string")
                parts.append((Text(self.text[self.at + 1 : end]), True))
                self.at = end + 1
            elif here == '"':
                self.at += 1
                self._quoted(parts)
            elif here == "\\":
                parts.append((Text(self.text[self.at + 1 : self.at + 2]), True))
                self.at += 2
            elif here in "$`":
                parts.append((self._expansion(), False))
            else:
                found = _PLAIN.match(self.text, self.at)
                assert found is not None
                parts.append((Text(found[0]), False))
                self.at = found.end()
        return Word(tuple(parts)) if parts else None

    def _quoted(self, parts: list[tuple[Part, bool]]) -> None:
        text: list[str] = []
        while True:
            if self.at >= len(self.text):
                raise ShellSyntaxError("unterminated quoted string")
            here = self.text[self.at]
            if here in '"$`':
                parts.append((Text("".join(text)), True))
                text.clear()
                if here == '"':
                    self.at += 1
                    return
                parts.append((self._expansion(), True))
            elif here == "\\" and self.text[self.at + 1 : self.at + 2] in ('"', "$", "`", "\\", "\n"):
                text.append(self.text[self.at + 1].removesuffix("\n"))
                self.at += 2
            else:
                text.append(here)
                self.at += 1

    def _expansion(self) -> Part:
        text = self.text
        if text[self.at] == "`":
            end = text.find("`", self.at + 1)
            if end < 0:
                raise ShellSyntaxError("unterminated quoted string")
            inner, self.at = text[self.at + 1 : end], end + 1
            return Output(parse(inner))
        if text.startswith("$((", self.at):
            end = text.find("))", self.at)
            if end < 0:
                raise ShellSyntaxError('unexpected end of file (expecting "))")')
            expression, self.at = text[self.at + 3 : end], end + 2
            return Arithmetic(expression)
        if text.startswith("$(", self.at):
            self.at += 2
            script = self.script()
            self._blanks(lines=True)
            if text[self.at : self.at + 1] != ")":
                raise ShellSyntaxError('unexpected end of file (expecting ")")')
            self.at += 1
            return Output(script)
        if text.startswith("${", self.at):
            return self._braced()
        found = _NAME.match(text, self.at + 1)
        if found is not None:
            self.at = found.end()
            return Variable(found[0])
        special = text[self.at + 1 : self.at + 2]
        if special and (special in "?$#@*!" or is_digits(special)):
            self.at += 2
            return Variable(special)
        self.at += 1
        return Text("$")

    def _braced(self) -> Variable:
        end = self.text.find("}", self.at)
        if end < 0:
            raise ShellSyntaxError('unexpected end of file (expecting "}")')
        inner, self.at = self.text[self.at + 2 : end], end + 1
        name, separator, default = inner.partition(":-")
        if not separator:
            name, separator, default = inner.partition("-")
        if _NAME.fullmatch(name) is None and not is_digits(name):
            raise ShellSyntaxError("bad substitution")
        if not separator:
            return Variable(name)
        reader = _Reader(default)
        return Variable(name, reader._word() or Word(()))
