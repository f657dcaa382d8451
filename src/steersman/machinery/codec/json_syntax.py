"""Syntax errors of JSON text, in the words of Go's encoding/json.

The text is scanned as Go's scanner does, so the first error is the one reported. At the end of the text Go scans one
more blank: where a blank is not permitted the message names it, elsewhere the message is an unexpected end.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from steersman.machinery.errors.field import quote
from steersman.machinery.large_work.nesting import MAX_DEPTH

MAX_DEPTH_TEXT: Final = "exceeded max depth"
END_TEXT: Final = "unexpected end of JSON input"

_space = re.compile(r"[ \t\r\n]*").match
_string_part = re.compile(r'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})){0,10000}').match
"""A match of the part of a string before its end or an error.

The length of one match is bounded, because no other thread runs while the pattern matches.
"""
_number_part = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:(\.)[0-9]+)?(?:([eE])[+-]?[0-9]+)?)?").match
_hex_part = re.compile("[0-9a-fA-F]{0,4}").match
_LITERALS: Final = {"t": "true", "f": "false", "n": "null"}

_VALUE, _VALUE_OR_END, _NAME, _NAME_OR_END, _COLON, _AFTER = range(6)
"""States of the scanner: a value; a value or the end of an empty array; a member's name; a name or the end of an empty
object; the colon after a name; the text after a value.
"""


class _Wrong(Exception):
    """A syntax error, with Go's message."""


def syntax_error(data: bytes) -> str:
    """Return Go's message about the first syntax error of `data`, "" if it is JSON."""
    try:
        return _scan(data.decode("latin-1"))
    except _Wrong as error:
        return str(error)


def _scan(text: str) -> str:
    """Return the message for text that ends too early, "" if it is JSON. Raises _Wrong for other errors."""
    open_: list[str] = []
    state, at = _VALUE, _end(_space(text, 0))
    while at < len(text):
        char = text[at]
        if state == _AFTER:
            state, at = _after_value(char, open_), at + 1
        elif state == _COLON:
            if char != ":":
                raise _invalid(char, "after object key")
            state, at = _VALUE, at + 1
        elif state in (_NAME, _NAME_OR_END):
            if char == "}" and state == _NAME_OR_END:
                open_.pop()
                state, at = _AFTER, at + 1
            elif char == '"':
                state, at = _COLON, _string_end(text, at)
            else:
                raise _invalid(char, "looking for beginning of object key string")
        elif char in "[{":
            open_.append(char)
            if len(open_) > MAX_DEPTH:
                raise _Wrong(MAX_DEPTH_TEXT)
            state, at = _VALUE_OR_END if char == "[" else _NAME_OR_END, at + 1
        elif char == "]" and state == _VALUE_OR_END:
            open_.pop()
            state, at = _AFTER, at + 1
        else:
            state, at = _AFTER, _scalar_end(text, at)
        at = _end(_space(text, at))
    return "" if state == _AFTER and not open_ else END_TEXT


def _after_value(char: str, open_: list[str]) -> int:
    """Return the state after `char`, which follows a value. Raises _Wrong."""
    if not open_:
        raise _invalid(char, "after top-level value")
    if open_[-1] == "{":
        if char == ",":
            return _NAME
        if char != "}":
            raise _invalid(char, "after object key:value pair")
    else:
        if char == ",":
            return _VALUE
        if char != "]":
            raise _invalid(char, "after array element")
    open_.pop()
    return _AFTER


def _scalar_end(text: str, at: int) -> int:
    char = text[at]
    if char == '"':
        return _string_end(text, at)
    if char in "-0123456789":
        return _number_end(text, at)
    literal = _LITERALS.get(char)
    if literal is None:
        raise _invalid(char, "looking for beginning of value")
    for index, expected in enumerate(literal):
        character = _char_at(text, at + index)
        if character != expected:
            raise _invalid(character, f"in literal {literal} (expecting {_shown(expected)})")
    return at + len(literal)


def _number_end(text: str, at: int) -> int:
    match = _number_part(text, at)
    assert match is not None
    end = match.end()
    char = _char_at(text, end)
    if match.group() in ("", "-"):
        raise _invalid(char, "in numeric literal")
    if char == "." and not match[1] and not match[2]:
        raise _invalid(_char_at(text, end + 1), "after decimal point in numeric literal")
    if char in "eE" and not match[2]:
        after = _char_at(text, end + 1)
        raise _invalid(_char_at(text, end + 2) if after in "+-" else after, "in exponent of numeric literal")
    return end


def _string_end(text: str, at: int) -> int:
    end = at + 1
    while (after := _end(_string_part(text, end))) != end:
        end = after
    if end == len(text):
        raise _Wrong(END_TEXT)
    char = text[end]
    if char == '"':
        return end + 1
    if char != "\\":
        raise _invalid(char, "in string literal")
    code = _char_at(text, end + 1)
    if code != "u":
        raise _invalid(code, "in string escape code")
    raise _invalid(_char_at(text, _end(_hex_part(text, end + 2))), "in \\u hexadecimal character escape")


def _char_at(text: str, at: int) -> str:
    """Return the byte at `at`, or the blank that Go scans at the end of the text."""
    return text[at] if at < len(text) else " "


def _end(match: re.Match[str] | None) -> int:
    assert match is not None
    return match.end()


def _invalid(char: str, where: str) -> _Wrong:
    return _Wrong(f"invalid character {_shown(char)} {where}")


def _shown(char: str) -> str:
    """Return a byte as Go's package json quotes it."""
    if char == "'":
        return "'\\''"
    if char == '"':
        return "'\"'"
    return f"'{quote(char)[1:-1]}'"


def error_message(error: msgspec.MsgspecError) -> str:
    """Return the message for an error of msgspec: the message of the value that was refused, never msgspec's own."""
    cause = error.__cause__
    if isinstance(cause, ValueError) and not isinstance(cause, msgspec.MsgspecError):
        return str(cause)
    return "json: cannot unmarshal a value into the object"
