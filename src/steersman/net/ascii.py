"""Text of protocols, whose letters, digits and spaces are ASCII's.

What Python's own methods take for a letter, a digit or a space is Unicode's: `"\u212a".lower()` is `"k"`, `"\u0663"` is
a digit to `isdigit` and `int`, `"\u00a0"` a space to `strip` and `split`. Whoever reads a protocol so reads something
else than the servers before and behind this one.
"""

from __future__ import annotations

from typing import Final

SPACE: Final = " \t\n\v\f\r"
"""What a protocol means by white space, for `str.strip`."""


def lower(text: str) -> str:
    """`text` with its ASCII letters in lower case."""
    if text.isascii():
        return text.lower()
    # the letters that bytes have are ASCII's
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def is_digits(text: str) -> bool:
    """Whether `text` is one ASCII digit or several, and nothing else."""
    return text.isascii() and text.isdigit()
