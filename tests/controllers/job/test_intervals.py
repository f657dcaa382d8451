"""Tests of sets of completion indexes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from steersman.controllers.job import intervals

numbers = st.sets(st.integers(0, 40))


@given(numbers)
def test_what_is_printed_is_read_again(wanted: set[int]) -> None:
    found = intervals.from_indexes(wanted)
    assert intervals.parse(str(found), 50).intervals == found.intervals
    assert {number for number in range(50) if number in found} == wanted
    assert len(found) == len(wanted)


@given(numbers, numbers)
def test_sets_are_joined_and_compared_as_sets_are(one: set[int], other: set[int]) -> None:
    first, second = intervals.from_indexes(one), intervals.from_indexes(other)
    assert (first | second).intervals == intervals.from_indexes(one | other).intervals
    assert first.overlap(second) == len(one & other)
    assert list(first.missing(30)) == [number for number in range(30) if number not in one]


def test_the_text_is_upstreams() -> None:
    assert str(intervals.from_indexes([1, 3, 4, 6, 7, 8])) == "1,3,4,6-8"
    assert str(intervals.from_indexes([])) == ""


def test_what_cannot_be_read_or_is_too_high_is_passed_over() -> None:
    assert intervals.parse("0,x,2-y,3-9,11", 6).intervals == [(0, 0), (3, 5)]
    assert intervals.parse("1-" + "9" * 5_000, 6).intervals == [(1, 5)]
    assert intervals.parse("1," + "9" * 5_000 + ",2", 6).intervals == [(1, 1)]
