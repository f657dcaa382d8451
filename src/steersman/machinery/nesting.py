"""How deeply documents may be nested: a bound that is counted, so that it is the same whatever runs the server.

Upstream's bound is 10,000. Decoders and walkers of documents call themselves for each level; how often they may is a
matter of the Python version, of C's stack and of the library, and is not left to them.
"""

from __future__ import annotations

import sys
from itertools import accumulate
from typing import Final

MAX_DEPTH: Final = 500
"""Levels of arrays and objects within each other that a document may have."""

_FRAMES: Final = 10_000
"""Calls within calls: several for each of the levels that a document may have, and those around them.

Decoders written in C that count their calls too need a few hundred bytes of stack for each, of which there are 8 MiB.
"""

_STRUCTURE: Final = b'[]{}"'
_OTHER: Final = bytes(each for each in range(256) if each not in _STRUCTURE)
_STEPS: Final = [{"[": 1, "{": 1, "]": -1, "}": -1}.get(chr(each), 0) for each in range(256)]


def is_too_deep(data: bytes) -> bool:
    """Whether some JSON has more than MAX_DEPTH levels; takes time linear in its size.

    Too short a text is not looked at: each level takes two bytes, unless the text is malformed. Of others with few
    brackets, as nearly all have, these are counted only.
    """
    if len(data) <= 2 * MAX_DEPTH or data.count(b"{") + data.count(b"[") <= MAX_DEPTH:
        return False
    return depth_of(data) > MAX_DEPTH


def depth_of(data: bytes) -> int:
    """The most arrays and objects that are open at once anywhere in some JSON."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside = b"".join(data.translate(None, _OTHER).split(b'"')[::2])
    return max(accumulate(map(_STEPS.__getitem__, outside)), default=0)


def make_room() -> None:
    """Lets functions call themselves for each level that documents may have. For a process that serves."""
    if sys.getrecursionlimit() < _FRAMES:
        sys.setrecursionlimit(_FRAMES)
