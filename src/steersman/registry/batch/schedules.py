"""Cron schedules and time zones, as CronJobs hold them.

The schedule is that of crontab(5) with five fields, or a descriptor such as `@daily` or `@every 1h30m`; errors are
worded as the parser of github.com/robfig/cron words them, which clients see.
"""

from __future__ import annotations

import re
import zoneinfo
from functools import lru_cache
from typing import Final

from steersman.machinery.errors.field import quote
from steersman.machinery.go.strings import split_space, to_lower, trim_space
from steersman.machinery.values.durations import DurationError, parse_duration

DESCRIPTORS: Final = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})

_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1
    )
}
_DAYS: Final = {name: number for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_BOUNDS: Final[tuple[tuple[int, int, dict[str, int]], ...]] = (
    # minute, hour, day of month, month, day of week
    (0, 59, {}), (0, 23, {}), (1, 31, {}), (1, 12, _MONTHS), (0, 6, _DAYS),
)  # fmt: skip
_NUMBER: Final = re.compile(r"[+-]?[0-9]+")
_ZONE_PART: Final = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


class ScheduleError(ValueError):
    """The text is no schedule or no time zone; the message is for the client."""


def check_schedule(text: str) -> None:
    """Raises ScheduleError unless `text` is a schedule."""
    if not text:
        raise ScheduleError("empty spec string")
    text = _without_zone(text)
    if text.startswith("@"):
        _check_descriptor(text)
        return
    fields = split_space(text)
    if len(fields) != len(_BOUNDS):
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    for field, (low, high, names) in zip(fields, _BOUNDS, strict=True):
        for part in field.split(","):
            if part:
                _check_range(part, low, high, names)


def check_time_zone(name: str) -> None:
    """Raises ScheduleError unless `name` is a time zone of the IANA database."""
    unknown = ScheduleError(f"unknown time zone {name}")
    for part in name.split("/"):
        if part in (".", "..") or part.startswith("-") or not _ZONE_PART.fullmatch(part):
            raise unknown
    if to_lower(name) == "local":
        raise ScheduleError("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones")
    if not _zone_exists(name):
        raise unknown


@lru_cache(maxsize=64)
def _zone_exists(name: str) -> bool:
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _without_zone(text: str) -> str:
    """The schedule without a leading `TZ=...` or `CRON_TZ=...`."""
    if not text.startswith(("TZ=", "CRON_TZ=")):
        return text
    setting, space, schedule = text.partition(" ")
    if not space:
        raise ScheduleError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
    zone = setting.partition("=")[2]
    if zone not in ("", "UTC", "Local") and not _zone_exists(zone):
        raise ScheduleError(f"provided bad location {zone}: unknown time zone {zone}")
    return trim_space(schedule)


def _check_descriptor(text: str) -> None:
    if text in DESCRIPTORS:
        return
    if not text.startswith("@every "):
        raise ScheduleError(f"unrecognized descriptor: {text}")
    period = text.removeprefix("@every ")
    try:
        parse_duration(period)
    except DurationError as error:
        raise ScheduleError(f"failed to parse duration {text}: {error}") from None


def _check_range(text: str, low: int, high: int, names: dict[str, int]) -> None:
    """`N`, `N-M` or `*`, each with `/STEP` or not."""
    limits, *steps = text.split("/")
    bounds = limits.split("-")
    if bounds[0] in ("*", "?"):
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
