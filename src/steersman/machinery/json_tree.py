"""JSON kept as it was written: members in order with those given twice, numbers as their text; and Go's syntax errors.

This is the slow way of reading, taken when something about a document has to be told to its sender.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import Any, Final, TypeAlias

import msgspec

from steersman.machinery.field import quote


class Number(str):
    """A number's text."""

    __slots__ = ()


class Members(tuple[tuple[str, "Tree"], ...]):
    """The members of an object, in order."""

    __slots__ = ()


Tree: TypeAlias = "Members | list[Tree] | Number | str | bool | None"

MAX_DEPTH_TEXT: Final = "exceeded max depth"
END_TEXT: Final = "unexpected end of JSON input"

_SURROGATE = re.compile("[\ud800-\udfff]")
_SPACE = " \t\r\n"


class JSONSyntaxError(ValueError):
    """The text is not JSON; the message is Go's."""


def _one_each(error: UnicodeError) -> tuple[str, int]:
    if isinstance(error, UnicodeDecodeError):
        return "\ufffd", error.start + 1
    raise error


codecs.register_error("steersman.one_each", _one_each)


def decode_text(data: bytes) -> str:
    """UTF-8 as Go reads it: every byte that is not part of a character becomes U+FFFD."""
    return data.decode("utf-8", "steersman.one_each")


class _Refused(ValueError):
    pass


def _constant(name: str) -> Any:
    raise _Refused(name)


_DECODER = json.JSONDecoder(
    object_pairs_hook=Members, parse_int=Number, parse_float=Number, parse_constant=_constant, strict=True
)


def parse_tree(data: bytes) -> Tree:
    """The document. Raises JSONSyntaxError."""
    text = decode_text(data).strip(_SPACE)
    try:
        tree: Tree = _DECODER.decode(text)
    except RecursionError:
        raise JSONSyntaxError(MAX_DEPTH_TEXT) from None
    except (json.JSONDecodeError, _Refused):
        raise JSONSyntaxError(_explain(data)) from None
    return _without_surrogates(tree) if "\\u" in text else tree


def _without_surrogates(tree: Tree) -> Tree:
    """Half of a surrogate pair, written as an escape, is U+FFFD to Go."""
    if isinstance(tree, Members):
        return Members((_SURROGATE.sub("\ufffd", name), _without_surrogates(value)) for name, value in tree)
    if isinstance(tree, list):
        return [_without_surrogates(item) for item in tree]
    if isinstance(tree, str) and not isinstance(tree, Number):
        return _SURROGATE.sub("\ufffd", tree)
    return tree


def render(tree: Tree) -> bytes:
    """Compact JSON of a tree, nothing lost."""
    if isinstance(tree, Members):
        return b"{" + b",".join(msgspec.json.encode(name) + b":" + render(value) for name, value in tree) + b"}"
    if isinstance(tree, list):
        return b"[" + b",".join(render(item) for item in tree) + b"]"
    return tree.encode() if isinstance(tree, Number) else msgspec.json.encode(tree)


def kind_of(tree: Tree) -> str:
    """What Go calls the kind of a value in its type errors."""
    if isinstance(tree, Members):
        return "object"
    if isinstance(tree, list):
        return "array"
    if isinstance(tree, Number):
        return "number"
    if isinstance(tree, bool):
        return "bool"
    return "null" if tree is None else "string"


_HEX = re.compile(r"[0-9a-fA-F]{0,4}")
_NUMBER_BEFORE = re.compile(r"[0-9](\.[0-9]+)?([eE][+-]?[0-9]+)?\Z")
_NUMBER_TAIL = re.compile(r"(?:\.[0-9]+)?([eE][+-]?)|\.")
_LITERALS = {"t": "true", "f": "false", "n": "null"}
_WHERE = {
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Illegal trailing comma before end of object": "looking for beginning of object key string",
    "Expecting ':' delimiter": "after object key",
    "Extra data": "after top-level value",
    "Invalid control character at": "in string literal",
}


