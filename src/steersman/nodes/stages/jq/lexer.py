"""Tokens of jq expressions."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from steersman.work.patterns import late_pattern

MOST_SOURCE: Final = 1 << 14
"""Characters of an expression."""
KEYWORDS: Final = frozenset(
    {
        *("def", "if", "then", "elif", "else", "end", "as", "reduce", "foreach", "try", "catch"),
        *("and", "or", "label", "import", "include", "__loc__"),
    }
)
_TOKEN: Final = late_pattern(
    r"(?P<space>[ \t\r\n]++|#[^\n]*+)"
    r"|(?P<number>(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?)"
    r"|(?P<field>\.[a-zA-Z_][a-zA-Z0-9_]*+)"
    r"|(?P<variable>\$(?:__loc__|[a-zA-Z_][a-zA-Z0-9_]*+))"
    r"|(?P<format>@[a-zA-Z0-9_]++)"
    r"|(?P<name>[a-zA-Z_][a-zA-Z0-9_]*+)"
    r"|(?P<operator>//=|\|=|\+=|-=|\*=|/=|%=|==|!=|<=|>=|//|\.\.|[.\[\](){}|,:;=<>+\-*/%?\"])",
    re.ASCII,
)
_PLAIN: Final = late_pattern(r'[^"\\]++')
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"'}
_MOST_DEPTH: Final = 64
"""Expressions within each other in a text."""


class ExpressionError(ValueError):
    """An expression cannot be parsed. The text says why."""


class Token(NamedTuple):
    """Token: its kind, its text, and for a string its parts, which are texts and lists of tokens."""

    kind: str
    text: str
    parts: tuple[Any, ...] = ()


END: Final = Token("end", "")


def tokens_of(source: str) -> list[Token]:
    """Return the tokens of an expression. Raises ExpressionError."""
    if len(source) > MOST_SOURCE:
        raise ExpressionError(f"an expression of more than {MOST_SOURCE} characters")
    found, at = _tokens(source, 0, 0)
    if at < len(source):
        raise ExpressionError("syntax error, unexpected ')'")
    return found


def _tokens(source: str, at: int, depth: int) -> tuple[list[Token], int]:
    """Return the tokens up to the end or to an unmatched parenthesis, and its place."""
    if depth > _MOST_DEPTH:
        raise ExpressionError("syntax error, expressions nest too deeply")
    found: list[Token] = []
    opened = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise ExpressionError(f"syntax error, unexpected {source[at]!r}")
        kind, text = str(match.lastgroup), match[0]
        if text == '"':
            token, at = _string(source, at + 1, depth)
            found.append(token)
            continue
        opened += (text == "(") - (text == ")")
        if opened < 0:
            return found, at
        at = match.end()
        if kind != "space":
            found.append(Token("keyword" if kind == "name" and text in KEYWORDS else kind, text))
    return found, at


def _string(source: str, at: int, depth: int) -> tuple[Token, int]:
    """Return the token of a string that begins behind its quote, and the place behind it."""
    parts: list[Any] = []
    while at < len(source):
        if plain := _PLAIN.match(source, at):
            parts.append(plain[0])
            at = plain.end()
            continue
        if source[at] == '"':
            return Token("string", '"', tuple(parts)), at + 1
        escape = source[at + 1 : at + 2]
        at += 2
        if escape == "(":
            inside, at = _tokens(source, at, depth + 1)
            if source[at : at + 1] != ")":
                break
            parts.append(inside)
            at += 1
        elif escape == "u" and re.fullmatch("[0-9a-fA-F]{4}", source[at : at + 4], re.ASCII):
            code, at = int(source[at : at + 4], 16), at + 4
            low = re.fullmatch(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})", source[at : at + 6], re.ASCII)
            if 0xD800 <= code < 0xDC00 and low:
                code, at = 0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00, at + 6
            parts.append("\ufffd" if 0xD800 <= code < 0xE000 else chr(code))
        elif escape in _ESCAPES:
            parts.append(_ESCAPES[escape])
        else:
            raise ExpressionError("syntax error, invalid escape in a string")
    raise ExpressionError("syntax error, a string does not end")
