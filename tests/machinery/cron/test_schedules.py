"""The times of schedules; the expected times are those of github.com/robfig/cron."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.machinery.cron import schedules
from steersman.machinery.cron.schedules import ScheduleError, parse_schedule
from steersman.machinery.values import times


def following(schedule: str, after: str) -> str:
    found = parse_schedule(schedule).next(times.unix(after))
    return "never" if found is None else times.format_time(datetime.fromtimestamp(found, UTC))


@pytest.mark.parametrize(
    ("schedule", "after", "then"),
    [
        ("* * * * *", "2024-01-01T00:00:00Z", "2024-01-01T00:01:00Z"),
        ("* * * * *", "2024-01-01T00:00:59Z", "2024-01-01T00:01:00Z"),
        ("*/15 3-5 * * *", "2024-01-01T05:45:00Z", "2024-01-02T03:00:00Z"),
        ("0 0 1 1 *", "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"),
        ("0 0 29 2 *", "2024-03-01T00:00:00Z", "2028-02-29T00:00:00Z"),
        ("0 0 30 2 *", "2024-01-01T00:00:00Z", "never"),
        ("0 0 13 * fri", "2024-01-01T00:00:00Z", "2024-01-05T00:00:00Z"),
        ("0 0 */13 * fri", "2024-01-01T00:00:00Z", "2024-01-05T00:00:00Z"),
        ("0 0 * * fri", "2024-01-05T00:00:00Z", "2024-01-12T00:00:00Z"),
        ("0 0 ? feb-MAR ?", "2024-03-31T00:00:00Z", "2025-02-01T00:00:00Z"),
        ("5/20 * * * *", "2024-01-01T00:26:00Z", "2024-01-01T00:45:00Z"),
        ("@weekly", "2024-01-01T00:00:00Z", "2024-01-07T00:00:00Z"),
        ("@every 1h30m0.5s", "2024-01-01T00:00:10Z", "2024-01-01T01:30:10Z"),
        ("@every 1ms", "2024-01-01T00:00:10Z", "2024-01-01T00:00:11Z"),
        ("TZ=America/New_York 30 2 * * *", "2024-03-09T12:00:00Z", "2024-03-11T06:30:00Z"),
        ("CRON_TZ=America/New_York 30 1 * * *", "2024-11-03T05:30:00Z", "2024-11-03T06:30:00Z"),
        ("TZ=Asia/Kathmandu 0 9 * * *", "2024-01-01T00:00:00Z", "2024-01-01T03:15:00Z"),
        ("TZ=Asia/Beirut 0 0 * * *", "2024-03-30T12:00:00Z", "2024-03-31T21:00:00Z"),
    ],
)
def test_the_next_time(schedule: str, after: str, then: str) -> None:
    assert following(schedule, after) == then


@given(st.text(alphabet="*/,-0123456789 ?", max_size=24), st.integers(0, 4_000_000_000))
def test_the_next_time_is_later_and_on_a_minute(text: str, after: int) -> None:
    try:
        schedule = parse_schedule(text)
    except ScheduleError:
        return
    found = schedule.next(after)
    assert found is None or (found > after and found % 60 == 0)


def test_what_a_field_repeats_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    original = schedules.numbers_of

    def noted(text: str, low: int, high: int, names: dict[str, int]) -> tuple[range, bool]:
        read.append(text)
        return original(text, low, high, names)

    monkeypatch.setattr(schedules, "numbers_of", noted)
    assert following("0-59," * 5000 + ",7 0 1 1 *", "2024-01-01T00:00:00Z") == "2024-01-01T00:01:00Z"
    assert read == ["0-59", "7", "0", "1", "1", "*"]
