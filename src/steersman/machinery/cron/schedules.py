"""Cron schedules and time zones, as CronJobs hold them.

A schedule has the five fields of crontab(5), or is a descriptor such as `@daily` or `@every 1h30m`. Its meaning,
including clock changes, and the error messages, which clients see, are those of github.com/robfig/cron.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final

from msgspec import Struct

from steersman.machinery.errors.field import quote
from steersman.machinery.go.strings import split_space, to_lower, trim_space
from steersman.machinery.values.durations import DurationError, parse_duration
from steersman.work.patterns import late_pattern
from steersman.work.threads import paced

DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
"""Descriptors, and the five fields that they abbreviate."""

_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1
    )
}
_DAYS: Final = {name: number for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_BOUNDS: Final[tuple[tuple[int, int, dict[str, int]], ...]] = (
    # minute, hour, day of month, month, day of week
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
_YEARS: Final = 5
"""Years to search for the next time."""
_SECOND: Final = 10**9
_NUMBER: Final = late_pattern(r"[+-]?[0-9]+")
_ZONE_PART: Final = late_pattern(r"[A-Za-z.\-_0-9+]{1,14}")
_LONGEST_KEPT: Final = 256
"""Characters of the longest schedule that is cached, and of the longest name of a time zone."""


class ScheduleError(ValueError):
    """The error for text that is not a schedule or time zone; the message is for the client."""


class Every(Struct, frozen=True):
    """A schedule that recurs after a number of seconds."""

    seconds: int

    def next(self, after: int) -> int | None:
        """Return the next time after a moment, both in seconds since 1970."""
        return after + self.seconds


class Fields(Struct, frozen=True):
    """A schedule of five fields: minutes, hours, days of the month, months and days of the week.

    `any_day` is True if one of the two fields for days is a star. Then a day must match both fields, otherwise either.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    zone: tzinfo

    def next(self, after: int) -> int | None:
        """Return the next time after a moment, both in seconds since 1970; None if there is none within five years."""
        moment, begun = after + 1, False
        last_year = self._local(moment).year + _YEARS
        while self._local(moment).year <= last_year:
            candidate = self._within_year(moment, begun=begun)
            if candidate >= 0:
                return candidate
            moment, begun = -candidate, True
        return None

    def _within_year(self, moment: int, *, begun: bool) -> int:
        """Return the next time, or the negative of the moment at which the search must start again.

        The search starts again when a year, a month, a day or an hour has begun. `begun` is True if the smaller units
        of the moment have been reset already.
        """
        local = self._local(moment)
        while local.month not in self.months:
            first = local if begun else local.replace(day=1, hour=0, minute=0, second=0)
            begun = True
            moment = self._moment(_next_month(first))
            local = self._local(moment)
            if local.month == 1:
                return -moment
        while not self._is_day(local):
            midnight = local if begun else local.replace(hour=0, minute=0, second=0)
            begun = True
            moment = self._midnight(self._moment(midnight + timedelta(days=1)))
            local = self._local(moment)
            if local.day == 1:
                return -moment
        while local.hour not in self.hours:
            moment = (moment if begun else self._moment(local.replace(minute=0, second=0))) + 3600
            begun = True
            local = self._local(moment)
            if local.hour == 0:
                return -moment
        return self._within_hour(moment, local, begun=begun)

    def _within_hour(self, moment: int, local: datetime, *, begun: bool) -> int:
        while local.minute not in self.minutes:
            moment = (moment if begun else moment - moment % 60) + 60
            begun = True
            local = self._local(moment)
            if local.minute == 0:
                return -moment
        if local.second == 0:
            return moment
        moment += 60 - local.second
        return -moment

    def _is_day(self, local: datetime) -> bool:
        in_month, in_week = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        return (in_month and in_week) if self.any_day else (in_month or in_week)

    def _midnight(self, moment: int) -> int:
        """Return the beginning of a moment's day, if the clock was changed at midnight."""
        hour = self._local(moment).hour
        return moment + 3600 * (24 - hour) if hour > 12 else moment - 3600 * hour

    def _local(self, moment: int) -> datetime:
        """Return the local time of a moment, without its zone."""
        return datetime.fromtimestamp(moment, self.zone).replace(tzinfo=None)

    def _moment(self, local: datetime) -> int:
        """Return the moment of a local time. A local time that a clock change skips counts as in Go's time.Date."""
        shown = int(local.replace(tzinfo=UTC).timestamp())
        offset = self._offset(shown)
        if offset:
            offset = self._offset(shown - offset)
        return shown - offset

    def _offset(self, moment: int) -> int:
        offset = datetime.fromtimestamp(moment, self.zone).utcoffset() or timedelta()
        return int(offset.total_seconds())


def _next_month(first: datetime) -> datetime:
    """Return the same day of the next month. A day beyond the end of that month counts on into the month after."""
    year, month = (first.year + 1, 1) if first.month == 12 else (first.year, first.month + 1)
    return first.replace(year=year, month=month, day=1) + timedelta(days=first.day - 1)


