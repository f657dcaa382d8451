"""Exact amounts of resources: parsing, canonical text, arithmetic (k8s.io/apimachinery `api/resource.Quantity`).

The canonical text of a quantity, which objects also hold, has the largest suffix and the fewest digits that need no
fraction: "1000m" becomes "1", "0.5" becomes "500m", "1024Mi" becomes "1Gi". Amounts finer than a billionth are rounded
up, away from zero.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from steersman.machinery.go.strings import trim_space
from steersman.net.ascii import is_digits
from steersman.work.patterns import late_pattern

BINARY_SI: Final = "BinarySI"
DECIMAL_SI: Final = "DecimalSI"
DECIMAL_EXPONENT: Final = "DecimalExponent"

FORMAT_WRONG: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
NUMERIC_WRONG: Final = "unable to parse numeric part of quantity"
SUFFIX_WRONG: Final = "unable to parse quantity's suffix"

_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_NAMES = {exponent: name for name, exponent in _BINARY.items()} | {0: ""}
_DECIMAL_NAMES = {exponent: name for name, exponent in _DECIMAL.items()}

# All repetitions are possessive: each part takes all it can, and text that does not match is refused in one pass.
_NUMBER = late_pattern(r"([+-]?+)0*+([0-9]*+)(\.[0-9]*+)?+([eEinumkKMGTP]*+[-+]?+[0-9]*+)", re.ASCII)

_MAX_BINARY = 2**63 - 1
_NANO = -9
_INT64 = 2**63
_MAX_DIGITS = 4000
"""The most digits of a number: Python converts as many in negligible time."""
_MAX_CACHED = 64
"""The longest text that is cached: clients choose these texts, which may be as long as a request body."""
_MAX_EXPONENT = 1000
"""The largest exponent in arithmetic. A larger one counts as this one, so that no text makes a sum or comparison slow.
"""


class QuantityError(ValueError):
    """The error for text that is not a quantity, with upstream's message."""


