"""Timestamps (meta/v1 Time and MicroTime), the clock of the process, and ages.

Objects hold timestamps as text in UTC, with whole seconds (Time) or exactly six more digits (MicroTime). Parsing
accepts and refuses the same texts as Go's time.Parse with the layouts of these types, with the same messages.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final

from steersman.machinery.go.escaping import escaped
from steersman.work.patterns import late_pattern

RFC3339: Final = "2006-01-02T15:04:05Z07:00"
RFC3339_MICRO: Final = "2006-01-02T15:04:05.000000Z07:00"

_NO_ASCII: Final = late_pattern("[^ -\x7f]")
_UTC_SECONDS = late_pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}Z", re.ASCII)
_UTC_MICROS = late_pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}\.[0-9]{6}Z", re.ASCII)
_DATE = late_pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_FRACTION = late_pattern(r"[.,][0-9]+", re.ASCII)
_MICROS = late_pattern(r"[.,][0-9]{6}", re.ASCII)
_OFFSET = late_pattern(r"([+-])([0-9]{2}):([0-9]{2})", re.ASCII)
_ZERO = datetime(401, 1, 1, tzinfo=UTC)
_MAX_CACHED = 64
"""The longest text that is cached: clients choose these texts, which may be as long as a request body."""
_ELEMENTS = (
    # prefix, layout element, digits at least, name and exclusive range where Go checks it at once
    ("", "2006", 4, "", 0, 10000),
    ("-", "01", 2, "month", 1, 13),
    ("-", "02", 2, "", 0, 100),
    ("T", "15", 1, "hour", 0, 24),
    (":", "04", 2, "minute", 0, 60),
    (":", "05", 2, "second", 0, 60),
)


class TimeError(ValueError):
    """The error for text that is not a time, with Go's message."""


def now() -> str:
    """Return the present as a Time."""
    global _second
    seconds = int(_wall() + _moved)
    known, text = _second
    if seconds != known:
        text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
        _second = seconds, text
    return text


_second: tuple[int, str] = (-1, "")
"""The last second that was formatted, and its text: many objects are written in the same second."""


def unix_now() -> float:
    """Return the present in seconds since 1970, including any shift by `advance` or `move`."""
    return _wall() + _moved


def monotonic() -> float:
    """Return the seconds of the event loops' monotonic clock, including any shift by `advance`."""
    return time.monotonic() + _advanced


_SINCE: Final = time.time() - time.monotonic()


def steady_unix_now() -> float:
    """Return the present in seconds since 1970, without jumps of the system's clock since the process started."""
    return _SINCE + _steady() + _moved


def advance(seconds: float) -> None:
    """Move the clock of this process forward, also the monotonic one, for tests of long waits."""
    global _advanced
    _advanced += seconds
    move(seconds)


def move(seconds: float) -> None:
    """Move the clock by which objects are stamped, but not `monotonic`, which measures durations of the server."""
    global _moved
    _moved += seconds


def stop() -> None:
    """Stop the clock by which objects are stamped. Only `advance` and `move` move it then."""
    global _stopped_at, _wall, _steady
    if _stopped_at is None:
        _stopped_at = at = time.monotonic()
        wall = time.time()
        _wall, _steady = lambda: wall, lambda: at


def go_on() -> None:
    """Let the clock by which objects are stamped go on from where it stands."""
    global _stopped_at, _wall, _steady
    if _stopped_at is not None:
        move(_stopped_at - time.monotonic())
        _stopped_at, _wall, _steady = None, time.time, time.monotonic


_advanced = 0.0
"""Seconds by which `monotonic` is moved."""
_moved = 0.0
"""Seconds by which the clock is moved by which objects are stamped."""
_stopped_at: float | None = None
_wall: Callable[[], float] = time.time
_steady: Callable[[], float] = time.monotonic


def now_micro() -> str:
    """Return the present as a MicroTime."""
    return format_micro_time(datetime.fromtimestamp(unix_now(), UTC))


def format_time(moment: datetime) -> str:
    """Return an aware datetime as a Time."""
    return moment.astimezone(UTC).isoformat(timespec="seconds")[:19] + "Z"


def format_micro_time(moment: datetime) -> str:
    """Return an aware datetime as a MicroTime."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:26] + "Z"


def parse(text: str) -> datetime:
    """Parse a Time or MicroTime. Raises TimeError."""
    moment, year_shift = _parse(text, RFC3339)
    if year_shift:
        moment = moment.replace(year=min(max(moment.year - year_shift, 1), 9999))
    return moment


def unix(text: str) -> int:
    """Return a canonical Time or MicroTime in seconds since 1970, without its fraction. Raises TimeError."""
    return int(parse(text).timestamp())


def shifted(text: str, seconds: int) -> str:
    """Return the Time that is `seconds` after a Time or MicroTime, in whole seconds. Raises TimeError.

    As in Go, durations are 64-bit nanoseconds: a larger number of seconds wraps around, at most 293 years either way.
    """
    return format_time(parse(text) + timedelta(microseconds=_duration(seconds) // 1000))


def _duration(seconds: int) -> int:
    """Return the nanoseconds of `time.Second * time.Duration(seconds)` in Go, which overflows."""
    return ((seconds * 10**9 + 2**63) & (2**64 - 1)) - 2**63


def is_date(text: str) -> bool:
    """Return True if `text` is a valid date such as 2006-01-02."""
    if not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def today() -> str:
    """Return the present date in UTC, such as 2006-01-02."""
    return day(unix_now())


def day(seconds: float) -> str:
    """Return the date in UTC, such as 2006-01-02, of a moment in seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def canonical_time(text: str) -> str | None:
    """Return `text` as a server prints a Time; None for Go's zero time. Raises TimeError."""
    return _canonical(text, RFC3339) if len(text) <= _MAX_CACHED else _canonical.__wrapped__(text, RFC3339)


