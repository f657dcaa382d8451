"""Scripts as they have been read: commands, and the words that these are made of."""

from __future__ import annotations

from msgspec import Struct, field


class Text(Struct, frozen=True):
    """Characters as they are."""

    text: str


class Variable(Struct, frozen=True):
    """`$NAME`, or `${NAME:-word}` with the operator between the name and the word.

    Operators are `-`, `=`, `+` and `?`, each also behind a colon, `#`, `##`, `%`, `%%`, and `length` for `${#NAME}`.
    """

    name: str
    operator: str = ""
    word: Word | None = None


class Output(Struct, frozen=True):
    """`$(...)`: the output of a script."""

    script: Script


class Arithmetic(Struct, frozen=True):
    """`$((...))`."""

    expression: str


Part = Text | Variable | Output | Arithmetic


class Word(Struct, frozen=True):
    """Parts one after the other, each with whether it is quoted: an unquoted part is split at its blanks."""

    parts: tuple[tuple[Part, bool], ...]


class Document(Struct):
    """`<<NAME`: the lines up to NAME, which are read after the command that names it."""

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
    """Assignments, and a command with its arguments."""

    assignments: tuple[tuple[str, Word], ...] = ()
    words: tuple[Word, ...] = ()
    redirects: tuple[Redirect, ...] = ()


class Loop(Struct, frozen=True):
    """`while`, or `until`."""

    condition: Script
    body: Script
    until: bool


class For(Struct, frozen=True):
    """`for NAME in WORDS`; `words` is None for the arguments of the script."""

    name: str
    words: tuple[Word, ...] | None
    body: Script


class If(Struct, frozen=True):
    """Pairs of a condition and its script, and the script after `else`."""

    branches: tuple[tuple[Script, Script], ...]
    otherwise: Script | None


class Case(Struct, frozen=True):
    """`case WORD in PATTERN|PATTERN) ...;; esac`."""

    word: Word
    branches: tuple[tuple[tuple[Word, ...], Script], ...]


class Group(Struct, frozen=True):
    """`{ ...; }`, or `( ... )`, which leaves variables and the working directory as they are."""

    script: Script
    is_subshell: bool


class Function(Struct, frozen=True):
    """`NAME() { ...; }`."""

    name: str
    body: Command
    size: int
    """What it takes, in characters."""


class Redirected(Struct, frozen=True):
    """A compound command with redirections."""

    command: Loop | For | If | Case | Group
    redirects: tuple[Redirect, ...]


Command = Simple | Loop | For | If | Case | Group | Function | Redirected


class Pipeline(Struct, frozen=True):
    """Commands of which each reads the output of the one before."""

    commands: tuple[Command, ...]
    negated: bool = False


class Script(Struct, frozen=True):
    """Pipelines, each with the operator before it (`;`, `&&`, `||`) and whether it runs in the background."""

    steps: tuple[tuple[str, Pipeline, bool], ...] = ()
