"""String formats that upstream validates (k8s.io/kube-openapi `pkg/validation/strfmt`).

Each check takes time linear in the text. The docstrings describe upstream's checks, which sometimes differ from the
standard of the same name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Final
from unicodedata import category

from steersman.machinery.go.strings import to_lower
from steersman.machinery.validation.formats import byte_length
from steersman.machinery.values.durations import DurationError, parse_duration
from steersman.work.patterns import late_pattern

from .addresses import is_cidr, is_ipv4, is_ipv6, is_mac

Format = Callable[[str], bool]

_DATE: Final = late_pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME: Final = late_pattern(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
DURATION_PART: Final = late_pattern("(?<![0-9])([0-9]++)[ \t\n\f\r]*+([A-Za-zµ]+)")
"""A number with its unit. The lookbehind starts a number at its first digit only, so each digit is scanned once."""
_INT64: Final = 1 << 63
_UNITS: Final = frozenset({"ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"})
_UNIT_PREFIXES: Final = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
_SHORT_NAME: Final = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_COLOR_PART: Final = "[ \t\n\f\r]*(?:0|[1-9][0-9]?|1[0-9][0-9]|2[0-4][0-9]|25[0-5])[ \t\n\f\r]*"
_CARD: Final = late_pattern(
    "4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9]{2})[0-9]{12}|3[47][0-9]{13}"
    "|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)
_NOT_DIGITS: Final = late_pattern("[^0-9]+")
_SPACE_AND_MINUS: Final = late_pattern("[ \t\n\f\r-]+")
_ISBN10: Final = late_pattern("[0-9]{9}[0-9X]")
_ISBN13: Final = late_pattern("[0-9]{13}")
_DIGITS: Final = frozenset("0123456789")
_ASCII_LABEL: Final = late_pattern("[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?")
_ASCII_LETTERS: Final = late_pattern("[a-zA-Z]{2,}")


def normalized(name: str) -> str:
    """Return the name of a format for lookups: date-time becomes datetime."""
    return name.replace("-", "")


def is_date(text: str) -> bool:
    """Return True for an existing date such as `2006-01-02`."""
    if _DATE.fullmatch(text) is None:
        return False
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:])
    try:
        date(year or 400, month, day)
    except ValueError:
        return False
    return True


def is_datetime(text: str) -> bool:
    """Return True for a date and a time. Text after a second T is ignored; seconds end at 59."""
    parts = text.replace("T", "t").split("t", 2)
    if len(text) < 4 or len(parts) < 2 or not is_date(parts[0]):
        return False
    match = _TIME.fullmatch(parts[1].replace("Z", "z"))
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def is_duration(text: str) -> bool:
    """Return True for Go's durations, or any text with a number and a unit in it (`3 days`)."""
    try:
        parse_duration(text)
    except DurationError:
        pass
    else:
        return True
    is_one = False
    for number, unit in DURATION_PART.findall(text):
        if len(number.lstrip("0")) > 19 or int(number[-20:]) >= _INT64:
            return False
        unit = to_lower(unit)
        is_one = is_one or unit in _UNITS or unit.startswith(_UNIT_PREFIXES)
    return is_one


def is_hostname(text: str) -> bool:
    """Return True for labels of letters, digits, symbols and dashes, of which the last has letters only.

    A single label may have a dash only as its second character.
    """
    if byte_length(text) > 255:
        return False
    *labels, last = text.split(".")
    if any(byte_length(each) > 63 for each in (*labels, last)):
        return False
    if not labels:
        return _is_lone_label(last)
    return all(map(_is_label, labels)) and _are_letters(last)


def _is_lone_label(text: str) -> bool:
    rest = text[1:].removeprefix("-")
    return bool(text) and _is_node(text[0]) and len(rest) <= 62 and all(map(_is_node, rest))


def _is_label(text: str) -> bool:
    if _ASCII_LABEL.fullmatch(text):
        return True
    ends = bool(text) and _is_node(text[0]) and _is_node(text[-1])
    return ends and all(char == "-" or _is_node(char) for char in text)


def _is_node(char: str) -> bool:
    """Return True if a character may begin or end a label: a letter or symbol of any script, or an ASCII digit."""
    return char in _DIGITS or category(char)[0] in "LS"


def _are_letters(text: str) -> bool:
    return _ASCII_LETTERS.fullmatch(text) is not None or (len(text) > 1 and all(category(c)[0] == "L" for c in text))


