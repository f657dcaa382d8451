"""Formats with letters after percent signs, as of `date` and `stat`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from steersman.nodes.shell.effects import MOST_BUFFERED, OutOfMemory, Work, World
from steersman.work.patterns import late_pattern

_LETTER: Final = late_pattern("%(.)")


def filled(world: World, form: str, put: Callable[[re.Match[str]], str]) -> Work[str]:
    """Return a format with each letter replaced by the result of `put`.

    Raises OutOfMemory beyond MOST_BUFFERED characters.
    """
    pieces: list[str] = []
    at = size = 0
    for found in _LETTER.finditer(form):
        pieces += (form[at : found.start()], put(found))
        at = found.end()
        size += len(pieces[-1]) + len(pieces[-2])
        if size > MOST_BUFFERED:
            raise OutOfMemory
        yield from world.spend(len(pieces[-1]), lines=4)
    return "".join((*pieces, form[at:]))
