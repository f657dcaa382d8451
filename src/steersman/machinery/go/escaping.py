"""Replacement of characters by escapes, at a cost that is bounded for whatever text a client has sent."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

_SHORT: Final = 4096
"""Characters of a text that are looked at one by one. In a longer one each different character is looked at once."""
_LONG: Final = 64 << 10
"""Characters of a text that is escaped piece by piece: a thread that does it gives the interpreter to others."""
_FEW: Final = 4
"""Different characters that are replaced one after the other, each in one pass over the text."""


def escaped(text: str, special: re.Pattern[str], escape: Callable[[str], str]) -> str:
    """Return `text` with `escape(c)` for every character c that `special`, which finds one character, finds.

    An escape must have no character that `special` finds. Each different character is looked at and escaped once,
    however often it is there.
    """
    if len(text) > _LONG:
        return "".join(map(partial(escaped, special=special, escape=escape), _pieces(text)))
    if len(text) <= _SHORT and special.search(text) is None:
        return text
    found = special.findall("".join(set(text)))
    if len(found) > _FEW:
        return text.translate({ord(each): escape(each) for each in found})
    for each in found:
        text = text.replace(each, escape(each))
    return text


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), _LONG):
        yield text[start : start + _LONG]
