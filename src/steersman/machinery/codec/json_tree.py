"""JSON kept as it was written: members in order with those given twice, numbers as their text.

This is the slow way of reading, taken when something about a document has to be told to its sender.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from typing import Any, TypeAlias

import msgspec

from steersman.machinery.codec.json_syntax import MAX_DEPTH_TEXT, syntax_error
from steersman.machinery.large_work.nesting import is_too_deep


class Number(str):
    """A number's text."""

    __slots__ = ()


class Members(tuple[tuple[str, "Tree"], ...]):
    """The members of an object, in order."""

    __slots__ = ()


Tree: TypeAlias = "Members | list[Tree] | Number | str | bool | None"

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
    if is_too_deep(data):
        raise JSONSyntaxError(syntax_error(data) or MAX_DEPTH_TEXT)
    text = decode_text(data).strip(_SPACE)
    try:
        tree: Tree = _DECODER.decode(text)
    except (json.JSONDecodeError, _Refused, RecursionError):
        raise JSONSyntaxError(syntax_error(data)) from None
    return _without_surrogates(tree) if "\\u" in text else tree


def _without_surrogates(tree: Tree) -> Tree:
    """Half of a surrogate pair, written as an escape, is U+FFFD to Go."""
    if isinstance(tree, Members):
        return Members([(_SURROGATE.sub("\ufffd", name), _without_surrogates(value)) for name, value in tree])
    if isinstance(tree, list):
        return [_without_surrogates(item) for item in tree]
    if isinstance(tree, str) and not isinstance(tree, Number):
        return _SURROGATE.sub("\ufffd", tree)
    return tree


def render(tree: Tree) -> bytes:
    """Compact JSON of a tree, nothing lost."""
    # Lists, as a generator takes C's stack for each level, of which 3.12 allows less than the depth that is taken.
    if isinstance(tree, Members):
        return b"{" + b",".join([msgspec.json.encode(name) + b":" + render(value) for name, value in tree]) + b"}"
    if isinstance(tree, list):
        return b"[" + b",".join([render(item) for item in tree]) + b"]"
    return tree.encode() if isinstance(tree, Number) else msgspec.json.encode(tree)


def too_large(tree: Tree) -> str:
    """The first number that is larger than any float64; "" if there is none."""
    waiting = [tree]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Members):
            waiting.extend(reversed([member for _, member in value]))
        elif isinstance(value, list):
            waiting.extend(reversed(value))
        elif isinstance(value, Number) and math.isinf(float(value)):
            return value
    return ""


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
