"""How large a regular expression becomes when it is compiled, judged from its text in time linear in it.

RE2 holds the interpreter while it compiles: a few hundred characters (`(a{1,1000})` a hundred times) can take it ten
seconds. Its own bound of memory is looked at too late for that. Go bounds the same things, at other sizes
(`regexp/syntax/parse.go`: maxHeight, maxSize, maxRunes).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

NESTS_TOO_DEEPLY: Final = "expression nests too deeply"
TOO_LARGE: Final = "expression too large"

_MAX_HEIGHT: Final = 1000
"""Go's."""
_MAX_SIZE: Final = 60_000
"""Instructions that RE2 makes of a pattern: it takes about a microsecond for each."""
_CHOICES: Final = 700
"""How many optional copies, each beside each, take as long as one of them takes for an instruction."""
_MAX_READ: Final = 300_000
"""Instructions that are written in it, each once: it takes RE2 a fifteenth of a microsecond to read one."""
_MUCH: Final = 1 << 40
_PLAIN: Final = 48
"""Characters of which nothing can be made that is too large, if none of them repeats a number of times."""

_CLASS_PART: Final = r"\\[pP](?:\{[^{}]*\}|(?s:.))?|\\(?s:.)?|\[:\^?[a-z]*:\]|[^\]\\]"
_TOKEN: Final = re.compile(
    r"(?P<quoted>\\Q(?s:.*?)(?:\\E|\Z))"
    r"|(?P<unicode>\\[pP](?:\{[^{}]*\}|(?s:.))?)"
    r"|(?P<escape>\\(?s:.)?)"
    rf"|(?P<class>\[\^?\]?(?:{_CLASS_PART})*+(?:\]|\Z))"
    r"|(?P<open>\((?:\?P?<\w*>)?)(?P<flags>\?[a-zA-Z-]*[:)])?"
    r"|(?P<close>\))|(?P<or>\|)|(?P<repeat>[*+?]|\{\d+(?:,\d*)?\})\??"
    r"|(?P<any>\.)|(?P<literal>[^\\\[()|*+?{.]+|(?s:.))",
    re.ASCII,
)
_IN_CLASS: Final = re.compile(_CLASS_PART, re.ASCII)

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
"""Instructions for a class of characters, also of those that are not in it, by its name."""
_OTHER_UNICODE: Final = 200
_RANGE: Final = 6
"""Instructions for a character, escape or end of a range in a class, if it is not ASCII: that takes one."""
_NEGATED: Final = 26
_ANY: Final = 10
_FOLDED: Final = 4
"""Instructions for a character whose case does not matter."""
_LARGEST_REPEAT: Final = 1000
"""Go's and RE2's, who refuse others."""


class _Part:
    """What has been read of a group: sizes of instructions, optional copies, and height of the tree."""

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
        """Puts the whole group into the one around it."""
        height = max(self.height, self.last_height) + (self.items > 1) + (self.branches > 0) + self.captures
        outer.add(min(self.size + self.last_size + 2, _MUCH), height, min(self.choices + self.last_choices, _MUCH))


def _number(digits: str) -> int:
    """At most a little more than may be."""
    return int(digits) if len(digits) < 5 else _LARGEST_REPEAT + 1


def too_large_to_read(pattern: str) -> str:
    """TOO_LARGE or NESTS_TOO_DEEPLY for what takes RE2 long to read, or nothing. What is no regular expression may get
    either."""
    if len(pattern) <= _PLAIN:
        return ""
    if len(pattern) > _MAX_READ:
        return TOO_LARGE
    measured = _measured(pattern)
    if measured.height > _MAX_HEIGHT:
        return NESTS_TOO_DEEPLY
    return TOO_LARGE if measured.read > _MAX_READ else ""


def too_large_to_compile(pattern: str) -> str:
    """The same of what takes RE2 long to compile."""
    if len(pattern) <= _PLAIN and "{" not in pattern:
        return ""
    if len(pattern) > _MAX_READ:
        return TOO_LARGE
    measured = _measured(pattern)
    if measured.height > _MAX_HEIGHT:
        return NESTS_TOO_DEEPLY
    return TOO_LARGE if measured.size + measured.choices**2 // _CHOICES > _MAX_SIZE else ""


class _Measured(NamedTuple):
    """`read` is the size of what is written, `size` that of what is compiled."""

    read: int
    size: int
    height: int
    choices: int


@lru_cache(maxsize=16)  # of one that is read and then compiled
def _measured(pattern: str) -> _Measured:
    """Goes no further where the text is too large to be read, or is no regular expression."""
    literal = _FOLDED if "(?" in pattern else 1
    groups = [_Part(0)]
    read = 0
    for token in _TOKEN.finditer(pattern):
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
    """Gives its size. A repetition that follows is of the last character."""
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