def canonical_micro_time(text: str) -> str | None:
    """Return `text` as a server prints a MicroTime; None for Go's zero time. Raises TimeError."""
    if _UTC_MICROS.fullmatch(text) and _is_usual_day(text[:10]):
        return text  # most MicroTimes differ from all others, so caching them would not pay
    return _canonical(text, RFC3339_MICRO) if len(text) <= _MAX_CACHED else _canonical.__wrapped__(text, RFC3339_MICRO)


@lru_cache(maxsize=64)
def _is_usual_day(text: str) -> bool:
    """Return True if `text` is a valid date of a year between 400 and 9000, which needs no shift."""
    return 400 <= int(text[:4]) <= 9000 and is_date(text)


@lru_cache(maxsize=8192)
def _canonical(text: str, layout: str) -> str | None:
    moment, year_shift = _parse(text, layout)
    if moment == _ZERO and year_shift == 400:
        return None
    rest = f"{moment:%m-%dT%H:%M:%SZ}" if layout is RFC3339 else f"{moment:%m-%dT%H:%M:%S.%fZ}"
    year = moment.year - year_shift
    if not 0 <= year <= 9999:  # the time zone moves it out of range; the printed form could not be parsed again
        raise TimeError(f"parsing time {quote(text)}: year outside of range [0,9999]")
    return f"{year:04d}-{rest}"


def _parse(text: str, layout: str) -> tuple[datetime, int]:
    """Parse a timestamp into a moment in UTC, and the number of years by which the moment was shifted.

    The shift keeps years below 400 or above 9000 within the range of datetime.
    """
    if layout is RFC3339 and _UTC_SECONDS.fullmatch(text):
        year = int(text[:4])
        if 400 <= year <= 9000:
            try:
                return datetime.fromisoformat(text), 0
            except ValueError:
                pass  # the walk below finds the error and words it as Go does
    values, rest = _walk(text, layout)
    fraction, rest = _fraction(text, rest, layout)
    offset, rest = _zone(text, rest, layout)
    if rest:
        raise TimeError(f"parsing time {quote(text)}: extra text: {quote(rest)}")
    year, month, day, hour, minute, second = values
    shift = 400 if year < 400 else -400 if year > 9000 else 0
    if not 1 <= day <= _days(year, month):
        raise TimeError(f"parsing time {quote(text)}: day out of range")
    moment = datetime(year + shift, month, day, hour, minute, second, fraction, tzinfo=UTC)
    return moment - timedelta(minutes=offset), shift


def _days(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _walk(text: str, layout: str) -> tuple[list[int], str]:
    """Parse year, month, day, hour, minute and second; return them and the text that follows."""
    values, rest = [], text
    for prefix, element, least, name, low, high in _ELEMENTS:
        if not rest.startswith(prefix):
            raise _cannot(text, layout, rest, prefix)
        rest = rest[len(prefix) :]
        most = max(least, 2)
        digits = len(rest[:most]) - len(rest[:most].lstrip("0123456789"))
        if digits < least:
            raise _cannot(text, layout, rest, element)
        value, rest = int(rest[:digits]), rest[digits:]
        if not low <= value < high and name:
            raise TimeError(f"parsing time {quote(text)}: {name} out of range")
        values.append(value)
    return values, rest


def _fraction(text: str, rest: str, layout: str) -> tuple[int, str]:
    """Parse a fraction of a second; return it in microseconds, and the text that follows."""
    match = (_FRACTION if layout is RFC3339 else _MICROS).match(rest)
    if match:
        return int(match.group()[1:7].ljust(6, "0")), rest[match.end() :]
    if layout is not RFC3339:
        raise _cannot(text, layout, rest, ".000000")
    return 0, rest


def _zone(text: str, rest: str, layout: str) -> tuple[int, str]:
    """Parse a time zone; return its offset from UTC in minutes, and the text that follows."""
    if rest.startswith("Z"):
        return 0, rest[1:]
    match = _OFFSET.match(rest)
    if match is None:
        raise _cannot(text, layout, rest, "Z07:00")
    hours, minutes = int(match[2]), int(match[3])
    if hours > 24:
        raise TimeError(f"parsing time {quote(text)}: time zone offset hour out of range")
    if minutes > 60:
        raise TimeError(f"parsing time {quote(text)}: time zone offset minute out of range")
    offset = hours * 60 + minutes
    return (-offset if match[1] == "-" else offset), rest[match.end() :]


def _cannot(text: str, layout: str, rest: str, element: str) -> TimeError:
    return TimeError(f"parsing time {quote(text)} as {quote(layout)}: cannot parse {quote(rest)} as {quote(element)}")


def quote(text: str) -> str:
    """Return `text` quoted as Go's package time quotes it.

    This is a simpler form of strconv.Quote: bytes outside of ASCII become hexadecimal.
    """
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped(plain, _NO_ASCII, _in_hexadecimal)}"'


def _in_hexadecimal(char: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "replace"))


def human_duration(seconds: float) -> str:
    """Return a duration in two or three figures, as `kubectl get` shows ages ("5d3h")."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 120:
        return f"{max(whole, 0)}s"
    minutes, hours = whole // 60, whole // 3600
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 365 * 8:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"


def age(timestamp: str | None, moment: float) -> str:
    """Return the age of a canonical timestamp at `moment` (seconds since 1970), for people.

    Returns `<unknown>` without a timestamp.
    """
    return human_duration(moment - unix(timestamp)) if timestamp else "<unknown>"
