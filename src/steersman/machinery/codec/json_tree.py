"""JSON as a tree that loses nothing: members in order, including repeated ones, and numbers as text.

Parsing into a tree is slow. It is done when the client must be told about something in its document.
"""

from __future__ import annotations

import codecs
import json
import math
from typing import Any, TypeAlias

import msgspec

from steersman.machinery.codec.json_syntax import MAX_DEPTH_TEXT, syntax_error
from steersman.machinery.large_work.nesting import is_too_deep
from steersman.work.patterns import late_pattern


class Number(str):
    """The text of a number."""

    __slots__ = ()


class Members(tuple[tuple[str, "Tree"], ...]):
    """The members of an object, in order."""

    __slots__ = ()


Tree: TypeAlias = "Members | list[Tree] | Number | str | bool | None"

_SURROGATE = late_pattern("[\ud800-\udfff]")
_SPACE = " \t\r\n"


class JSONSyntaxError(ValueError):
    """The error for text that is not JSON, with Go's message."""


def _one_each(error: UnicodeError) -> tuple[str, int]:
    if isinstance(error, UnicodeDecodeError):
        return "\ufffd", error.start + 1
    raise error


codecs.register_error("steersman.one_each", _one_each)


def decode_text(data: bytes) -> str:
    """Decode UTF-8 as Go does: each byte that is not part of a character becomes U+FFFD."""
    return data.decode("utf-8", "steersman.one_each")


class _Refused(ValueError):
    pass


def _constant(name: str) -> Any:
    raise _Refused(name)


_DECODER = json.JSONDecoder(
    object_pairs_hook=Members, parse_int=Number, parse_float=Number, parse_constant=_constant, strict=True
)


def parse_tree(data: bytes) -> Tree:
    """Parse JSON into a tree. Raises JSONSyntaxError."""
    if is_too_deep(data):
        raise JSONSyntaxError(syntax_error(data) or MAX_DEPTH_TEXT)
    text = decode_text(data).strip(_SPACE)
    try:
        tree: Tree = _DECODER.decode(text)
    except (json.JSONDecodeError, _Refused, RecursionError):
        raise JSONSyntaxError(syntax_error(data)) from None
    return _without_surrogates(tree) if "\\u" in text else tree


def _without_surrogates(tree: Tree) -> Tree:
    """Return the tree with each unpaired surrogate replaced by U+FFFD, as Go does."""
    if isinstance(tree, Members):
        return Members([(_SURROGATE.sub("\ufffd", name), _without_surrogates(value)) for name, value in tree])
    if isinstance(tree, list):
        return [_without_surrogates(item) for item in tree]
    if isinstance(tree, str) and not isinstance(tree, Number):
        return _SURROGATE.sub("\ufffd", tree)
    return tree


def render(tree: Tree) -> bytes:
    """Return a tree as compact JSON, without any loss."""
    # Lists, because a generator takes C stack for each level, and Python 3.12 allows fewer levels than documents may
    # have.
    if isinstance(tree, Members):
        return b"{" + b",".join([msgspec.json.encode(name) + b":" + render(value) for name, value in tree]) + b"}"
    if isinstance(tree, list):
        return b"[" + b",".join([render(item) for item in tree]) + b"]"
    return tree.encode() if isinstance(tree, Number) else msgspec.json.encode(tree)


def too_large(tree: Tree) -> str:
    """Return the first number that is too large for a float64, "" if there is none."""
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
    """Return the kind of a value as Go's type errors name it."""
    if isinstance(tree, Members):
        return "object"
    if isinstance(tree, list):
        return "array"
    if isinstance(tree, Number):
        return "number"
    if isinstance(tree, bool):
        return "bool"
    return "null" if tree is None else "string"
