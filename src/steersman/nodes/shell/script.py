"""Scripts as they have been read: commands, and the words that these are made of."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Text:
    """Characters as they are."""

    text: str


@dataclass(frozen=True, slots=True)
class Variable:
    """`$NAME`, or `${NAME:-word}` with the operator between the name and the word.

    Operators are `-`, `=`, `+` and `?`, each also behind a colon, `#`, `##`, `%`, `%%`, and `length` for `${#NAME}`.
    """

    name: str
    operator: str = ""
    word: Word | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """`$(...)`: the output of a script."""

    script: Script


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`$((...))`."""

    expression: str


Part = Text | Variable | Output | Arithmetic


@dataclass(frozen=True, slots=True)
class Word:
    """Parts one after the other, each with whether it is quoted: an unquoted part is split at its blanks."""

    parts: tuple[tuple[Part, bool], ...]


@dataclass(slots=True)
class Document:
    """`<<NAME`: the lines up to NAME, which are read after the command that names it."""

    name: str
    is_literal: bool
    without_tabs: bool
    word: Word = field(default_factory=lambda: Word(()))


@dataclass(frozen=True, slots=True)
class Redirect:
    """`>file`, `>>file`, `<file`, `2>file`, `2>&1`, `<<NAME`."""

    stream: int
    operator: str
    target: Word | Document


@dataclass(frozen=True, slots=True)
class Simple:
    """Assignments, and a command with its arguments."""

    assignments: tuple[tuple[str, Word], ...] = ()
    words: tuple[Word, ...] = ()
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Loop:
    """`while`, or `until`."""

    condition: Script
    body: Script
    until: bool


@dataclass(frozen=True, slots=True)
class For:
    """`for NAME in WORDS`; `words` is None for the arguments of the script."""

    name: str
    words: tuple[Word, ...] | None
    body: Script


@dataclass(frozen=True, slots=True)
class If:
    """Pairs of a condition and its script, and the script after `else`."""

    branches: tuple[tuple[Script, Script], ...]
    otherwise: Script | None


@dataclass(frozen=True, slots=True)
class Case:
    """`case WORD in PATTERN|PATTERN) ...;; esac`."""

    word: Word
    branches: tuple[tuple[tuple[Word, ...], Script], ...]


@dataclass(frozen=True, slots=True)
class Group:
    """`{ ...; }`, or `( ... )`, which leaves variables and the working directory as they are."""

    script: Script
    is_subshell: bool


@dataclass(frozen=True, slots=True)
class Function:
    """`NAME() { ...; }`."""

    name: str
    body: Command
    size: int
    """What it takes, in characters."""


@dataclass(frozen=True, slots=True)
class Redirected:
    """A compound command with redirections."""

    command: Loop | For | If | Case | Group
    redirects: tuple[Redirect, ...]


Command = Simple | Loop | For | If | Case | Group | Function | Redirected


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands of which each reads the output of the one before."""

    commands: tuple[Command, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Script:
    """Pipelines, each with the operator before it (`;`, `&&`, `||`) and whether it runs in the background."""

    steps: tuple[tuple[str, Pipeline, bool], ...] = ()
