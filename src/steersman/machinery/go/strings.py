"""Functions of Go's package strings, where Python's string methods differ.

Python strips and splits at control characters that are not spaces to Go. Python changes the case of a whole text, which
may lengthen it or depend on neighbouring letters, where Go maps single characters. Text of protocols is ASCII and has
`steersman.net.ascii`.
"""

from __future__ import annotations

from typing import Final

from steersman.work.patterns import late_pattern

_SPACES: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""All characters for which unicode.IsSpace is true."""
_FIELD: Final = late_pattern(f"[^{_SPACES}]+")


def trim_space(text: str) -> str:
    """Return `text` without leading and trailing spaces (strings.TrimSpace)."""
    return text.strip(_SPACES)


def split_space(text: str) -> list[str]:
    """Return the words of `text`, split at spaces (strings.Fields)."""
    return _FIELD.findall(text)


def to_lower(text: str) -> str:
    """Return `text` in lower case (strings.ToLower)."""
    if text.isascii():
        return text.lower()
    return "".join("i" if char == "\u0130" else char.lower() for char in text)


def to_upper(text: str) -> str:
    """Return `text` in upper case (strings.ToUpper)."""
    if text.isascii():
        return text.upper()
    return "".join(char if len(upper := char.upper()) > 1 else upper for char in text)


def is_letter(char: str) -> bool:
    """Return True if `char` is a letter (unicode.IsLetter)."""
    return char.isalpha()
