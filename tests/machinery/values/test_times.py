"""Timestamps, durations and ages. Messages expected are Go's for the same input."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.machinery.values.durations import DurationError, format_duration, parse_duration
from steersman.machinery.values.times import (
    TimeError,
    age,
    canonical_micro_time,
    canonical_time,
    format_micro_time,
    format_time,
    human_duration,
    now,
    now_micro,
    parse,
    shifted,
    unix,
)

LAYOUT = "2006-01-02T15:04:05Z07:00"
MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        ("2024-01-01T00:00:00.999Z", "2024-01-01T00:00:00Z"),
        ("2024-01-01T00:00:00,5Z", "2024-01-01T00:00:00Z"),
        ("2024-01-01T00:00:00+01:00", "2023-12-31T23:00:00Z"),
        ("2024-01-01T5:00:00Z", "2024-01-01T05:00:00Z"),
        ("0001-01-01T00:00:00Z", None),
        ("0000-12-31T23:30:00-01:00", "0001-01-01T00:30:00Z"),
    ],
)
def test_times_are_printed_in_utc_with_seconds(text: str, expected: str | None) -> None:
    assert canonical_time(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", f'parsing time "" as "{LAYOUT}": cannot parse "" as "2006"'),
        ("x", f'parsing time "x" as "{LAYOUT}": cannot parse "x" as "2006"'),
        ("2024-01-01", f'parsing time "2024-01-01" as "{LAYOUT}": cannot parse "" as "T"'),
        (
            "2024-1-01T00:00:00Z",
            f'parsing time "2024-1-01T00:00:00Z" as "{LAYOUT}": cannot parse "1-01T00:00:00Z" as "01"',
        ),
        ("2024-13-01T00:00:00Z", 'parsing time "2024-13-01T00:00:00Z": month out of range'),
        ("2023-02-29T00:00:00Z", 'parsing time "2023-02-29T00:00:00Z": day out of range'),
        ("2024-01-01T24:00:00Z", 'parsing time "2024-01-01T24:00:00Z": hour out of range'),
        ("2024-01-01T00:00:00", f'parsing time "2024-01-01T00:00:00" as "{LAYOUT}": cannot parse "" as "Z07:00"'),
        ("2024-01-01T00:00:00Zx", 'parsing time "2024-01-01T00:00:00Zx": extra text: "x"'),
        ("é", f'parsing time "\\xc3\\xa9" as "{LAYOUT}": cannot parse "\\xc3\\xa9" as "2006"'),
    ],
)
def test_what_is_no_time_is_refused_in_gos_words(text: str, message: str) -> None:
    with pytest.raises(TimeError) as caught:
        canonical_time(text)
    assert str(caught.value) == message


def test_micro_times_have_exactly_six_digits() -> None:
    assert canonical_micro_time("2024-01-01T00:00:00.120000+02:00") == "2023-12-31T22:00:00.120000Z"
    for text, rest, element in (
        ("2024-01-01T00:00:00Z", "Z", ".000000"),
        ("2024-01-01T00:00:00.0Z", ".0Z", ".000000"),
        ("2024-01-01T00:00:00.1234567Z", "7Z", "Z07:00"),
    ):
        with pytest.raises(TimeError) as caught:
            canonical_micro_time(text)
        assert str(caught.value) == f'parsing time "{text}" as "{MICRO_LAYOUT}": cannot parse "{rest}" as "{element}"'


@given(st.datetimes(min_value=datetime(401, 1, 1), max_value=datetime(8999, 1, 1)), st.integers(-1439, 1439))
def test_what_is_formatted_is_read_back(moment: datetime, minutes: int) -> None:
    moment = moment.replace(tzinfo=UTC)
    offset = moment.astimezone(UTC) + timedelta(minutes=minutes)
    zone = f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
    assert parse(f"{offset:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + zone) == moment.replace(microsecond=0)
    assert canonical_time(format_time(moment)) == format_time(moment)
    assert canonical_micro_time(format_micro_time(moment)) == format_micro_time(moment)


def test_the_present_is_canonical() -> None:
    assert canonical_time(now()) == now() or abs(unix(now()) - unix(now())) <= 1
    present = now_micro()
    assert canonical_micro_time(present) == present


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (119, "119s"),
        (120, "2m"),
        (121, "2m1s"),
        (600, "10m"),
        (10800, "3h"),
        (10860, "3h1m"),
        (28800, "8h"),
        (172800, "2d"),
        (176400, "2d1h"),
        (691200, "8d"),
        (63072000, "2y"),
        (63158400, "2y1d"),
        (252288000, "8y"),
    ],
)
def test_ages_have_two_or_three_figures(seconds: int, expected: str) -> None:
    assert human_duration(seconds) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (30, "2026-01-01T00:00:30Z"),
        (-30, "2025-12-31T23:59:30Z"),
        (2**63 - 1, "2025-12-31T23:59:59Z"),
        (-(2**63), "2026-01-01T00:00:00Z"),
        (10**11, "2272-02-08T11:53:51Z"),
        (10**10, "1758-05-02T18:12:06Z"),
    ],
)
def test_a_time_is_shifted_by_64_bits_of_nanoseconds(seconds: int, expected: str) -> None:
    assert shifted("2026-01-01T00:00:00Z", seconds) == expected


def test_the_age_of_what_has_no_time_is_unknown() -> None:
    assert age(None, 0) == "<unknown>"
    assert age("1970-01-01T00:00:00Z", 90) == "90s"


@pytest.mark.parametrize(
    ("text", "nanoseconds", "printed"),
    [
        ("1h", 3_600_000_000_000, "1h0m0s"),
        ("1.5s", 1_500_000_000, "1.5s"),
        ("0", 0, "0s"),
        ("-1m30s", -90 * 10**9, "-1m30s"),
        ("3us", 3000, "3µs"),
        ("100ns", 100, "100ns"),
        ("1500us", 1_500_000, "1.5ms"),
        (".5s", 500_000_000, "500ms"),
        ("9223372036854775807ns", 2**63 - 1, "2562047h47m16.854775807s"),
    ],
)
def test_durations_are_read_and_printed_as_go_does(text: str, nanoseconds: int, printed: str) -> None:
    assert parse_duration(text) == nanoseconds
    assert format_duration(nanoseconds) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("1", 'time: missing unit in duration "1"'),
        ("1x", 'time: unknown unit "x" in duration "1x"'),
        ("1 h", 'time: unknown unit " h" in duration "1 h"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
    ],
)
def test_what_is_no_duration_is_refused_in_gos_words(text: str, message: str) -> None:
    with pytest.raises(DurationError) as caught:
        parse_duration(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00+00:01"])
def test_a_time_that_its_zone_takes_out_of_the_calendar_is_refused(text: str) -> None:
    with pytest.raises(TimeError, match="year outside of range"):
        canonical_time(text)
