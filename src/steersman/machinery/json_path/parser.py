"""Parser of JSONPath templates, such as `{.spec.items[*].name}`, with text around the braces.

Follows k8s.io/client-go `util/jsonpath/parser.go` in the grammar and in the error messages. A template is a list of
nodes: text, and an `Action` for each pair of braces.
"""

from __future__ import annotations

import math
import re
from typing import Final, TypeAlias

import msgspec

from steersman.machinery.go.printable import is_printable
from steersman.machinery.go.strings import is_letter
from steersman.work.patterns import late_pattern


class JSONPathError(ValueError):
    """The error for a malformed template or a failed evaluation, with upstream's message."""


class Text(msgspec.Struct, frozen=True):
    """Text outside of braces, or quoted text inside."""

    text: str


class Field(msgspec.Struct, frozen=True):
    """A member by its name."""

    name: str


class Identifier(msgspec.Struct, frozen=True):
    """A word: `range`, `end`, or an unknown one."""

    name: str


class Number(msgspec.Struct, frozen=True):
    """A number literal."""

    value: int | float


class Boolean(msgspec.Struct, frozen=True):
    """The literal true or false."""

    value: bool


class Wildcard(msgspec.Struct, frozen=True):
    """All members or items."""


class Recursive(msgspec.Struct, frozen=True):
    """A value and everything in it."""


class Slice(msgspec.Struct, frozen=True):
    """Items of a list; None for a bound that is not given. `single` is True for a single index, which implies the end."""

    start: int | None
    end: int | None
    step: int | None
    single: bool


class Union(msgspec.Struct, frozen=True):
    """The values of several actions together."""

    actions: tuple[Action, ...]


class Filter(msgspec.Struct, frozen=True):
    """Items of a list for which the comparison of `left` and `right` by `operator` is true.

    With the operator "exists", items for which `left` finds a value.
    """

    left: Action
    right: Action
    operator: str


class Action(msgspec.Struct, frozen=True):
    """The content of a pair of braces: each node is applied to the values that the previous node found."""

    nodes: tuple[Node, ...]


Node: TypeAlias = Text | Field | Identifier | Number | Boolean | Wildcard | Recursive | Slice | Union | Filter | Action
Template: TypeAlias = tuple[Node, ...]

