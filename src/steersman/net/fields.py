"""Encoding of response header fields, with a cache for repeated ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from steersman.work.bounded_cache import BoundedCache
from steersman.work.patterns import late_pattern

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_VALUES_PER_NAME: Final = 64
_MAX_FIELDS: Final = 4096
_LONGEST_KEPT: Final = 512

_NAME: Final = late_pattern(r"[a-z0-9!#$%&'*+.^_`|~-]+")
_FORBIDDEN_IN_VALUE: Final = late_pattern(r"[\x00\r\n]")


class FieldCache:
    """Encoder of header fields for one protocol, with a bounded cache of encoded fields.

    Values of a name are no longer cached once the name has had many values, for example an identifier of each request.
    Raises ValueError for a name that is no token and for a value with NUL or a line break.
    """

    __slots__ = ("_count", "_date", "_encode", "_fields", "_second")

    def __init__(self, encode: Callable[[str, str], bytes]) -> None:
        self._encode = encode
        self._fields: BoundedCache[tuple[str, str], bytes] = BoundedCache(_MAX_FIELDS)
        self._count: BoundedCache[str, int] = BoundedCache(_MAX_FIELDS)
        self._second = -1
        self._date = b""

    def encode(self, headers: list[tuple[str, str]]) -> list[bytes]:
        """Return the encoded fields of `headers`, in order. Raises ValueError."""
        known = self._fields
        return [known[field] or self._make(field) for field in headers]

    def date(self) -> bytes:
        """Return the encoded Date field (RFC 9110 section 6.6.1), renewed once a second."""
        second = int(time.time())
        if second != self._second:
            self._second = second
            self._date = self._encode("date", http_date(second))
        return self._date

    def _make(self, field: tuple[str, str]) -> bytes:
        name, value = field
        known = self._count[name] or 0
        if not (known or _NAME.fullmatch(name)) or not (value.isprintable() or not _FORBIDDEN_IN_VALUE.search(value)):
            raise ValueError(f"header field {name!r} cannot be sent")
        encoded = self._encode(name, value)
        if known < _VALUES_PER_NAME and len(encoded) <= _LONGEST_KEPT:
            self._count.keep(name, known + 1)
            self._fields.keep((name, value), encoded)
        return encoded


def http_date(second: int) -> str:
    """Return a time, in seconds since the epoch, in HTTP's format (RFC 9110 5.6.7). `email.utils` has this function
    too, but is slow to import.
    """
    at = time.gmtime(second)
    day, month = _DAYS[at.tm_wday], _MONTHS[at.tm_mon - 1]
    return f"{day}, {at.tm_mday:02} {month} {at.tm_year:04} {at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02} GMT"