Schedule = Every | Fields


def parse_schedule(text: str) -> Schedule:
    """Parse a schedule, in UTC unless the text names a zone. Raises ScheduleError."""
    return _parsed(text) if len(text) <= _LONGEST_KEPT else _parsed.__wrapped__(text)


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Schedule:
    if not text:
        raise ScheduleError("empty spec string")
    zone, text = _zone_of(text)
    if text.startswith("@") and text not in DESCRIPTORS:
        return _every(text)
    fields = split_space(DESCRIPTORS.get(text, text))
    if len(fields) != len(_BOUNDS):
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    found = [_field(field, low, high, names) for field, (low, high, names) in zip(fields, _BOUNDS, strict=True)]
    minutes, hours, days, months, weekdays = (frozenset(values) for values, _ in found)
    return Fields(minutes, hours, days, months, weekdays, found[2][1] or found[4][1], zone)


def check_schedule(text: str) -> None:
    """Raise ScheduleError unless `text` is a schedule."""
    parse_schedule(text)


def check_time_zone(name: str) -> None:
    """Raise ScheduleError unless `name` is a time zone of the IANA database."""
    unknown = ScheduleError(f"unknown time zone {name}")
    for part in name.split("/"):
        if part in (".", "..") or part.startswith("-") or not _ZONE_PART.fullmatch(part):
            raise unknown
    if to_lower(name) == "local":
        raise ScheduleError("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones")
    if not _zone_exists(name):
        raise unknown


def _zone_exists(name: str) -> bool:
    return len(name) <= _LONGEST_KEPT and _is_in_database(name)


@lru_cache(maxsize=64)
def _is_in_database(name: str) -> bool:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # which few schedules need

    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _zone_of(text: str) -> tuple[tzinfo, str]:
    """Return the zone of a leading `TZ=...` or `CRON_TZ=...`, and the rest of the schedule."""
    if not text.startswith(("TZ=", "CRON_TZ=")):
        return UTC, text
    setting, space, schedule = text.partition(" ")
    if not space:
        raise ScheduleError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
    name = setting.partition("=")[2]
    if name in ("", "UTC", "Local"):
        return UTC, trim_space(schedule)
    if not _zone_exists(name):
        raise ScheduleError(f"provided bad location {name}: unknown time zone {name}")
    from zoneinfo import ZoneInfo

    return ZoneInfo(name), trim_space(schedule)


def _every(text: str) -> Every:
    if not text.startswith("@every "):
        raise ScheduleError(f"unrecognized descriptor: {text}")
    try:
        nanoseconds = parse_duration(text.removeprefix("@every "))
    except DurationError as error:
        raise ScheduleError(f"failed to parse duration {text}: {error}") from None
    return Every(max(nanoseconds // _SECOND, 1))


def _field(text: str, low: int, high: int, names: dict[str, int]) -> tuple[set[int], bool]:
    """Return the numbers that a field names, and True if one of its parts is a star."""
    values: set[int] = set()
    is_star = False
    for part in paced(dict.fromkeys(text.split(","))):
        if not part:
            continue
        found, star = numbers_of(part, low, high, names)
        values.update(found)
        is_star |= star
    return values, is_star


def numbers_of(text: str, low: int, high: int, names: dict[str, int]) -> tuple[range, bool]:
    """Parse `N`, `N-M` or `*`, with or without `/STEP`; return the range, and True for a star with the step 1."""
    limits, *steps = text.split("/")
    bounds = limits.split("-")
    is_star = bounds[0] in ("*", "?")
    if is_star:
        first, last = low, high
    else:
        first = _number_or_name(bounds[0], names)
        if len(bounds) > 2:
            raise ScheduleError(f"too many hyphens: {text}")
        last = first if len(bounds) == 1 else _number_or_name(bounds[1], names)
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {text}")
    step = _number(steps[0]) if steps else 1
    if steps and len(bounds) == 1:
        last = high
    if first < low:
        raise ScheduleError(f"beginning of range ({first}) below minimum ({low}): {text}")
    if last > high:
        raise ScheduleError(f"end of range ({last}) above maximum ({high}): {text}")
    if first > last:
        raise ScheduleError(f"beginning of range ({first}) beyond end of range ({last}): {text}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {text}")
    return range(first, last + 1, step), is_star and step == 1


def _number_or_name(text: str, names: dict[str, int]) -> int:
    named = names.get(to_lower(text))
    return _number(text) if named is None else named


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        reason = f"strconv.Atoi: parsing {quote(text)}: invalid syntax"
        raise ScheduleError(f"failed to parse int from {text}: {reason}")
    if len(text) > 19:
        reason = f"strconv.Atoi: parsing {quote(text)}: value out of range"
        raise ScheduleError(f"failed to parse int from {text}: {reason}")
    number = int(text)
    if number < 0:
        raise ScheduleError(f"negative number ({number}) not allowed: {text}")
    return number
