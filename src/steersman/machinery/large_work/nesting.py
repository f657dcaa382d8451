"""How deeply documents may be nested: a bound that is counted, so that it is the same whatever runs the server.

Upstream's bound is 10,000. Decoders and walkers of documents call themselves for each level; how often they may is a
matter of the Python version, of C's stack and of the library, and is not left to them.
"""

from __future__ import annotations

import sys
from array import array
from itertools import accumulate
from typing import Final, NamedTuple

from steersman.work.threads import give_way

MAX_DEPTH: Final = 500
"""Levels of arrays and objects within each other that a document may have."""

_FRAMES: Final = 10_000
"""Calls within calls: several for each of the levels that a document may have, and those around them.

Decoders written in C that count their calls too need a few hundred bytes of stack for each, of which there are 8 MiB.
"""

_PIECE: Final = 64 << 10
_OTHER: Final = bytes(set(range(256)) - set(b"[]{}"))
_NOT_OPENING: Final = bytes(set(range(256)) - set(b"[{"))
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
"""One level more, or one less, as signed bytes."""


def is_too_deep(data: bytes) -> bool:
    """Whether some JSON has more than MAX_DEPTH levels; takes time linear in its size.

    Too short a text is not looked at: each level takes two bytes, unless the text is malformed. Of others with few
    brackets, as nearly all have, these are counted only.
    """
    if len(data) <= 2 * MAX_DEPTH or len(data.translate(None, _NOT_OPENING)) <= MAX_DEPTH:
        return False
    return depth_of(data) > MAX_DEPTH


def depth_of(data: bytes) -> int:
    """The most arrays and objects that are open at once anywhere in some JSON."""
    return measured(data).depth


class Measures(NamedTuple):
    """What there is in some JSON outside of its strings."""

    objects: int
    """Objects and arrays."""
    commas: int
    depth: int


def measured(data: bytes) -> Measures:
    """Counts, piece by piece: one call over all of a large text would hold the interpreter for long."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    objects = commas = outside = level = depth = 0
    for at in range(0, len(data), _PIECE):
        give_way()
        parts = data[at : at + _PIECE].split(b'"')
        text = b"".join(parts[outside::2])
        outside = (outside + len(parts) - 1) % 2
        objects += text.count(b"{") + text.count(b"[")
        commas += text.count(b",")
        levels = list(accumulate(array("b", text.translate(_STEPS, _OTHER)), initial=level))
        level, depth = levels[-1], max(depth, max(levels))
    return Measures(objects, commas, depth)


def make_room() -> None:
    """Lets functions call themselves for each level that documents may have. For a process that serves."""
    if sys.getrecursionlimit() < _FRAMES:
        sys.setrecursionlimit(_FRAMES)
