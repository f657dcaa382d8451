"""Characters that Go prints unescaped (strconv.IsPrint), independent of the interpreter's Unicode version."""

from __future__ import annotations

import re
from functools import cache
from typing import Final
from unicodedata import unidata_version

_GO_HAS: Final = (15, 0)
"""The version of Unicode in Go."""
_IS_NEWER: Final = tuple(map(int, unidata_version.split(".")))[:2] > _GO_HAS
"""True if the interpreter takes characters for printable that Go does not know."""


def is_printable(text: str) -> bool:
    """Return True if Go prints every character of `text` unescaped."""
    return is_plainly_printable(text) or (not text.isascii() and not unprintable().search("".join(set(text))))


def is_plainly_printable(text: str) -> bool:
    """Return True if Python's own table already shows that Go prints all of `text` unescaped.

    False says nothing: Go's table must be asked then.
    """
    return text.isprintable() and (not _IS_NEWER or text.isascii())


@cache
def unprintable() -> re.Pattern[str]:
    """Return a pattern that finds a character which Go does not print unescaped."""
    from steersman.machinery.go.printable_ranges import PRINTABLE

    ranges = ((int(end, 16) for end in each.split("-")) for each in PRINTABLE.split())
    return re.compile("[^" + "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges) + "]")
