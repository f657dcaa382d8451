"""Which characters Go prints as they are (strconv.IsPrint), whatever Unicode the interpreter has."""

from __future__ import annotations

import re
from functools import cache


def is_printable(text: str) -> bool:
    """Whether all of a text is printed as it is."""
    return text.isprintable() if text.isascii() else unprintable().search(text) is None


@cache
def unprintable() -> re.Pattern[str]:
    """Return a pattern that finds a character which is not printed as it is."""
    from steersman.machinery.go.printable_ranges import PRINTABLE

    ranges = ((int(end, 16) for end in each.split("-")) for each in PRINTABLE.split())
    return re.compile("[^" + "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges) + "]")