def is_uri(text: str) -> bool:
    """Return True for a URI that may stand in the first line of an HTTP request: absolute, or a path."""
    from steersman.machinery.go.urls import uri_error  # slow to load, and few schemas ask for it

    return uri_error(text) is None


def is_base64(text: str) -> bool:
    """Return True for padded base64 that is not empty."""
    return bool(text) and len(text) % 4 == 0 and _BASE64.fullmatch(text) is not None


_BASE64: Final = late_pattern("[A-Za-z0-9+/]*={0,2}")


def is_isbn10(text: str) -> bool:
    """Return True for ten digits with a valid check digit, ignoring spaces and dashes."""
    digits = _SPACE_AND_MINUS.sub("", text)
    if _ISBN10.fullmatch(digits) is None:
        return False
    return sum(place * (10 if digit == "X" else int(digit)) for place, digit in enumerate(digits, 1)) % 11 == 0


def is_isbn13(text: str) -> bool:
    """Return True for thirteen digits with a valid check digit, ignoring spaces and dashes."""
    digits = _SPACE_AND_MINUS.sub("", text)
    if _ISBN13.fullmatch(digits) is None:
        return False
    return sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits)) % 10 == 0


def is_credit_card(text: str) -> bool:
    """Return True for a card number of one of the large companies, ignoring all characters that are not digits."""
    digits = _NOT_DIGITS.sub("", text)
    if _CARD.fullmatch(digits) is None:
        return False
    doubled = (2 * int(digit) for digit in digits[-2::-2])
    return (sum(each - 9 if each > 9 else each for each in doubled) + sum(map(int, digits[::-2]))) % 10 == 0


def is_social_security_number(text: str) -> bool:
    """Return True for `078-05-1120`, with dashes or spaces."""
    return _SSN.fullmatch(text) is not None


_SSN: Final = late_pattern("[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}")


def is_short_name(text: str) -> bool:
    """Return True for a DNS label."""
    return len(text) <= 63 and _SHORT.fullmatch(text) is not None


def is_long_name(text: str) -> bool:
    """Return True for DNS labels with dots between them, each of any length."""
    return len(text) <= 253 and _LONG.fullmatch(text) is not None


_SHORT: Final = late_pattern(_SHORT_NAME)
_LONG: Final = late_pattern(rf"{_SHORT_NAME}(?:\.{_SHORT_NAME})*")


def _is_mail_address(text: str) -> bool:
    from .mail_address import is_mail_address  # slow to load, and few schemas ask for it

    return is_mail_address(text)


def _matching(pattern: str) -> Format:
    fullmatch = re.compile(pattern).fullmatch
    return lambda text: fullmatch(text) is not None


_HEX: Final = "[0-9a-fA-F]"


def _uuid(third: str, fourth: str) -> Format:
    return _matching(f"{_HEX}{{8}}-?{_HEX}{{4}}-?{third}-?{fourth}-?{_HEX}{{12}}")


FORMATS: Final[Mapping[str, Format]] = {
    "bsonobjectid": _matching(f"{_HEX}{{24}}"),
    "byte": is_base64,
    "cidr": is_cidr,
    "creditcard": is_credit_card,
    "date": is_date,
    "datetime": is_datetime,
    "duration": is_duration,
    "email": _is_mail_address,
    "hexcolor": _matching(f"#?(?:{_HEX}{{3}}|{_HEX}{{6}})"),
    "hostname": is_hostname,
    "ipv4": is_ipv4,
    "ipv6": is_ipv6,
    "isbn": lambda text: is_isbn10(text) or is_isbn13(text),
    "isbn10": is_isbn10,
    "isbn13": is_isbn13,
    "k8slongname": is_long_name,
    "k8sshortname": is_short_name,
    "mac": is_mac,
    "password": lambda text: True,
    "rgbcolor": _matching(rf"rgb\({_COLOR_PART},{_COLOR_PART},{_COLOR_PART}\)"),
    "ssn": is_social_security_number,
    "uri": is_uri,
    "uuid": _uuid(f"{_HEX}{{4}}", f"{_HEX}{{4}}"),
    "uuid3": _uuid(f"3{_HEX}{{3}}", f"{_HEX}{{4}}"),
    "uuid4": _uuid(f"4{_HEX}{{3}}", f"[89abAB]{_HEX}{{3}}"),
    "uuid5": _uuid(f"5{_HEX}{{3}}", f"[89abAB]{_HEX}{{3}}"),
}
"""The check of a text by the normalized name of its format."""