class Quantity(Struct, frozen=True, eq=False):
    """The amount `mantissa` times ten to the power of `exponent` (at least -9), printed in `format`.

    Equality, order and hash depend on the amount only, not on the format.
    """

    mantissa: int
    exponent: int = 0
    format: str = DECIMAL_SI

    @classmethod
    def of(cls, text: str | int) -> Quantity:
        """Return the quantity of a text or an integer. Raises QuantityError."""
        return parse(str(text))

    def __str__(self) -> str:
        return _canonical(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nanos() == other.nanos()

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos() < other.nanos()

    def __le__(self, other: Quantity) -> bool:
        return self.nanos() <= other.nanos()

    def __gt__(self, other: Quantity) -> bool:
        return self.nanos() > other.nanos()

    def __ge__(self, other: Quantity) -> bool:
        return self.nanos() >= other.nanos()

    def __hash__(self) -> int:
        return hash(self.nanos())

    def __bool__(self) -> bool:
        return self.mantissa != 0

    def __add__(self, other: Quantity) -> Quantity:
        """Return the sum, in the format of `self`, or of `other` if `self` is zero."""
        return _of_nanos(self.nanos() + other.nanos(), self.format if self else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        """Return the difference, in the format of `self`, or of `other` if `self` is zero."""
        return _of_nanos(self.nanos() - other.nanos(), self.format if self else other.format)

    def __mul__(self, factor: int) -> Quantity:
        return Quantity(self.mantissa * factor, self.exponent, self.format)

    def __neg__(self) -> Quantity:
        return Quantity(-self.mantissa, self.exponent, self.format)

    @property
    def sign(self) -> int:
        """Return -1, 0 or 1."""
        return (self.mantissa > 0) - (self.mantissa < 0)

    def scaled(self, scale: int) -> int:
        """Return the amount in units of ten to the power of `scale`, rounded away from zero."""
        return _rescale(self.mantissa, min(self.exponent, _MAX_EXPONENT), scale)[0]

    def as_int(self) -> int:
        """Return the amount rounded away from zero to a whole number, an int64 (upstream's Value)."""
        return self._int64(0)

    def as_milli(self) -> int:
        """Return the amount in thousandths, rounded away from zero, an int64 (upstream's MilliValue)."""
        return self._int64(-3)

    def _int64(self, scale: int) -> int:
        """Return the scaled amount as an int64.

        If the amount does not fit, the result is upstream's: 0, or the last 64 bits where upstream keeps a big number.
        """
        value = self.scaled(scale)
        if -_INT64 <= value < _INT64:
            return value
        if -_INT64 <= self.mantissa < _INT64:
            return 0
        low = (abs(value) + _INT64) % (2 * _INT64) - _INT64
        return low if value > 0 else (-low + _INT64) % (2 * _INT64) - _INT64

    def is_whole(self) -> bool:
        """Return True if the amount has no fraction."""
        return _rescale(self.mantissa, min(self.exponent, _MAX_EXPONENT), 0)[1]

    def round_up(self, scale: int) -> Quantity:
        """Return this amount as a multiple of ten to the power of `scale`, rounded away from zero."""
        return self if self.exponent >= scale else Quantity(self.scaled(scale), scale, self.format)

    def as_float(self) -> float:
        """Return the nearest float."""
        return float(f"{self.mantissa}e{min(self.exponent, _MAX_EXPONENT)}")

    def nanos(self) -> int:
        """Return the amount in billionths, which is exact."""
        power: int = 10 ** (min(self.exponent, _MAX_EXPONENT) - _NANO)
        return self.mantissa * power


def _of_nanos(nanos: int, format: str) -> Quantity:
    return Quantity(nanos, _NANO, format)


def _rescale(mantissa: int, exponent: int, scale: int) -> tuple[int, bool]:
    """Return `mantissa` in units of ten to the power of `scale`, rounded away from zero, and True if that is exact."""
    if exponent >= scale:
        return mantissa * 10 ** (exponent - scale), True
    if scale - exponent > mantissa.bit_length():  # less than one unit
        return (mantissa > 0) - (mantissa < 0), mantissa == 0
    quotient, rest = divmod(abs(mantissa), 10 ** (scale - exponent))
    quotient += rest > 0
    return (quotient if mantissa > 0 else -quotient), rest == 0


def parse(text: str) -> Quantity:
    """Parse a quantity. Raises QuantityError."""
    return _parsed(text) if len(text) <= _MAX_CACHED else _read(text)[0]


def nanos(text: str) -> int:
    """Return the amount of `text` in billionths, for sums and comparisons of many quantities. Raises QuantityError."""
    return known_nanos(text) if len(text) <= _MAX_CACHED else parse(text).nanos()


def is_whole_in_milli(text: str) -> bool:
    """Return True if upstream takes the amount of `text` for a whole number, judging by its MilliValue.

    Raises QuantityError.
    """
    return known_whole_in_milli(text) if len(text) <= _MAX_CACHED else known_whole_in_milli.__wrapped__(text)


def canonical(text: str) -> str:
    """Return `text` as a server stores and prints it. Raises QuantityError.

    Some texts that are not canonical stay unchanged ("1.500", "+5"), because upstream keeps the text of amounts that it
    does not have to compute.
    """
    return known_canonical_text(text) if len(text) <= _MAX_CACHED else known_canonical_text.__wrapped__(text)


def canonical_of_json(value: Any) -> str:
    """Return the canonical text of a JSON value. Raises QuantityError.

    The value may be text, with spaces around it, or a number. All other values are refused as text that is not a
    quantity.
    """
    return canonical_of_text(value) if value.__class__ is str else canonical(str(value))


def canonical_of_text(text: str) -> str:
    """Return the canonical text of a JSON string, which may have spaces around it. Raises QuantityError."""
    return _canonical_trimmed(text) if len(text) <= _MAX_CACHED else _canonical_trimmed.__wrapped__(text)


@lru_cache(maxsize=8192)
def _canonical_trimmed(text: str) -> str:
    return canonical(trim_space(text))


@lru_cache(maxsize=4096)
def known_nanos(text: str) -> int:
    """Return the nanos of a short text, which are kept."""
    return parse(text).nanos()


@lru_cache(maxsize=4096)
def known_whole_in_milli(text: str) -> bool:
    """Return True if a short text is a whole number in thousandths; that is kept."""
    return parse(text).as_milli() % 1000 == 0


@lru_cache(maxsize=8192)
def _parsed(text: str) -> Quantity:
    return _read(text)[0]


@lru_cache(maxsize=8192)
def known_canonical_text(text: str) -> str:
    """Return the canonical form of a short text, which is kept."""
    quantity, kept = _read(text)
    return text if kept else str(quantity)


def _read(text: str) -> tuple[Quantity, bool]:
    """Parse `text`; return the quantity, and True if `text` is stored as it is."""
    if not text:
        raise QuantityError(FORMAT_WRONG)
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise QuantityError(FORMAT_WRONG)
    sign, whole, fraction, suffix = match.groups()
    whole, fraction = whole or "0", (fraction or ".")[1:]
    exponent, format = _suffix(suffix)
    digits = whole + fraction
    if len(digits) > _MAX_DIGITS:
        raise QuantityError(NUMERIC_WRONG)
    mantissa = -int(digits) if sign == "-" else int(digits)
    has_digits = any(map(is_digits, text[: match.start(4)]))
    if format == BINARY_SI:
        return _binary(mantissa, whole, fraction, exponent, has_digits=has_digits)
    exponent -= len(fraction)
    if len(digits) <= 18 and exponent >= _NANO:
        kept = exponent % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
        return Quantity(mantissa, exponent, format), kept
    if not has_digits:
        raise QuantityError(NUMERIC_WRONG)
    if exponent < _NANO:
        mantissa, exponent = _rescale(mantissa, exponent, _NANO)[0], _NANO
    return Quantity(mantissa, exponent, format), False


def _suffix(suffix: str) -> tuple[int, str]:
    """Return the exponent (of two for BinarySI, else of ten) and format of a suffix. Raises QuantityError."""
    if (exponent := _DECIMAL.get(suffix)) is not None:
        return exponent, DECIMAL_SI
    if (exponent := _BINARY.get(suffix)) is not None:
        return exponent, BINARY_SI
    digits = suffix[1:]
    if suffix[0] in "eE" and len(digits) <= 20 and is_digits(digits.lstrip("+-")):
        parsed = int(digits)
        if -(2**63) <= parsed < 2**63:
            return (parsed + 2**31) % 2**32 - 2**31, DECIMAL_EXPONENT  # upstream cuts it to 32 bits
    raise QuantityError(SUFFIX_WRONG)


def _binary(mantissa: int, whole: str, fraction: str, exponent: int, *, has_digits: bool) -> tuple[Quantity, bool]:
    """Return the quantity with a binary suffix, and True if its text is stored as it is.

    Raises QuantityError for text without a digit, except for suffixes that upstream's fast path reads, which count as
    zero.
    """
    value = mantissa << exponent
    if not fraction and 15 - len(whole) - exponent * 3 // 10 - 1 >= 0:
        return Quantity(value, 0, BINARY_SI), mantissa & 7 != 0
    if not has_digits:
        raise QuantityError(NUMERIC_WRONG)
    value, scale = value, -len(fraction)
    if scale < _NANO:
        value, scale = _rescale(value, scale, _NANO)[0], _NANO
    limit = _MAX_BINARY * 10**-scale
    if abs(value) > limit:
        value, scale = (_MAX_BINARY if value > 0 else -_MAX_BINARY), 0
    small = value and abs(value) < 10**-scale
    return Quantity(value, scale, DECIMAL_SI if small else BINARY_SI), False


def _canonical(quantity: Quantity) -> str:
    mantissa, exponent = quantity.mantissa, quantity.exponent
    if mantissa == 0:
        return "0"
    if quantity.format == BINARY_SI:
        whole, exact = _rescale(mantissa, min(exponent, _MAX_EXPONENT), 0)
        if exact and abs(whole) >= 1024:
            power = 0
            while whole % 1024 == 0:
                whole, power = whole // 1024, power + 10
            return f"{whole}{_BINARY_NAMES.get(power, '')}"
    digits = str(abs(mantissa))
    stripped = digits.rstrip("0")
    exponent += len(digits) - len(stripped)
    spare = exponent % 3
    number = ("-" if mantissa < 0 else "") + stripped + "0" * spare
    exponent -= spare
    if quantity.format == DECIMAL_EXPONENT:
        return f"{number}e{exponent}" if exponent else number
    return number + _DECIMAL_NAMES.get(exponent, "")
