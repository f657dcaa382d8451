"""Lengths of time as Go writes them ("1h30m", "250ms"): meta/v1 Duration, query parameters, flags."""

from __future__ import annotations

import re

from steersman.machinery.field import quote

_UNITS = {
    "ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000,
    "s": 1_000_000_000, "m": 60_000_000_000, "h": 3_600_000_000_000,
}  # fmt: skip
_TERM = re.compile(r"([0-9]*)(?:\.([0-9]*))?", re.ASCII)
_UNIT = re.compile(r"[^.0-9]*", re.ASCII)
_LIMIT = 2**63


class DurationError(ValueError):
    """The text is not a duration; the message is Go's."""


def parse_duration(text: str) -> int:
    """Nanoseconds, as Go's time.ParseDuration. Raises DurationError."""
    invalid = DurationError(f"time: invalid duration {quote(text)}")
    sign, rest = (text[0], text[1:]) if text[:1] in ("-", "+") else ("", text)
    if rest == "0":
        return 0
    if not rest:
        raise invalid
    total = 0
    while rest:
        match = _TERM.match(rest)
        whole, fraction = (match[1], match[2] or "") if match else ("", "")
        if not whole and not fraction:
            raise invalid
        rest = rest[match.end() :] if match else rest
        unit_match = _UNIT.match(rest)
        unit = unit_match.group() if unit_match else ""
        if not unit:
            raise DurationError(f"time: missing unit in duration {quote(text)}")
        if unit not in _UNITS:
            raise DurationError(f"time: unknown unit {quote(unit)} in duration {quote(text)}")
        rest = rest[len(unit) :]
        if len(whole) > 19:
            raise invalid
        fraction = fraction[:18]
        total += int(whole or "0") * _UNITS[unit] + int(fraction or "0") * _UNITS[unit] // 10 ** len(fraction)
        if total > _LIMIT:
            raise invalid
    if sign == "-":
        return -total
    if total > _LIMIT - 1:
        raise invalid
    return total


def format_duration(nanoseconds: int) -> str:
    """`nanoseconds` as Go's Duration.String prints them: "1h0m0s", "1.5s", "250ms", "0s"."""
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
    """`text` as a server prints a meta/v1 Duration. Raises DurationError."""
    return format_duration(parse_duration(text))
