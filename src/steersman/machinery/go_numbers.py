"""Numbers in text as Go reads them, with its words for what is none (package strconv)."""

from __future__ import annotations

from typing import Final

from steersman.machinery.field import quote

_INT64: Final = 1 << 63
_MAX_DIGITS: Final = 100
"""Digits of a number that are read at all: the time to read one grows faster than its length."""


def parse_int(text: str) -> int:
    """The decimal int64 in `text`. Raises ValueError with the message of strconv.ParseInt."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
    value = int(text) if len(digits) <= _MAX_DIGITS else _INT64
    if not -_INT64 <= value < _INT64:
        raise ValueError(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return value


def atoi(text: str) -> int:
    """What strconv.Atoi returns beside its error: 0 for what is no number, the nearest int64 for one out of range."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return 0
    digits = digits.lstrip("0") or "0"
    value = int(digits) if len(digits) <= _MAX_DIGITS else _INT64
    return max(-value, -_INT64) if text[0] == "-" else min(value, _INT64 - 1)
