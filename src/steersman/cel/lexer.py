"""Splitting CEL's text into tokens (CEL language definition, "Lexical elements")."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from steersman.work.patterns import late_pattern

SYMBOLS: Final = {
    "==": 1,
    "!=": 2,
    "in": 3,
    "<": 4,
    "<=": 5,
    ">=": 6,
    ">": 7,
    "&&": 8,
    "||": 9,
    "[": 10,
    "]": 11,
    "{": 12,
    "}": 13,
    "(": 14,
    ")": 15,
    ".": 16,
    ",": 17,
    "-": 18,
    "!": 19,
    "?": 20,
    ":": 21,
    "+": 22,
    "*": 23,
    "/": 24,
    "%": 25,
    "true": 26,
    "false": 27,
    "null": 28,
}
"""Tokens with a fixed text. Messages list the expected tokens in the order of the numbers."""

EOF: Final = -1
OPERAND: Final = -3
"""Not a token, but a placeholder for an operand that could not be parsed."""
MINUS: Final = SYMBOLS["-"]
TRUE: Final = SYMBOLS["true"]
FALSE: Final = SYMBOLS["false"]
NULL: Final = SYMBOLS["null"]
NUM_FLOAT: Final = 31
NUM_INT: Final = 32
NUM_UINT: Final = 33
STRING: Final = 34
BYTES: Final = 35
IDENTIFIER: Final = 36
ESC_IDENTIFIER: Final = 37

_ESCAPE = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_STRING = (
    rf'(?:"""(?:{_ESCAPE}|[^\\])*?"""'
    rf"|'''(?:{_ESCAPE}|[^\\])*?'''"
    rf'|"(?:{_ESCAPE}|[^\\"\n\r])*"'
    rf"|'(?:{_ESCAPE}|[^\\'\n\r])*'"
    r'|[rR]"""[\s\S]*?"""'
    r"|[rR]'''[\s\S]*?'''"
    r'|[rR]"[^"\n\r]*"'
    r"|[rR]'[^'\n\r]*')"
)
_TOKEN = late_pattern(
    r"(?P<space>[\t \r\n\f]+|//[^\n]*)"
    rf"|(?P<bytes>[bB]{_STRING})"
    rf"|(?P<string>{_STRING})"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<uint>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])"
    r"|(?P<int>0x[0-9a-fA-F]+|[0-9]+)"
    r"|(?P<escaped>`[A-Za-z0-9_./ -]+`)"
    r"|(?P<symbol>==|!=|<=|>=|&&|\|\||[<>\[\]{}().,\-!?:+*/%])"
)
_KINDS: Final = {
    "bytes": BYTES,
    "string": STRING,
    "float": NUM_FLOAT,
    "uint": NUM_UINT,
    "int": NUM_INT,
    "escaped": ESC_IDENTIFIER,
}


class Token(NamedTuple):
    """A token; `text` is its spelling."""

    kind: int
    text: str
    offset: int


def tokenize(text: str, report: Callable[[int, str], None]) -> tuple[list[Token], list[tuple[int, int]]]:
    """Return the tokens without whitespace and comments, ending with EOF, and the ranges of unrecognized text.

    Unrecognized text is reported and skipped.
    """
    tokens = []
    unknown = []
    position, end = 0, len(text)
    match = _TOKEN.match
    while position < end:
        found = match(text, position)
        if found is None:
            start, position = position, _skip_unknown(text, position, report)
            unknown.append((start, position))
            continue
        group, value = found.lastgroup, found.group()
        if group == "word" or group == "symbol":
            tokens.append(Token(SYMBOLS.get(value, IDENTIFIER), value, position))
        elif group != "space":
            tokens.append(Token(_KINDS[group or ""], value, position))
        position = found.end()
    tokens.append(Token(EOF, "<EOF>", end))
    return tokens, unknown


_PREFIX = late_pattern(
    rf"[bB]?(?:[rR](?:\"\"\"[\s\S]*|'''[\s\S]*|\"[^\"\n\r]*|'[^'\n\r]*)"
    rf"|\"\"\"(?:{_ESCAPE}|[^\\])*|'''(?:{_ESCAPE}|[^\\])*|\"(?:{_ESCAPE}|[^\\\"\n\r])*|'(?:{_ESCAPE}|[^\\'\n\r])*)"
    rf"|`[A-Za-z0-9_./ -]*|[&|=]",
    re.ASCII,
)
_ESCAPE_PREFIX = late_pattern(r"\\(?:[0-3][0-7]?|[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7})?")


def _skip_unknown(text: str, position: int, report: Callable[[int, str], None]) -> int:
    """Skip text that begins like a token, up to the character that does not fit. Return the offset after that."""
    match = _PREFIX.match(text, position)
    end = position if match is None else match.end()
    if match is not None and text[position] not in "`&|=":
        escape = _ESCAPE_PREFIX.match(text, end)
        if escape is not None:
            end = escape.end()
    end = min(max(end + 1, position + 1), len(text))
    report(position, f"token recognition error at: '{text[position:end]}'")
    return end
