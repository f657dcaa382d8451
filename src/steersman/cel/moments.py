"""Timestamps and durations of CEL: parsing, formatting, and their parts in a time zone."""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from steersman.cel.values import Duration, EvaluationError, Timestamp
from steersman.machinery.values.durations import DurationError, parse_duration
from steersman.work.patterns import late_pattern

SECOND: Final = 10**9
MIN_SECONDS: Final = -62135596800
MAX_SECONDS: Final = 253402300799
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_RFC3339: Final = late_pattern(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(Z|[+-][0-9]{2}:[0-9]{2})",
    re.ASCII,
)
_MAX_TEXT: Final = 128


def timestamp(nanos: int) -> Timestamp:
    """Return a timestamp. Raises EvaluationError if it is out of range."""
    if not MIN_SECONDS <= nanos // SECOND <= MAX_SECONDS:
        raise EvaluationError("timestamp overflow")
    return Timestamp(nanos)


def duration(nanos: int) -> Duration:
    """Return a duration. Raises EvaluationError if it is out of range."""
    if not -(2**63) <= nanos < 2**63:
        raise EvaluationError("integer overflow")
    return Duration(nanos)


def read_timestamp(text: str) -> Timestamp:
    """Parse a timestamp in RFC 3339 format. Raises EvaluationError."""
    match = None if len(text) > _MAX_TEXT else _RFC3339.fullmatch(text)
    wrong = EvaluationError("type conversion error from 'string' to 'google.protobuf.Timestamp'")
    if match is None:
        raise wrong
    year, month, day, hour, minute, second = (int(match[index]) for index in range(1, 7))
    in_month = calendar.monthrange(year or 4, month)[1] if 1 <= month <= 12 else 0
    if not 1 <= day <= in_month or hour > 23 or minute > 59 or second > 59:
        raise wrong
    offset = 0
    if match[8] != "Z":
        hours, minutes = int(match[8][1:3]), int(match[8][4:6])
        if hours > 24 or minutes > 60:
            raise wrong
        offset = (hours * 60 + minutes) * (-60 if match[8][0] == "-" else 60)
    if year == 0:
        raise EvaluationError("timestamp overflow")
    days = datetime(year, month, day).toordinal() - _EPOCH.toordinal()
    seconds = days * 86400 + hour * 3600 + minute * 60 + second - offset
    fraction = int((match[7] or "0")[:9].ljust(9, "0"))
    return timestamp(seconds * SECOND + fraction)


def read_duration(text: str) -> Duration:
    """Parse a duration in Go's format, such as `1h30m`. Raises EvaluationError."""
    try:
        return Duration(parse_duration(text))
    except DurationError:
        raise EvaluationError("type conversion error from 'string' to 'google.protobuf.Duration'") from None


def timestamp_text(moment: Timestamp) -> str:
    """Return a timestamp in RFC 3339 format, in UTC, with as many decimals as needed."""
    seconds, nanos = divmod(moment.nanos, SECOND)
    text = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    return f"{text}{fraction}Z"


def duration_text(length: Duration) -> str:
    """Return a duration in seconds, with the decimals of a double."""
    whole, rest = divmod(abs(length.nanos), SECOND)
    value = float(whole) + rest / 1e9
    text = f"{value:.30f}" if value < 1e-4 and value else repr(value)
    if value < 1e-4 and value:
        text = f"{value:.12f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{'-' if length.nanos < 0 else ''}{text}s"


def time_zone(name: str) -> tzinfo:
    """Return a time zone from its name or an offset from UTC such as `-08:00`. Raises EvaluationError."""
    if ":" not in name:
        if name in ("", "UTC"):
            return UTC
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise EvaluationError(f"unknown time zone {name}") from None
    hours, _, minutes = name.partition(":")
    offset = _offset(hours) * 60 + (-_offset(minutes) if name.startswith("-") else _offset(minutes))
    if abs(offset) >= 24 * 60:
        raise EvaluationError(f"unknown time zone {name}")
    return timezone(timedelta(minutes=offset))


def _offset(text: str) -> int:
    if re.fullmatch(r"[+-]?[0-9]{1,9}", text, re.ASCII) is None:
        raise EvaluationError(f'strconv.Atoi: parsing "{text}": invalid syntax')
    return int(text)


def local_time(moment: Timestamp, zone: tzinfo) -> datetime:
    """Return the date and time of day in a zone, to the second."""
    try:
        return (_EPOCH + timedelta(seconds=moment.nanos // SECOND)).astimezone(zone)
    except OverflowError:
        raise EvaluationError("timestamp overflow") from None
