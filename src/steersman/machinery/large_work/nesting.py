"""The bound on the nesting of documents, which is counted and so does not depend on the interpreter.

Upstream's bound is 10,000. Decoders and walkers of documents recurse for each level. The depth at which recursion fails
depends on the Python version, the C stack and the library, so it is not relied on.
"""

from __future__ import annotations

import sys
from array import array
from itertools import accumulate
from typing import Final, NamedTuple

from steersman.work.threads import give_way

MAX_DEPTH: Final = 500
"""The most levels of arrays and objects within each other in a document."""

_FRAMES: Final = 10_000
"""The recursion limit of a serving process: several calls for each level of a document, and the calls around them.

Decoders written in C that count their calls, too, need a few hundred bytes of stack for each. The stack has 8 MiB.
"""

_PIECE: Final = 64 << 10
_OTHER: Final = bytes(set(range(256)) - set(b"[]{}"))
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
"""A translation of brackets to +1 and -1, as signed bytes."""


def is_too_deep(data: bytes) -> bool:
    """Return True if JSON text has more than MAX_DEPTH levels. The time is linear in the text's size.

    Short text is not examined, because each level takes two bytes unless the text is malformed. Text with few opening
    brackets, as nearly all has, is only checked by their number.
    """
    if len(data) <= 2 * MAX_DEPTH or len(data) - len(data.replace(b"{", b"").replace(b"[", b"")) <= MAX_DEPTH:
        return False  # `replace` finds few brackets in much text three times as fast as `count`
    return depth_of(data) > MAX_DEPTH


def depth_of(data: bytes) -> int:
    """Return the largest number of arrays and objects that are open at once in JSON text."""
    return measure(data).depth


class JSONCounts(NamedTuple):
    """Counts of JSON text, outside of its strings."""

    objects: int
    """The number of objects and arrays."""
    commas: int
    depth: int


def measure(data: bytes) -> JSONCounts:
    """Count brackets, commas and nesting of JSON text, in pieces.

    One call over all of a large text would hold the interpreter for too long.
    """
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
    return JSONCounts(objects, commas, depth)


def raise_recursion_limit() -> None:
    """Raise the recursion limit of this process, so that functions may recurse for each level of a document."""
    if sys.getrecursionlimit() < _FRAMES:
        sys.setrecursionlimit(_FRAMES)
