"""Estimates of the size of a compiled regular expression, computed from its text in linear time.

RE2 holds the GIL while it compiles, which can take ten seconds for a few hundred characters (`(a{1,1000})` a hundred
times). Its own memory limit takes effect too late. Go has similar limits with other values (`regexp/syntax/parse.go`:
maxHeight, maxSize, maxRunes).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from steersman.work.patterns import late_pattern

NESTS_TOO_DEEPLY: Final = "expression nests too deeply"
TOO_LARGE: Final = "expression too large"

_MAX_HEIGHT: Final = 1000
"""Go's limit."""
_MAX_SIZE: Final = 60_000
"""The most instructions that RE2 creates for a pattern: it takes about a microsecond for each."""
_CHOICES: Final = 700
"""The number of pairs of optional copies whose compilation takes as long as one instruction."""
_MAX_READ: Final = 300_000
"""The most instructions in the text, without repetitions: RE2 parses one in a fifteenth of a microsecond."""
_MUCH: Final = 1 << 40
_PLAIN: Final = 48
"""The length up to which a pattern without repetition counts cannot become too large."""

_CLASS_PART: Final = r"\\[pP](?:\{[^{}]*\}|(?s:.))?|\\(?s:.)?|\[:\^?[a-z]*:\]|[^\]\\]"
TOKEN: Final = late_pattern(
    r"(?P<quoted>\\Q(?s:.*?)(?:\\E|\Z))"
    r"|(?P<unicode>\\[pP](?:\{[^{}]*\}|(?s:.))?)"
    r"|(?P<escape>\\(?s:.)?)"
    rf"|(?P<class>\[\^?\]?(?:{_CLASS_PART})*+(?:\]|\Z))"
    r"|(?P<open>\((?:\?P?<\w*>)?)(?P<flags>\?[a-zA-Z-]*[:)])?"
    r"|(?P<close>\))|(?P<or>\|)|(?P<repeat>[*+?]|\{\d+(?:,\d*)?\})\??"
    r"|(?P<any>\.)|(?P<literal>[^\\\[()|*+?{.]+|(?s:.))",
    re.ASCII,
)
_IN_CLASS: Final = late_pattern(_CLASS_PART, re.ASCII)

_UNICODE: Final = {
    "L": 1200,
    "Ll": 890,
    "Lo": 1000,
    "Lu": 850,
    "Lm": 260,
    "M": 740,
    "Mc": 440,
    "Mn": 810,
    "N": 480,
    "Nd": 270,
    "No": 280,
    "P": 590,
    "Po": 560,
    "S": 560,
    "So": 440,
    "Common": 410,
    "Lt": 40,
    "Z": 40,
    "Zs": 40,
}
"""The instructions for a character class by its name, also if it is negated."""
_OTHER_UNICODE: Final = 200
_RANGE: Final = 6
"""The instructions for a non-ASCII character, an escape or an end of a range in a class. An ASCII character takes one.
"""
_NEGATED: Final = 26
_ANY: Final = 10
_FOLDED: Final = 4
"""The instructions for a case-insensitive character."""
_LARGEST_REPEAT: Final = 1000
"""The limit of Go and RE2, which reject higher counts."""


class _Part:
    """The parsed part of a group: numbers of instructions and of optional copies, and the height of the tree."""

    __slots__ = (
        "branches",
        "captures",
        "choices",
        "height",
        "items",
        "last_choices",
        "last_height",
        "last_size",
        "size",
    )

    def __init__(self, captures: int) -> None:
        self.captures = captures
        self.size = self.choices = self.height = self.items = self.branches = 0
        self.last_size = self.last_choices = self.last_height = 0

    def add(self, size: int, height: int = 1, choices: int = 0) -> None:
        self.size += self.last_size
        self.choices += self.last_choices
        self.height = max(self.height, self.last_height)
        self.items += 1
        self.last_size, self.last_height, self.last_choices = size, height, choices

    def repeat(self, text: str) -> None:
        self.last_height += 1
        self.last_size += 1
        if text[0] != "{":
            return
        low, _, high = text[1:-1].partition(",")
        least, most = _number(low), _number(high) if high else 0
        copies = max(least, most, 1)
        self.last_choices = min(self.last_choices * copies + max(most - least, 0), _MUCH)
        self.last_size = min(self.last_size * copies, _MUCH)

    def end_branch(self) -> None:
        self.add(1)
        self.branches += 1
        self.items = 0

    def end(self, outer: _Part) -> None:
        """Add the whole group to the enclosing one."""
        height = max(self.height, self.last_height) + (self.items > 1) + (self.branches > 0) + self.captures
        outer.add(min(self.size + self.last_size + 2, _MUCH), height, min(self.choices + self.last_choices, _MUCH))


