r"""ASCII-only versions of string methods, for text of network protocols.

Python's own methods follow Unicode: `"\u212a".lower()` is `"k"`, `isdigit` and `int` accept `"\u0663"` as a digit, and
`strip` and `split` treat `"\u00a0"` as a space. A parser that uses them on protocol text reads the text differently
from the proxies before it and the servers behind it.
"""

from __future__ import annotations

from typing import Final

SPACE: Final = " \t\n\v\f\r"
"""White space of protocols, as an argument for `str.strip`."""


def lower(text: str) -> str:
    """Return `text` with its ASCII letters in lower case; all other characters stay."""
    if text.isascii():
        return text.lower()
    # bytes.lower() changes only ASCII letters
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def is_digits(text: str) -> bool:
    """Return True if `text` consists of one or more ASCII digits and nothing else."""
    return text.isascii() and text.isdigit()
