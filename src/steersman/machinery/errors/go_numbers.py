"""Numbers parsed from text as Go's package strconv parses them, with its error messages."""

from __future__ import annotations

import math
import re
from typing import Final

from steersman.machinery.errors.field import quote
from steersman.net.ascii import is_digits
from steersman.work.patterns import late_pattern

_INT64: Final = 1 << 63
_NAMED_FLOAT: Final = late_pattern("nan|[+-]?inf(?:inity)?", re.ASCII | re.IGNORECASE)
_FLOAT: Final = late_pattern(
    r"[+-]?(?:[0-9][0-9_]*+(?:\.[0-9_]*+)?+|\.[0-9][0-9_]*+)(?:e[+-]?[0-9][0-9_]*+)?+", re.ASCII | re.IGNORECASE
)
_HEX_FLOAT: Final = late_pattern(
    r"[+-]?0x(?=_?\.?[0-9a-f])[0-9a-f_]*+(?:\.[0-9a-f_]*+)?+p[+-]?[0-9][0-9_]*+", re.ASCII | re.IGNORECASE
)
"""Hexadecimal floats. Both patterns allow underscores anywhere after the first digit. The next two patterns find the
underscores that are not allowed.
"""
_STRAY: Final = late_pattern("(?<![0-9])_|_(?![0-9])", re.ASCII)
_HEX_STRAY: Final = late_pattern("(?<![0-9a-fx])_|_(?![0-9a-f])", re.ASCII | re.IGNORECASE)
_MAX_DIGITS: Final = 100
"""The most digits of a number that is converted: the time to convert grows faster than the number of digits."""


class NumError(ValueError):
    """The error of a text that is not a number (strconv.NumError).

    The text may be long, so it is quoted only when the message is read.
    """

    def __init__(self, function: str, text: str, why: str) -> None:
        super().__init__(function, text, why)

    def __str__(self) -> str:
        function, text, why = self.args
        return f"strconv.{function}: parsing {quote(text)}: {why}"


def parse_int(text: str) -> int:
    """Parse a decimal int64. Raises NumError with the message of strconv.ParseInt."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not is_digits(digits):
        raise NumError("ParseInt", text, "invalid syntax")
    value = int(text) if len(digits) <= _MAX_DIGITS else _INT64
    if not -_INT64 <= value < _INT64:
        raise NumError("ParseInt", text, "value out of range")
    return value


def parse_uint(text: str, bits: int = 64) -> int:
    """Parse a decimal unsigned number of `bits` bits. Raises NumError with the message of strconv.ParseUint."""
    if not is_digits(text):
        raise NumError("ParseUint", text, "invalid syntax")
    digits = text.lstrip("0")
    value = int(digits or "0") if len(digits) <= _MAX_DIGITS else 1 << bits
    if value >= 1 << bits:
        raise NumError("ParseUint", text, "value out of range")
    return value


def parse_float(text: str) -> float:
    """Parse a float, which may be NaN or infinite. Raises NumError if strconv.ParseFloat would return 0 with an error."""
    if _NAMED_FLOAT.fullmatch(text):
        return float(text)
    is_hex = text.lstrip("+-")[:2] in ("0x", "0X")
    form, stray = (_HEX_FLOAT, _HEX_STRAY) if is_hex else (_FLOAT, _STRAY)
    if not form.fullmatch(text) or stray.search(text):
        raise NumError("ParseFloat", text, "invalid syntax")
    plain = text.replace("_", "")
    if not is_hex:
        return float(plain)
    try:
        return float.fromhex(plain)
    except OverflowError:
        return math.copysign(math.inf, -1 if plain[0] == "-" else 1)


def atoi(text: str) -> int:
    """Return the value that strconv.Atoi returns beside its error.

    The value is 0 for text that is not a number, and the nearest int64 for a number out of range.
    """
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not is_digits(digits):
        return 0
    digits = digits.lstrip("0") or "0"
    value = int(digits) if len(digits) <= _MAX_DIGITS else _INT64
    return max(-value, -_INT64) if text[0] == "-" else min(value, _INT64 - 1)
