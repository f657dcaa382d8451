"""Whole numbers as Go reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.machinery.errors.go_numbers import parse_int


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_int64_is_read(number: int) -> None:
    assert parse_int(str(number)) == number


@pytest.mark.parametrize(("text", "number"), [("+3", 3), ("-0", 0), ("007", 7)])
def test_signs_and_zeros_are_read(text: str, number: int) -> None:
    assert parse_int(text) == number


@pytest.mark.parametrize("text", ["", "-", "+-3", "0x1", " 3", "3 ", "1_0", "٣", "1e3"])
def test_other_forms_are_no_numbers(text: str) -> None:
    with pytest.raises(ValueError, match="invalid syntax"):
        parse_int(text)


@pytest.mark.parametrize("text", [str(2**63), str(-(2**63) - 1), "9" * 10_000])
def test_numbers_beyond_64_bits_are_out_of_range(text: str) -> None:
    with pytest.raises(ValueError, match="value out of range"):
        parse_int(text)
