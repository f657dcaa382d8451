"""The syntax of RE2 patterns, read into a tree from which matching texts are made.

Anchors and word boundaries become nothing: the texts are matched with RE2 itself afterwards.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from steersman.work.patterns import late_pattern

_LARGEST_GAP: Final = 1 << 30
"""The end of a repetition without one."""
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_EMPTY_ESCAPES: Final = frozenset("AbBz")
_CLASS_ESCAPES: Final = frozenset("dDsSwW")
_TOKEN: Final = late_pattern(
    r"\\Q(?P<quoted>(?s:.*?))(?:\\E|\Z)"
    r"|(?P<unicode>\\[pP](?:\{[^{}]*\}|(?s:.)))"
    r"|\\x(?:\{(?P<code>[0-9A-Fa-f]+)\}|(?P<hex>[0-9A-Fa-f]{2}))"
    r"|\\(?P<octal>[0-7]{1,3})"
    r"|\\(?P<escape>(?s:.))"
    r"|(?P<class>\[\^?\]?(?:\\[pP]\{[^{}]*\}|\\(?s:.)|\[:\^?[a-z]*:\]|[^\]\\])*+\])"
    r"|(?P<flags>\(\?[a-zA-Z-]*\))|(?P<open>\((?:\?P?<\w*>|\?[a-zA-Z-]*:)?)"
    r"|(?P<close>\))|(?P<or>\|)|(?P<repeat>[*+?]|\{\d+(?:,\d*)?\})\??"
    r"|(?P<any>\.)|(?P<anchor>[\^$])|(?P<literal>(?s:.))",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Literal:
    """A text that stands for itself."""

    text: str


@dataclass(frozen=True, slots=True)
class CharacterClass:
    """A set of characters, as the pattern writes it."""

    text: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts one after the other."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Alternatives, of which any matches."""

    branches: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part that is repeated."""

    part: Part
    least: int
    most: int


Part = Literal | CharacterClass | Sequence | Choice | Repeat
EMPTY: Final = Literal("")


@dataclass(slots=True)
class _Group:
    parts: list[Part] = field(default_factory=list)
    branches: list[Part] = field(default_factory=list)

    def end_branch(self) -> None:
        self.branches.append(_sequence(self.parts))
        self.parts = []

    def whole(self) -> Part:
        self.end_branch()
        return self.branches[0] if len(self.branches) == 1 else Choice(tuple(self.branches))


def parse(pattern: str) -> Part:
    """Return the tree of a valid pattern, in time linear in its length."""
    groups = [_Group()]
    for token in _TOKEN.finditer(pattern):
        kind, group = token.lastgroup, groups[-1]
        match kind:
            case "open":
                groups.append(_Group())
            case "close" if len(groups) > 1:
                part = groups.pop().whole()
                groups[-1].parts.append(part)
            case "or":
                group.end_branch()
            case "repeat" if group.parts:
                group.parts[-1] = _repeated(group.parts[-1], token["repeat"])
            case "flags" | "anchor":
                group.parts.append(EMPTY)
            case "quoted":
                group.parts += map(Literal, token["quoted"])
            case _:
                group.parts.append(_single(token))
    while len(groups) > 1:
        part = groups.pop().whole()
        groups[-1].parts.append(part)
    return groups[0].whole()


def _single(token: re.Match[str]) -> Part:
    """Return a single character, or a set of characters."""
    text = token[0]
    match token.lastgroup:
        case "code" | "hex":
            return Literal(chr(int(token["code"] or token["hex"], 16)))
        case "octal":
            return Literal(chr(int(token["octal"], 8)))
        case "unicode" | "class" | "any":
            return CharacterClass(text)
        case "escape":
            name = token["escape"]
            if name in _EMPTY_ESCAPES:
                return EMPTY
            return CharacterClass(text) if name in _CLASS_ESCAPES else Literal(_ESCAPED.get(name, name))
    return Literal(text)


def _repeated(part: Part, text: str) -> Part:
    if text == "*":
        return Repeat(part, 0, _LARGEST_GAP)
    if text == "+":
        return Repeat(part, 1, _LARGEST_GAP)
    if text == "?":
        return Repeat(part, 0, 1)
    low, comma, high = text[1:-1].partition(",")
    return Repeat(part, int(low), int(high) if high else _LARGEST_GAP if comma else int(low))


def _sequence(parts: list[Part]) -> Part:
    """Return parts as one, with neighbouring literals joined and sequences within it dissolved."""
    joined: list[Part] = []
    for part in parts:
        for each in part.parts if isinstance(part, Sequence) else (part,):
            last = joined[-1] if joined else None
            if isinstance(each, Literal) and isinstance(last, Literal):
                joined[-1] = Literal(last.text + each.text)
            else:
                joined.append(each)
    return joined[0] if len(joined) == 1 else Sequence(tuple(joined))