def _explain(data: bytes) -> str:
    """Go's message for what is wrong with `data`: found by Python's parser, then told by the bytes around it."""
    text = data.decode("latin-1")
    try:
        json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_constant, strict=True).decode(text)
    except json.JSONDecodeError as error:
        return _explain_at(text, error.msg, error.pos)
    except _Refused as error:
        return (
            _invalid(str(error)[:1], "looking for beginning of value")
            if str(error)[0] != "-"
            else _invalid("I", "in numeric literal")
        )
    return END_TEXT


def _explain_at(text: str, message: str, position: int) -> str:
    rest = text[position:]
    at = rest[:1]
    if message.startswith(("Invalid \\", "Unterminated")):
        return _in_string(text, position)
    if not rest.strip(_SPACE):
        return END_TEXT
    if message == "Expecting value":
        return _value_expected(rest)
    if _goes_on(text, position):
        return _in_number(text, position)
    if message == "Expecting ',' delimiter":
        return _invalid(at, f"after {_container(text, position)}")
    return _invalid(at, _WHERE.get(message, "looking for beginning of value"))


def _container(text: str, position: int) -> str:
    """Whether a comma is missed in an array or an object: where a closing bracket ends an array it goes on."""
    try:
        json.loads(text[:position] + "]")
    except json.JSONDecodeError as error:
        return "object key:value pair" if error.pos <= position and "delimiter" in error.msg else "array element"
    return "array element"


def _value_expected(rest: str) -> str:
    first = rest[0]
    if first == "-":
        return _invalid(rest[1], "in numeric literal") if len(rest) > 1 else END_TEXT
    if (literal := _LITERALS.get(first)) is None:
        return _invalid(first, "looking for beginning of value")
    for index, expected in enumerate(literal):
        if index >= len(rest):
            return END_TEXT
        if rest[index] != expected:
            return _invalid(rest[index], f"in literal {literal} (expecting {_char(expected)})")
    return END_TEXT


def _goes_on(text: str, position: int) -> bool:
    """Whether a number that ends before `position` could take what is there, a dot or an exponent."""
    match = _NUMBER_BEFORE.search(text, max(position - 400, 0), position)
    if match is None:
        return False
    at = text[position]
    return (at == "." and not match[1]) or (at in "eE" and not match[2])


def _in_number(text: str, position: int) -> str:
    """What is wrong with the dot or the exponent at `position`."""
    match = _NUMBER_TAIL.match(text, position)
    end = match.end() if match else position
    if end >= len(text):
        return END_TEXT
    in_exponent = match is not None and match[1]
    return _invalid(
        text[end], "in exponent of numeric literal" if in_exponent else "after decimal point in numeric literal"
    )


def _in_string(text: str, position: int) -> str:
    """What is wrong with a string: an escape, or that it does not end."""
    for index in (position, position - 1):
        if text[index : index + 1] != "\\":
            continue
        code = text[index + 1 : index + 2]
        if code == "u":
            digits = _HEX.match(text, index + 2)
            end = digits.end() if digits else index + 2
            return _invalid(text[end], "in \\u hexadecimal character escape") if end < len(text) else END_TEXT
        if code and code not in '"\\/bfnrt':
            return _invalid(code, "in string escape code")
    if text[position - 2 : position] == "\\u" or text[position - 1 : position] == "u":
        digits = _HEX.match(text, position)
        end = digits.end() if digits else position
        if end < len(text) and end - position < 4:
            return _invalid(text[end], "in \\u hexadecimal character escape")
    return END_TEXT


def _invalid(char: str, where: str) -> str:
    return f"invalid character {_char(char)} {where}"


def _char(char: str) -> str:
    """A byte as package json quotes it."""
    if char == "'":
        return "'\\''"
    if char == '"':
        return "'\"'"
    return f"'{quote(char)[1:-1]}'"
