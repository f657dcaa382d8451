"""Lexer of templates: plain text, and the tokens of actions (text/template/parse `lex.go`)."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from enum import Enum, auto
from typing import Final, NamedTuple

from steersman.nodes.stages.go_template.values import TemplateError
from steersman.work.patterns import late_pattern


class Token(Enum):
    """Kind of a token."""

    TEXT = auto()
    BEGIN = auto()
    """Start of an action."""
    END = auto()
    """End of an action."""
    SPACE = auto()
    STRING = auto()
    CHARACTER = auto()
    NUMBER = auto()
    FIELD = auto()
    VARIABLE = auto()
    WORD = auto()
    SYMBOL = auto()
    """`|`, `:=`, `=`, `(`, `)`, `,` or `.`."""
    EOF = auto()


class Lexeme(NamedTuple):
    """Token of a template, with its text and the number of its line."""

    token: Token
    text: str
    line: int


_SPACE: Final = " \t\r\n"
_IN_ACTION: Final = late_pattern(
    r"""(?P<SPACE>[ \t\r\n]+)
    | (?P<STRING>"(?:\\.|[^"\\\n])*"|`[^`]*`)
    | (?P<CHARACTER>'(?:\\.|[^'\\\n])+')
    | (?P<NUMBER>[+-]?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+
        |(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+)?)(?!\w))
    | (?P<FIELD>\.[^\W\d]\w*)
    | (?P<VARIABLE>\$\w*)
    | (?P<WORD>[^\W\d]\w*)
    | (?P<SYMBOL>:=|[|=(),.])""",
    re.VERBOSE | re.ASCII,
)
_ENDS_WORD: Final = frozenset((*" \t\r\n.,|:()=", ""))
"""Characters that may follow a field, a variable or a word, besides the end of the action."""
_TRIMS: Final = late_pattern(r"[ \t\r\n]+-}}")


def lexemes(source: str) -> Iterator[Lexeme]:
    """Yield the tokens in order, EOF last. Raises TemplateError."""
    at, line, trims = 0, 1, False
    while True:
        begin = source.find("{{", at)
        text = source[at:] if begin < 0 else source[at:begin]
        shown = text.lstrip(_SPACE) if trims else text
        opens_trimming = begin >= 0 and source[begin + 2 : begin + 3] == "-" and source[begin + 3 : begin + 4] in _SPACE
        opens_trimming = opens_trimming and begin + 3 < len(source)
        if opens_trimming:
            shown = shown.rstrip(_SPACE)
        if shown:
            yield Lexeme(Token.TEXT, shown, line)
        line += text.count("\n")
        if begin < 0:
            yield Lexeme(Token.EOF, "", line)
            return
        at = begin + (4 if opens_trimming else 2)
        if source.startswith("/*", at):
            end, trims = _comment_end(source, at, line)
            line += source.count("\n", at, end)
            at = end
            continue
        yield Lexeme(Token.BEGIN, "{{", line)
        at, line, trims = yield from _action(source, at, line)


def _comment_end(source: str, at: int, line: int) -> tuple[int, bool]:
    """Return the position after a comment's action, and True if the comment trims the text that follows."""
    end = source.find("*/", at + 2)
    if end < 0:
        raise TemplateError(f"line {line}: unclosed comment")
    if source.startswith("}}", end + 2):
        return end + 4, False
    found = _TRIMS.match(source, end + 2)
    if found is None:
        raise TemplateError(f"line {line}: comment ends before closing delimiter")
    return found.end(), True


def _action(source: str, at: int, line: int) -> Generator[Lexeme, None, tuple[int, int, bool]]:
    """Yield the tokens of one action.

    Return the position after it, the line there, and True if it trims what follows.
    """
    depth = 0
    while True:
        trimming = _TRIMS.match(source, at)
        if trimming is not None or source.startswith("}}", at):
            if depth:
                raise TemplateError(f"line {line}: unclosed left paren")
            yield Lexeme(Token.END, "}}", line)
            if trimming is not None:
                return trimming.end(), line + source.count("\n", at, trimming.end()), True
            return at + 2, line, False
        found = _IN_ACTION.match(source, at)
        if found is None:
            if at >= len(source):
                raise TemplateError(f"line {line}: unclosed action")
            raise TemplateError(f"line {line}: unexpected {source[at]!r} in an action")
        token, text = Token[found.lastgroup or ""], found[0]
        at = found.end()
        whole = source[at : at + 1] in _ENDS_WORD or source.startswith("}}", at)
        if token in (Token.FIELD, Token.VARIABLE, Token.WORD) and not whole:
            raise TemplateError(f"line {line}: bad character {source[at]!r} behind {text}")
        depth += {"(": 1, ")": -1}.get(text, 0) if token is Token.SYMBOL else 0
        if depth < 0:
            raise TemplateError(f"line {line}: unexpected right paren")
        yield Lexeme(token, text, line)
        line += text.count("\n")
