"""Syntax tree of parsed scripts: commands, and the words that they consist of."""

from __future__ import annotations

from msgspec import Struct, field


class Text(Struct, frozen=True):
    """Literal characters."""

    text: str


class Variable(Struct, frozen=True):
    """`$NAME`, or `${NAME:-word}` with an operator between the name and the word.

    Operators are `-`, `=`, `+` and `?`, each also with a colon before it, `#`, `##`, `%`, `%%`, and `length` for
    `${#NAME}`.
    """

    name: str
    operator: str = ""
    word: Word | None = None


class Output(Struct, frozen=True):
    """`$(...)`: the output of a script."""

    script: Script


class Arithmetic(Struct, frozen=True):
    """`$((...))`: the value of an arithmetic expression."""

    expression: str


Part = Text | Variable | Output | Arithmetic


class Word(Struct, frozen=True):
    """Parts of a word, each with True if it is quoted. An unquoted part is split at blanks."""

    parts: tuple[tuple[Part, bool], ...]


class Document(Struct):
    """Here-document `<<NAME`: the lines up to NAME, which follow after the line of the command."""

    name: str
    is_literal: bool
    without_tabs: bool
    word: Word = field(default_factory=lambda: Word(()))


class Redirect(Struct, frozen=True):
    """`>file`, `>>file`, `<file`, `2>file`, `2>&1`, `<<NAME`."""

    stream: int
    operator: str
    target: Word | Document


class Simple(Struct, frozen=True):
    """Simple command: assignments, and a command with its arguments."""

    assignments: tuple[tuple[str, Word], ...] = ()
    words: tuple[Word, ...] = ()
    redirects: tuple[Redirect, ...] = ()


class Loop(Struct, frozen=True):
    """`while` or `until` loop."""

    condition: Script
    body: Script
    until: bool


class For(Struct, frozen=True):
    """`for NAME in WORDS`; `words` is None for the script's arguments."""

    name: str
    words: tuple[Word, ...] | None
    body: Script


class If(Struct, frozen=True):
    """`if`: pairs of a condition and its script, and the script after `else`."""

    branches: tuple[tuple[Script, Script], ...]
    otherwise: Script | None


class Case(Struct, frozen=True):
    """`case WORD in PATTERN|PATTERN) ...;; esac`."""

    word: Word
    branches: tuple[tuple[tuple[Word, ...], Script], ...]


class Group(Struct, frozen=True):
    """`{ ...; }`, or the subshell `( ... )`, which does not change variables and working directory."""

    script: Script
    is_subshell: bool


class Function(Struct, frozen=True):
    """`NAME() { ...; }`."""

    name: str
    body: Command
    size: int
    """Characters that it counts for in the shell's bounds."""


class Redirected(Struct, frozen=True):
    """Compound command with redirections."""

    command: Loop | For | If | Case | Group
    redirects: tuple[Redirect, ...]


Command = Simple | Loop | For | If | Case | Group | Function | Redirected


class Pipeline(Struct, frozen=True):
    """Commands, each of which reads the output of the one before."""

    commands: tuple[Command, ...]
    negated: bool = False


class Script(Struct, frozen=True):
    """Pipelines, each with the operator before it (`;`, `&&`, `||`) and True if it runs in the background."""

    steps: tuple[tuple[str, Pipeline, bool], ...] = ()
