"""Functions of times and durations (sprig `date.go`), with Go's layouts. Times are in UTC unless a zone is given."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from types import MappingProxyType
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from steersman.machinery.values import times
from steersman.machinery.values.durations import DurationError, format_duration, parse_duration
from steersman.net.ascii import is_digits
from steersman.nodes.stages.go_template.builtins import Function, text
from steersman.nodes.stages.go_template.values import Opaque, TemplateError, Value
from steersman.work.patterns import late_pattern

_SECOND: Final = 10**9
_MOST_TEXT: Final = 200
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LAYOUT: Final = late_pattern(
    r"January|Jan|Monday|Mon|MST|2006|-07:00:00|-070000|-07:00|-0700|-07|Z07:00:00|Z070000|Z07:00|Z0700|Z07"
    r"|[.,]0+(?![0-9])|[.,]9+(?![0-9])|002|__2|_2|01|02|03|04|05|06|15|PM|pm|1|2|3|4|5",
    re.ASCII,
)
_ZERO: Final = -62135596800 * _SECOND
"""Time of Go's zero Time."""


@dataclass(frozen=True, slots=True)
class Moment(Opaque):
    """Time in nanoseconds since 1970, shown in a zone (time.Time)."""

    nanos: int
    zone: tzinfo = UTC

    go_type = "time.Time"

    def __str__(self) -> str:
        return formatted("2006-01-02 15:04:05.999999999 -0700 MST", self)

    def __bool__(self) -> bool:
        return True

    def plain(self) -> Value:
        """Return the time as RFC 3339 has it."""
        return formatted("2006-01-02T15:04:05.999999999Z07:00", self)

    def member(self, name: str) -> Value:
        """Return the result of a method without arguments."""
        at = self.local()
        known = {"Year": at.year, "Day": at.day, "Hour": at.hour, "Minute": at.minute, "Second": at.second}
        known |= {"Unix": self.nanos // _SECOND, "UnixNano": self.nanos, "YearDay": at.timetuple().tm_yday}
        return {**known, "UTC": Moment(self.nanos), "String": str(self)}.get(name)

    def local(self) -> datetime:
        """Return the time without its fraction of a second."""
        return (_EPOCH + timedelta(seconds=self.nanos // _SECOND)).astimezone(self.zone)


def formatted(layout: str, moment: Moment) -> str:
    """Return a time in a layout of Go. Raises TemplateError for a time that is out of range."""
    try:
        local = moment.local()
    except (OverflowError, ValueError):
        raise TemplateError("a time that is out of range") from None
    return _LAYOUT.sub(lambda found: _shown(found[0], local, moment.nanos % _SECOND), layout)


def _shown(part: str, at: datetime, nanos: int) -> str:
    if part[0] in ".,":
        digits = f"{nanos:09d}"[: len(part) - 1]
        return part[0] + digits if part[1] == "0" else _without_zeros(part[0], digits)
    if part[0] in "Z-":
        return _offset(part, at)
    plain = {
        "2006": f"{at.year:04d}",
        "06": f"{at.year % 100:02d}",
        "January": _MONTHS[at.month - 1],
        "Jan": _MONTHS[at.month - 1][:3],
        "Monday": _DAYS[at.weekday()],
        "Mon": _DAYS[at.weekday()][:3],
        "01": f"{at.month:02d}",
        "1": str(at.month),
        "02": f"{at.day:02d}",
        "_2": f"{at.day:2d}",
        "2": str(at.day),
        "002": f"{at.timetuple().tm_yday:03d}",
        "__2": f"{at.timetuple().tm_yday:3d}",
        "15": f"{at.hour:02d}",
        "03": f"{at.hour % 12 or 12:02d}",
        "3": str(at.hour % 12 or 12),
        "04": f"{at.minute:02d}",
        "4": str(at.minute),
        "05": f"{at.second:02d}",
        "5": str(at.second),
        "PM": "PM" if at.hour >= 12 else "AM",
        "pm": "pm" if at.hour >= 12 else "am",
        "MST": at.tzname() or "UTC",
    }
    return plain[part]


def _without_zeros(point: str, digits: str) -> str:
    shown = digits.rstrip("0")
    return point + shown if shown else ""


def _offset(part: str, at: datetime) -> str:
    offset = at.utcoffset() or timedelta()
    seconds = int(offset.total_seconds())
    if part[0] == "Z" and not seconds:
        return "Z"
    size = abs(seconds)
    fields = (f"{size // 3600:02d}", f"{size // 60 % 60:02d}", f"{size % 60:02d}")
    count = {"07": 1, "0700": 2, "070000": 3}[part[1:].replace(":", "")]
    return ("-" if seconds < 0 else "+") + (":" if ":" in part else "").join(fields[:count])


_PATTERNS: Final = {
    "2006": "(?P<year>[0-9]{4})",
    "06": "(?P<short>[0-9]{2})",
    "01": "(?P<month>[0-9]{2})",
    "1": "(?P<month>[0-9]{1,2})",
    "02": "(?P<day>[0-9]{2})",
    "2": "(?P<day>[0-9]{1,2})",
    "_2": " ?(?P<day>[0-9]{1,2})",
    "15": "(?P<hour>[0-9]{2})",
    "03": "(?P<half>[0-9]{2})",
    "3": "(?P<half>[0-9]{1,2})",
    "04": "(?P<minute>[0-9]{2})",
    "4": "(?P<minute>[0-9]{1,2})",
    "05": "(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?",
    "5": "(?P<second>[0-9]{1,2})(?:[.,](?P<fraction>[0-9]{1,9}))?",
    "PM": "(?P<noon>AM|PM)",
    "pm": "(?P<noon>am|pm)",
    "January": f"(?P<name>{'|'.join(_MONTHS)})",
    "Jan": f"(?P<name>{'|'.join(each[:3] for each in _MONTHS)})",
    "Monday": f"(?:{'|'.join(_DAYS)})",
    "Mon": f"(?:{'|'.join(each[:3] for each in _DAYS)})",
    "MST": "(?:[A-Z]{3,4})",
}


def parsed(layout: str, given: str) -> Moment | None:
    """Return the time of a text in a layout of Go; None for another text."""
    if len(layout) > _MOST_TEXT or len(given) > _MOST_TEXT:
        return None
    pattern, at = "", 0
    for found in _LAYOUT.finditer(layout):
        pattern += re.escape(layout[at : found.start()])
        pattern += _pattern(found[0])
        at = found.end()
    try:
        match = re.fullmatch(pattern + re.escape(layout[at:]), given, re.ASCII)
    except re.error:  # a part that occurs twice
        return None
    return None if match is None else _moment({key: each for key, each in match.groupdict().items() if each})


def _pattern(part: str) -> str:
    if part[0] in ".,":
        return ""  # the seconds take a fraction whatever the layout says
    if part[0] in "Z-":
        inside = "[+-][0-9]{2}(?::?[0-9]{2}){0,2}"
        return f"(?P<offset>Z|{inside})" if part[0] == "Z" else f"(?P<offset>{inside})"
    return _PATTERNS.get(part, "[0-9 ]{3}")


def _moment(parts: Mapping[str, str]) -> Moment | None:
    number = {key: int(each) for key, each in parts.items() if is_digits(each)}
    year = number.get("year", 0)
    if "short" in number:
        year = number["short"] + (1900 if number["short"] >= 69 else 2000)
    month = number.get("month", 1)
    if name := parts.get("name"):
        month = next(at for at, each in enumerate(_MONTHS, start=1) if each.startswith(name))
    hour = number.get("hour", 0)
    if "half" in number:
        hour = number["half"] % 12 + 12 * (parts.get("noon", "") in ("PM", "pm"))
    try:
        day, minute, second = number.get("day", 1), number.get("minute", 0), number.get("second", 0)
        local = datetime(year or 1, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    seconds = int((local - _EPOCH).total_seconds()) - _seconds_of(parts.get("offset", "Z"))
    return Moment(seconds * _SECOND + int(parts.get("fraction", "0").ljust(9, "0")[:9]))


def _seconds_of(offset: str) -> int:
    if offset == "Z":
        return 0
    digits = offset[1:].replace(":", "").ljust(6, "0")
    size = int(digits[:2]) * 3600 + int(digits[2:4]) * 60 + int(digits[4:6])
    return -size if offset[0] == "-" else size


# Functions


def _now() -> Moment:
    return Moment(int(times.unix_now() * _SECOND))


def _time_of(value: Value) -> Moment:
    """Return a time, or the time of so many seconds; the present for any other value."""
    if isinstance(value, Moment):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Moment(value * _SECOND)
    return _now()


def _must_be_time(value: Value, whose: str) -> Moment:
    if isinstance(value, Moment):
        return value
    raise TemplateError(f"{whose}: wrong type for value; expected time.Time")


def _date_in_zone(layout: Value, value: Value, zone: Value) -> str:
    name = text(zone, "dateInZone")
    try:
        found: tzinfo = UTC if name in ("", "UTC", "Local") else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        found = UTC
    given = text(layout, "date")
    if len(given) > _MOST_TEXT:
        raise TemplateError(f"a layout of more than {_MOST_TEXT} characters")
    return formatted(given, Moment(_time_of(value).nanos, found))


def _date(layout: Value, value: Value) -> str:
    return _date_in_zone(layout, value, "UTC")


def _modify(change: Value, value: Value) -> Moment:
    try:
        return _must_modify(change, value)
    except TemplateError:
        return _must_be_time(value, "dateModify")


def _must_modify(change: Value, value: Value) -> Moment:
    moment = _must_be_time(value, "dateModify")
    try:
        return Moment(moment.nanos + parse_duration(text(change, "dateModify")), moment.zone)
    except DurationError as error:
        raise TemplateError(str(error)) from None


def _must_parse(layout: Value, value: Value) -> Moment:
    found = parsed(text(layout, "toDate"), text(value, "toDate"))
    if found is None:
        raise TemplateError(f'parsing time "{value}" as "{layout}": cannot parse')
    return found


def _parse(layout: Value, value: Value) -> Moment:
    return parsed(text(layout, "toDate"), text(value, "toDate")) or Moment(_ZERO)


def _ago(value: Value) -> str:
    passed = _now().nanos - _time_of(value).nanos
    return format_duration(round(passed / _SECOND) * _SECOND)


def _duration(value: Value) -> str:
    seconds = value if isinstance(value, int) and not isinstance(value, bool) else 0
    if isinstance(value, str) and is_digits(value.removeprefix("-")) and len(value) < 11:
        seconds = int(value)
    return format_duration(seconds * _SECOND)


_UNITS: Final = (("y", 31536000), ("mo", 2592000), ("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


def _rounded(value: Value) -> str:
    nanos = 0
    if isinstance(value, str):
        try:
            nanos = parse_duration(value)
        except DurationError:
            nanos = 0
    elif isinstance(value, Moment):
        nanos = _now().nanos - value.nanos
    elif isinstance(value, int) and not isinstance(value, bool):
        nanos = value
    size = abs(nanos)
    return next((f"{size // (each * _SECOND)}{unit}" for unit, each in _UNITS if size > each * _SECOND), "0s")


MOMENTS: Final[Mapping[str, Function]] = MappingProxyType(
    {
        "ago": _ago,
        "date": _date,
        "dateInZone": _date_in_zone,
        "dateModify": _modify,
        "date_in_zone": _date_in_zone,
        "date_modify": _modify,
        "duration": _duration,
        "durationRound": _rounded,
        "htmlDate": lambda value: _date("2006-01-02", value),
        "htmlDateInZone": lambda value, zone: _date_in_zone("2006-01-02", value, zone),
        "mustDateModify": _must_modify,
        "mustToDate": _must_parse,
        "must_date_modify": _must_modify,
        "now": _now,
        "toDate": _parse,
        "unixEpoch": lambda value: str(_must_be_time(value, "unixEpoch").nanos // _SECOND),
    }
)