def _number(digits: str) -> int:
    """Return a repetition count, which is capped slightly above the limit."""
    return int(digits) if len(digits) < 5 else _LARGEST_REPEAT + 1


def too_large_to_read(pattern: str) -> str:
    """Return TOO_LARGE or NESTS_TOO_DEEPLY for a pattern that takes RE2 long to parse, "" for others. Invalid patterns
    may get any result.
    """
    if len(pattern) <= _PLAIN:
        return ""
    return _too_large(pattern, lambda measured: measured.read > _MAX_READ)


def too_large_to_compile(pattern: str) -> str:
    """Return the same for a pattern that takes RE2 long to compile."""
    if len(pattern) <= _PLAIN and "{" not in pattern:
        return ""
    return _too_large(pattern, lambda measured: measured.size + measured.choices**2 // _CHOICES > _MAX_SIZE)


def _too_large(pattern: str, exceeds: Callable[[_Measured], bool]) -> str:
    if len(pattern) > _MAX_READ:
        return TOO_LARGE
    measured = _measured(pattern)
    if measured.height > _MAX_HEIGHT:
        return NESTS_TOO_DEEPLY
    return TOO_LARGE if exceeds(measured) else ""


class _Measured(NamedTuple):
    """The measured sizes: `read` is the size of the text, `size` that of the compiled pattern."""

    read: int
    size: int
    height: int
    choices: int


@lru_cache(maxsize=16)  # for a pattern that is parsed and then compiled
def _measured(pattern: str) -> _Measured:
    """Measure a pattern, up to the point where it is too large to be parsed, or invalid."""
    literal = _FOLDED if "(?" in pattern else 1
    groups = [_Part(0)]
    read = 0
    for token in TOKEN.finditer(pattern):
        kind, text, part = token.lastgroup, token[0], groups[-1]
        size = 0
        if kind in ("open", "flags"):
            if not text.endswith(")"):
                groups.append(_Part(int(kind == "open")))
        elif kind == "close":
            if len(groups) == 1:
                break
            groups.pop().end(groups[-1])
        elif kind == "repeat":
            part.repeat(token["repeat"])
        elif kind == "or":
            part.end_branch()
        elif kind in ("literal", "quoted"):
            size = _add_text(part, text, literal)
        else:
            size = _size_of(kind, text)
            part.add(size)
        read += size or 1
        if read > _MAX_READ:
            break
    while len(groups) > 1:
        groups.pop().end(groups[-1])
    whole = _Part(0)
    groups[0].end(whole)
    return _Measured(read, whole.last_size, whole.last_height, whole.last_choices)


def _add_text(part: _Part, text: str, each: int) -> int:
    """Add a literal and return its size. A following repetition only applies to the last character."""
    last = len(text[-1:].encode("utf-8", "replace")) * each
    size = len(text.encode("utf-8", "replace")) * each
    if size > last:
        part.add(size - last)
    part.add(last)
    return size


def _size_of(kind: str | None, text: str) -> int:
    if kind == "any":
        return _ANY
    if kind == "unicode":
        return _UNICODE.get(text[2:].strip("{}^"), _OTHER_UNICODE)
    if kind == "class":
        negated = _NEGATED if text.startswith("[^") else 0
        return negated + sum(map(_size_in_class, _IN_CLASS.findall(text[1:].removesuffix("]"))))
    return _NEGATED


def _size_in_class(part: str) -> int:
    if part[:2] in ("\\p", "\\P"):
        return _UNICODE.get(part[2:].strip("{}^"), _OTHER_UNICODE)
    return 1 if len(part) == 1 and part.isascii() else _RANGE
