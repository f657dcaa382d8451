"""Durations as Go writes them ("1h30m", "250ms"), as in meta/v1 Duration, query parameters and flags."""

from __future__ import annotations

import re

from steersman.machinery.values.times import quote
from steersman.work.patterns import late_pattern

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_TERM = late_pattern(r"([0-9]*)(?:\.([0-9]*))?([^.0-9]*)", re.ASCII)
_LIMIT = 2**63


class DurationError(ValueError):
    """The error for text that is not a duration, with Go's message."""


def parse_duration(text: str) -> int:
    """Parse a duration into nanoseconds (Go's time.ParseDuration). Raises DurationError."""
    sign = text[0] if text[:1] in ("-", "+") else ""
    at = len(sign)
    if len(text) == at:
        raise _invalid(text)
    if text[at:] == "0":
        return 0
    total = 0
    for term in _TERM.finditer(text, at):
        whole, fraction, unit = term[1], term[2] or "", term[3]
        if not whole and not fraction:
            if term.start() == len(text):
                break  # the empty match at the end
            raise _invalid(text)
        if not unit:
            raise DurationError(f"time: missing unit in duration {quote(text)}")
        if unit not in _UNITS:
            raise DurationError(f"time: unknown unit {quote(unit)} in duration {quote(text)}")
        if len(whole) > 19:
            raise _invalid(text)
        fraction = fraction[:18]
        total += int(whole or "0") * _UNITS[unit] + int(fraction or "0") * _UNITS[unit] // 10 ** len(fraction)
        if total > _LIMIT:
            raise _invalid(text)
    if sign == "-":
        return -total
    if total > _LIMIT - 1:
        raise _invalid(text)
    return total


def _invalid(text: str) -> DurationError:
    return DurationError(f"time: invalid duration {quote(text)}")


def format_duration(nanoseconds: int) -> str:
    """Return `nanoseconds` as Go's Duration.String prints them: "1h0m0s", "1.5s", "250ms", "0s"."""
    if nanoseconds == 0:
        return "0s"
    sign, rest = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if rest < 1_000_000_000:
        for unit, name in ((1_000_000, "ms"), (1_000, "µs"), (1, "ns")):
            if rest >= unit:
                return f"{sign}{_decimal(rest, unit)}{name}"
    seconds, nanos = divmod(rest, 1_000_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(seconds * 1_000_000_000 + nanos, 1_000_000_000)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else sign + text


def _decimal(value: int, unit: int) -> str:
    whole, part = divmod(value, unit)
    if not part:
        return str(whole)
    return f"{whole}.{str(part).rjust(len(str(unit)) - 1, '0').rstrip('0')}"


def canonical_duration(text: str) -> str:
    """Return `text` as a server prints a meta/v1 Duration. Raises DurationError."""
    return format_duration(parse_duration(text))
