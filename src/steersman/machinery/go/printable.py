"""Which characters Go prints as they are (strconv.IsPrint), whatever Unicode the interpreter has."""

from __future__ import annotations

import re
from functools import cache
from typing import Final
from unicodedata import unidata_version

_GO_HAS: Final = (15, 0)
"""Version of Unicode in Go."""
_IS_NEWER: Final = tuple(map(int, unidata_version.split(".")))[:2] > _GO_HAS
"""Whether the interpreter prints characters that Go does not know."""


def is_printable(text: str) -> bool:
    """Return True if all of a text is printed as it is."""
    return is_plainly_printable(text) or (not text.isascii() and not unprintable().search("".join(set(text))))


def is_plainly_printable(text: str) -> bool:
    """Return True if the interpreter knows that all of a text is printed, without a look into Go's own table."""
    return text.isprintable() and (not _IS_NEWER or text.isascii())


@cache
def unprintable() -> re.Pattern[str]:
    """Return a pattern that finds a character which is not printed as it is."""
    from steersman.machinery.go.printable_ranges import PRINTABLE

    ranges = ((int(end, 16) for end in each.split("-")) for each in PRINTABLE.split())
    return re.compile("[^" + "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges) + "]")
