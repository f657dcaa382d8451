"""Texts that match RE2 patterns: a strategy for each pattern, bounded in size and time.

hypothesis' own `from_regex` reads Python's syntax, which differs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from steersman.schema.patterns import matches, pattern_error

from .errors import Unsatisfiable
from .pattern_syntax import EMPTY, CharacterClass, Choice, Literal, Part, Repeat, Sequence, parse

LONGEST: Final = 16_384
"""The most characters of the shortest text of a pattern."""
_DEEPEST: Final = 12
"""Levels of a pattern below which the shortest text is taken."""
_MORE: Final = (6, 2, 1)
"""The most repetitions beyond the least, in a repetition, one within it, and one within that; none further below.

Those that a minimal length needs are added.
"""
_MANY: Final = 1 << 40
_LONGEST_PATTERN: Final = 20_000
_LONGEST_KEPT: Final = 1024
"""Characters of the longest pattern, and of the longest set of characters, whose results are cached."""
_SAMPLES: Final = "äßéñøčπωЖяאبあア漢字한€½²—“”…\u00a0\u2028😀"
"""Characters beyond ASCII that may be in a set."""


def pattern_texts(pattern: str, least: int = 0, most: int | None = None) -> SearchStrategy[str]:
    """Return a strategy for texts that match a pattern and have between `least` and `most` characters.

    Raises Unsatisfiable for a pattern that is malformed, or whose texts are too long.
    """
    if len(pattern) > _LONGEST_PATTERN:
        raise Unsatisfiable(f"the pattern has more than {_LONGEST_PATTERN} characters")
    make = _pattern_texts if len(pattern) <= _LONGEST_KEPT else _pattern_texts.__wrapped__
    return make(pattern, least, most)


@lru_cache(maxsize=128)
def _pattern_texts(pattern: str, least: int, most: int | None) -> SearchStrategy[str]:
    if error := pattern_error(pattern):
        raise Unsatisfiable(error)
    tree = parse(pattern)
    shortest = length(tree)
    if shortest > LONGEST:
        raise Unsatisfiable(f"texts of the pattern {shown(pattern)} have at least {shortest} characters")
    if least > LONGEST:
        raise Unsatisfiable(f"the text must have at least {least} characters; {LONGEST} are the most")
    found = Texts(max(0, least - shortest), most).of(tree)

    def fits(text: str) -> bool:
        return len(text) >= least and (most is None or len(text) <= most) and matches(pattern, text)

    return found.filter(fits)


def shown(pattern: str) -> str:
    """Return a pattern for a message, at most 80 characters of it."""
    return repr(pattern if len(pattern) <= 80 else f"{pattern[:77]}...")


def length(part: Part) -> int:
    """Return the length of the shortest text of a part."""
    match part:
        case Literal():
            return len(part.text)
        case CharacterClass():
            return 1
        case Sequence():
            return min(sum(map(length, part.parts)), _MANY)
        case Choice():
            return min(map(length, part.branches))
        case Repeat():
            return min(part.least * length(part.part), _MANY) if part.least else 0


def shortest_text(part: Part) -> str:
    """Return a shortest text of a part."""
    match part:
        case Literal():
            return part.text
        case CharacterClass():
            return characters(part.text)[:1]
        case Sequence():
            return "".join(map(shortest_text, part.parts))
        case Choice():
            return shortest_text(min(part.branches, key=length))
        case Repeat():
            return shortest_text(part.part) * part.least if part.least else ""


class Texts:
    """Strategies for the texts of the parts of one pattern."""

    def __init__(self, lacking: int, most: int | None) -> None:
        """`lacking` is the number of characters that repetitions have to add to the shortest text."""
        self._lacking = lacking
        self._most = most

    def of(self, part: Part, depth: int = 0, within: int = 0) -> SearchStrategy[str]:
        """Return the strategy of a part `depth` levels below the whole, `within` so many repetitions."""
        if depth >= _DEEPEST:
            return st.just(shortest_text(part))
        match part:
            case Literal():
                return st.just(part.text)
            case CharacterClass():
                return st.text(characters(part.text), min_size=1, max_size=1)
            case Sequence():
                return self._sequence(part, depth, within)
            case Choice():
                return st.one_of([self.of(each, depth + 1, within) for each in sorted(part.branches, key=length)])
            case Repeat():
                return self._repeat(part, depth, within)

    def _sequence(self, part: Sequence, depth: int, within: int) -> SearchStrategy[str]:
        parts = [self.of(each, depth + 1, within) for each in part.parts if each != EMPTY]
        if not parts:
            return st.just("")
        return parts[0] if len(parts) == 1 else st.tuples(*parts).map("".join)

    def _repeat(self, part: Repeat, depth: int, within: int) -> SearchStrategy[str]:
        """Return the strategy of a repetition; the first one that can adds the characters that are lacking."""
        inner, least = part.part, part.least
        unit = max(length(inner), 1)
        if self._lacking and part.most > least:
            more = min(-(-self._lacking // unit), part.most - least)
            self._lacking = max(0, self._lacking - more * unit)
            least += more
        most = min(part.most, least + (_MORE[within] if within < len(_MORE) else 0))
        if self._most is not None:
            most = max(least, min(most, self._most // unit))
        if isinstance(inner, CharacterClass):
            return st.text(characters(inner.text), min_size=least, max_size=most)
        if least > 100:
            return st.just(shortest_text(inner) * least)
        return st.lists(self.of(inner, depth + 1, within + 1), min_size=least, max_size=most).map("".join)


def characters(text: str) -> str:
    """Return characters of a set as a pattern writes it, at most a few hundred, plain ones first.

    Raises Unsatisfiable if none is found.
    """
    return _characters(text) if len(text) <= _LONGEST_KEPT else _characters.__wrapped__(text)


@lru_cache(maxsize=256)
def _characters(text: str) -> str:
    pool = "".join(dict.fromkeys(f"{_PLAIN}{_printable(text)}{_SAMPLES}\t\n"))
    found = "".join(each for each in pool if matches(f"^{text}$", each))
    if not found:
        raise Unsatisfiable(f"no character is known in the set {shown(text)}")
    return found


_PLAIN: Final = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-_. !\"#$%&'()*+,/:;<=>?@[\\]^`{|}~"


def _printable(text: str) -> str:
    """Return the first characters beyond ASCII in a text."""
    return "".join(each for each in text[:1000] if not each.isascii())[:100]
