"""Replacement of characters by escapes, with a bounded cost for any text of a client."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

_SHORT: Final = 4096
"""Characters of a text that is searched as it is. A longer text is reduced to its set of characters first."""
_LONG: Final = 64 << 10
"""Characters of a piece, as longer texts are escaped in pieces: a worker thread gives the interpreter to other threads
between two pieces.
"""
_FEW: Final = 4
"""The largest number of different characters that are replaced one after the other, each in one pass over the text."""


def escaped(text: str, special: re.Pattern[str], escape: Callable[[str], str]) -> str:
    """Return `text` with `escape(c)` in the place of every character c that `special` finds.

    `special` is a pattern that finds single characters. An escape must not contain any of these characters. `escape` is
    called once for each different character.
    """
    if len(text) > _LONG:
        return "".join(map(partial(escaped, special=special, escape=escape), _pieces(text)))
    if len(text) <= _SHORT and special.search(text) is None:
        return text
    characters = special.findall("".join(set(text)))
    if len(characters) > _FEW:
        return text.translate({ord(each): escape(each) for each in characters})
    for each in characters:
        text = text.replace(each, escape(each))
    return text


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), _LONG):
        yield text[start : start + _LONG]
