"""Replacement of characters by escapes, at a cost that is bounded for whatever text a client has sent."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_FEW: Final = 16
"""Different characters that are replaced one after the other, each in one pass over the text."""


def escaped(text: str, special: re.Pattern[str], escape: Callable[[str], str]) -> str:
    """Return `text` with `escape(c)` for every character c that `special`, which finds one character, finds.

    An escape must have no character that `special` finds. Each different character is escaped once, however often it
    is there.
    """
    position = 0
    for _ in range(_FEW):
        found = special.search(text, position)
        if found is None:
            return text
        position = found.start()
        text = text.replace(found[0], escape(found[0]))
    rest = set(special.findall("".join(set(text))))
    return text.translate({ord(each): escape(each) for each in rest}) if rest else text
