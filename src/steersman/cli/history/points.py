"""Points in history on the command line: a revision, a time, or an age."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

import click

from steersman.machinery.values.durations import DurationError, parse_duration
from steersman.machinery.values.times import TimeError, format_micro_time, parse
from steersman.net.ascii import is_digits

_LONGEST_REVISION: Final = 20


class Point(click.ParamType[str]):
    """A revision as digits; a time or an age (`10m` ago) as the time in RFC 3339."""

    name = "point"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the point as text."""
        text = str(value)
        if text == "now":
            return text
        if is_digits(text):
            if len(text) > _LONGEST_REVISION or not text.strip("0"):
                self.fail(f"{text[:100]!r} is no revision", param, ctx)
            return text
        try:
            age = timedelta(microseconds=parse_duration(text) / 1000)
            return format_micro_time(datetime.now(UTC) - age)
        except (DurationError, OverflowError):
            pass
        try:
            parse(text)
        except TimeError:
            self.fail(
                f"{text[:100]!r} is neither a revision, a time such as 2026-01-31T12:00:00Z, nor an age such as 10m",
                param,
                ctx,
            )
        return text


POINT: Final = Point()


def is_time(point: str) -> bool:
    """Return True for a time, False for a revision or `now`."""
    return point != "now" and not is_digits(point)
