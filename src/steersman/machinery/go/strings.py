"""Text as Go's package strings takes it, which is not as Python does.

Python strips and splits at control characters that are no spaces to Go, and changes the case of whole texts where Go
goes by single characters, so that a text may get longer or a letter depend on its neighbours. What belongs to a
protocol is ASCII and has `steersman.net.ascii`.
"""

from __future__ import annotations

import re
from typing import Final

_SPACES: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""What unicode.IsSpace says yes to."""
_FIELD: Final = re.compile(f"[^{_SPACES}]+")


def trim_space(text: str) -> str:
    """strings.TrimSpace."""
    return text.strip(_SPACES)


def split_space(text: str) -> list[str]:
    """strings.Fields."""
    return _FIELD.findall(text)


def to_lower(text: str) -> str:
    """strings.ToLower."""
    if text.isascii():
        return text.lower()
    return "".join("i" if char == "\u0130" else char.lower() for char in text)


def to_upper(text: str) -> str:
    """strings.ToUpper."""
    if text.isascii():
        return text.upper()
    return "".join(char if len(upper := char.upper()) > 1 else upper for char in text)


def is_letter(char: str) -> bool:
    """unicode.IsLetter."""
    return char.isalpha()