EXISTS: Final = "exists"
_NOTHING: Final = Action(())
_TERMINATORS: Final = frozenset(" \t\r\n.,[]$@{}")
_DICT_KEY: Final = late_pattern(r"'([^']*)'")
_SLICE: Final = late_pattern(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_COMPARISON: Final = late_pattern(r"([^!<>=]+)([!<>=]+)(.+)")
_INTEGER: Final = late_pattern(r"[+-]?[0-9]+")
_FLOAT: Final = late_pattern(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_INT64: Final = range(-(2**63), 2**63)
_LONGEST_NUMBER: Final = 1000
"""The most digits of an integer; Go allows any number of leading zeros."""


def parse(text: str) -> Template:
    """Parse a template. Raises JSONPathError."""
    return tuple(_Parser(text).parse())


def _action(text: str) -> Action:
    """Parse the first action of `{text}`, a part of a union or of a filter."""
    first = parse("{" + text + "}")[0]
    assert isinstance(first, Action)
    return first


class _Parser:
    """A parser in one pass. Upstream's functions call each other for the next element; here a loop does that."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def parse(self) -> list[Node]:
        root: list[Node] = []
        while self.at < len(self.text):
            brace = self.text.find("{", self.at)
            end = len(self.text) if brace < 0 else brace
            if end > self.at:
                root.append(Text(self.text[self.at : end]))
            self.at = end
            if brace >= 0:
                self.at += 1
                root.append(Action(tuple(self._inside())))
        return root

    def _inside(self) -> list[Node]:
        """Parse the nodes up to the closing brace, and skip the brace."""
        nodes: list[Node] = []
        text = self.text
        while True:
            if text.startswith("}", self.at):
                self.at += 1
                return nodes
            if text.startswith("[?(", self.at):
                nodes.append(self._filter())
            elif text.startswith("..", self.at):
                self._recursive(nodes)
            elif self.at >= len(text) or text[self.at] in "\r\n":
                raise JSONPathError("unclosed action")
            elif text[self.at] in " @$":
                self.at += 1
            else:
                self._one(nodes, text[self.at])

    def _one(self, nodes: list[Node], char: str) -> None:
        if char == "[":
            nodes.extend(self._array())
        elif char in "\"'":
            nodes.append(self._quoted(char))
        elif char == ".":
            self.at += 1
            nodes.append(self._field())
        elif char in "+-" or _is_digit(char):
            nodes.append(self._number())
        elif char == "_" or is_letter(char):
            nodes.append(self._identifier())
        else:
            shown = f" '{char}'" if is_printable(char) else ""
            raise JSONPathError(f"unrecognized character in action: U+{ord(char):04X}{shown}")

    def _recursive(self, nodes: list[Node]) -> None:
        if nodes and isinstance(nodes[-1], Recursive):
            raise JSONPathError("invalid multiple recursive descent")
        self.at += 2
        nodes.append(Recursive())
        char = self.text[self.at : self.at + 1]
        if char and (char == "_" or is_letter(char) or _is_digit(char)):
            nodes.append(self._field())

    def _field(self) -> Node:
        """Parse a name up to a terminating character; a backslash escapes the next character."""
        start, text = self.at, self.text
        while self.at < len(text):
            if text[self.at] == "\\":
                self.at += 2
                continue
            if text[self.at] in _TERMINATORS:
                break
            self.at += 1
        self.at = min(self.at, len(text))
        name = text[start : self.at]
        return Wildcard() if name == "*" else Field(name.replace("\\", ""))

    def _identifier(self) -> Node:
        start, text = self.at, self.text
        while self.at < len(text) and text[self.at] not in _TERMINATORS:
            self.at += 1
        name = text[start : self.at]
        return Boolean(name == "true") if name in ("true", "false") else Identifier(name)

    def _number(self) -> Node:
        start, text = self.at, self.text
        if text[self.at] in "+-":
            self.at += 1
        while self.at < len(text) and (text[self.at] == "." or _is_digit(text[self.at])):
            self.at += 1
        shown = text[start : self.at]
        if _INTEGER.fullmatch(shown) and len(shown) <= _LONGEST_NUMBER and int(shown) in _INT64:
            return Number(int(shown))
        if _FLOAT.fullmatch(shown) and math.isfinite(float(shown)):
            return Number(float(shown))
        raise JSONPathError(f"cannot parse number {shown}")

    def _array(self) -> tuple[Node, ...]:
        end = self.text.find("]", self.at)
        line = self.text.find("\n", self.at)
        if end < 0 or 0 <= line < end:
            raise JSONPathError("unterminated array")
        inside = self.text[self.at + 1 : end]
        self.at = end + 1
        parts = (":" if inside == "*" else inside).split(",")
        if len(parts) > 1:
            return (Union(tuple(_action(f"[{part.strip(' ')}]") for part in parts)),)
        key = _DICT_KEY.fullmatch(inside)
        if key is not None:
            return _action(f".{key[1]}").nodes
        return (_slice(parts[0]),)

    def _filter(self) -> Filter:
        self.at += len("[?(")
        start, text = self.at, self.text
        self._to_end_of_filter()
        inside = text[start : self.at - 1]
        if not text.startswith("]", self.at):
            raise JSONPathError("unclosed array expect ]")
        self.at += 1
        compared = _COMPARISON.fullmatch(inside)
        if compared is None:
            return Filter(_action(inside), _NOTHING, EXISTS)
        return Filter(_action(compared[1]), _action(compared[3]), compared[2])

    def _to_end_of_filter(self) -> None:
        """Move behind the parenthesis that closes a filter, ignoring those within quotes."""
        text, pair, closed = self.text, "", False
        while self.at < len(text) and text[self.at] != "\n":
            char = text[self.at]
            self.at += 1
            if char in "\"'":
                if not pair:
                    pair = char
                elif char == pair and text[self.at - 2] != "\\":
                    closed = True
            elif char == ")" and bool(pair) == closed:
                return
        raise JSONPathError("unterminated filter")

    def _quoted(self, end: str) -> Text:
        start, text = self.at, self.text
        self.at += 1
        while self.at < len(text) and text[self.at] != "\n":
            self.at += 1
            if text[self.at - 1] == end and text[self.at - 2] != "\\":
                return Text(_unquoted(text[start : self.at]))
        raise JSONPathError("unterminated quoted string")


def _is_digit(char: str) -> bool:
    """Return True for a digit (unicode.IsDigit)."""
    return char.isdecimal()


def _slice(text: str) -> Slice:
    match = _SLICE.fullmatch(text)
    if match is None:
        raise JSONPathError(f"invalid array index {text}")
    first, second, third = match.groups()
    start = _index(first) if first else None
    if second is None:
        return Slice(start, (start or 0) + 1, None, single=True)
    return Slice(start, _optional_index(second), _optional_index(third), single=False)


def _optional_index(text: str | None) -> int | None:
    """Return the number after a colon; None if the colon or the number is missing."""
    return _index(text[1:]) if text and text != ":" else None


def _index(text: str) -> int:
    if len(text) <= _LONGEST_NUMBER and _INTEGER.fullmatch(text) and int(text) in _INT64:
        return int(text)
    raise JSONPathError(f"array index {text} is not a number")


_ESCAPED: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\"}
_ESCAPE: Final = late_pattern(
    r"\\(?:([abfnrtv\\])|(['\"])|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-7]{3}))|([^\\]+)"
)


def _unquoted(text: str) -> str:
    """Return quoted text without its quotes, with the escapes of Go's strings decoded."""
    end, inside = text[0], text[1:-1]
    if "\\" not in inside and end not in inside:
        return inside
    out = bytearray()
    at = 0
    while at < len(inside):
        match = _ESCAPE.match(inside, at)
        if match is None:
            raise _not_unquoted(text)
        out += _unescaped(match, end, text)
        at = match.end()
    return out.decode("utf-8", "replace")


def _unescaped(found: re.Match[str], end: str, text: str) -> bytes:
    """Return the bytes of one escape, or of text without escapes."""
    simple, mark, byte, short, long, octal, plain = found.groups()
    if plain is not None:
        if end in plain:
            raise _not_unquoted(text)
        return str(plain).encode("utf-8", "replace")
    if simple is not None:
        return _ESCAPED[simple].encode()
    if mark is not None:
        if mark != end:
            raise _not_unquoted(text)
        return str(mark).encode()
    if byte is not None or octal is not None:
        value = int(byte, 16) if byte is not None else int(octal, 8)
        if value > 0xFF:
            raise _not_unquoted(text)
        return bytes((value,))
    code = int(short or long, 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise _not_unquoted(text)
    return chr(code).encode()


def _not_unquoted(text: str) -> JSONPathError:
    return JSONPathError(f"unquote string {text} error invalid syntax")
