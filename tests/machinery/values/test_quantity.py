"""Quantities. The texts expected are those that k8s.io/apimachinery gives for the same input."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.machinery.values.quantity import (
    FORMAT_WRONG,
    NUMERIC_WRONG,
    SUFFIX_WRONG,
    Quantity,
    QuantityError,
    canonical,
    is_whole_in_milli,
    nanos,
    parse,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", "0"),
        ("0Ki", "0"),
        ("1000m", "1"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("1.5", "1500m"),
        ("1.500", "1.500"),
        ("1024Mi", "1Gi"),
        ("1000Mi", "1000Mi"),
        ("1023Ki", "1023Ki"),
        ("0.5Gi", "512Mi"),
        ("0.1Gi", "107374182400m"),
        ("-1.5Gi", "-1536Mi"),
        ("0.0009765625Ki", "1"),
        ("1e3", "1e3"),
        ("1000e3", "1e6"),
        ("1E3", "1E3"),
        ("1e-3", "1e-3"),
        ("1000000", "1M"),
        ("12345678901234567890", "12345678901234567890"),
        ("+5", "+5"),
        ("05", "05"),
        ("0.0000000001", "1n"),
        ("-0.0000000001", "-1n"),
        ("100Ei", "9223372036854775807"),
        ("7Ei", "7Ei"),
        ("1.1Ki", "1126400m"),
        ("100u", "100u"),
        ("1.G", "1.G"),
        ("+", "0"),
        (".", "0"),
        ("1e25", "10e24"),
    ],
)
def test_texts_are_made_canonical_as_upstream_does(text: str, expected: str) -> None:
    assert canonical(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", FORMAT_WRONG),
        ("x", FORMAT_WRONG),
        ("5X", FORMAT_WRONG),
        ("1 Gi", FORMAT_WRONG),
        ("1Gi ", FORMAT_WRONG),
        ("٣", FORMAT_WRONG),
        ("5KK", SUFFIX_WRONG),
        ("Ei", NUMERIC_WRONG),
        ("1e", SUFFIX_WRONG),
        ("5Mi5", SUFFIX_WRONG),
        ("1-5", SUFFIX_WRONG),
        ("1e99999999999999999999", SUFFIX_WRONG),
    ],
)
def test_what_is_no_quantity_is_refused_in_upstreams_words(text: str, message: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse(text)
    assert str(caught.value) == message


def test_amounts_compare_whatever_their_format() -> None:
    assert parse("1Gi") == parse("1073741824") > parse("1G")
    assert parse("100m") < parse("0.2")
    assert len({parse("1"), parse("1000m")}) == 1


def test_sums_keep_the_format_of_the_first_that_is_not_zero() -> None:
    assert str(parse("1Gi") + parse("1Mi")) == "1025Mi"
    assert str(parse("0") + parse("1Mi")) == "1Mi"
    assert str(parse("1") - parse("100m")) == "900m"
    assert str(parse("1Gi") - parse("1Gi")) == "0"


def test_whole_numbers_are_rounded_away_from_zero() -> None:
    assert parse("1.1").as_int() == 2
    assert parse("-1.1").as_int() == -2
    assert parse("100u").as_milli() == 1
    assert str(parse("1234567n").round_up(-3)) == "2m"
    assert parse("2").is_whole()
    assert not parse("2500m").is_whole()
    assert parse("1500m").as_float() == 1.5


def test_huge_exponents_cost_no_time() -> None:
    huge = parse("1e2147483645")
    assert huge > parse("1")
    assert (huge + parse("1")).sign == 1
    assert parse("1e-2147483648").as_int() == 1


@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [("1e999", 0, 0), ("1e19", 0, 0), ("9e18", 9 * 10**18, 0), ("9" * 25, 1590897978359414783, 0), ("1500m", 2, 1500)],
)
def test_amounts_are_int64_as_upstream_s(text: str, value: int, milli: int) -> None:
    assert parse(text).as_int() == value
    if milli:
        assert parse(text).as_milli() == milli


@given(st.integers(-(10**18), 10**18), st.sampled_from(["n", "u", "m", "", "k", "M", "Ki", "Mi", "Gi"]))
def test_canonical_text_stands_for_the_same_amount(number: int, suffix: str) -> None:
    quantity = parse(f"{number}{suffix}")
    if abs(quantity.scaled(0)) < 2**63:
        text = str(quantity)
        assert parse(text) == quantity
        assert canonical(text) == text


@given(st.integers(-(10**12), 10**12), st.integers(-(10**12), 10**12))
def test_addition_is_exact(first: int, second: int) -> None:
    total = Quantity(first, -3) + Quantity(second, -6)
    assert total.scaled(-6) == first * 1000 + second
    assert total - Quantity(second, -6) == Quantity(first, -3)


def test_texts_of_any_length_are_not_remembered() -> None:
    from steersman.machinery.values import quantity

    functions = (quantity.known_canonical_text, quantity.known_nanos, quantity.known_whole_in_milli)
    before = [each.cache_info().currsize for each in functions]
    text = "0" * 100_000 + "1k"
    assert canonical(text) == text
    assert nanos(text) == 10**12
    assert is_whole_in_milli(text)
    assert [each.cache_info().currsize for each in functions] == before


@pytest.mark.parametrize(
    ("text", "amount", "whole"),
    [
        ("0", 0, True),
        ("100m", 10**8, False),
        ("1Ki", 1024 * 10**9, True),
        ("-1.5", -15 * 10**8, False),
        ("0.5m", 5 * 10**5, False),
        ("1n", 1, False),
        ("1e3", 10**12, True),
        ("10E", 10**28, True),
        ("12345678901234567890", 12345678901234567890 * 10**9, False),
    ],
)
def test_amounts_in_billionths_and_whole_ones(text: str, amount: int, whole: bool) -> None:
    assert nanos(text) == amount
    assert is_whole_in_milli(text) is whole is (parse(text).as_milli() % 1000 == 0)


@given(st.integers(-(10**9), 10**9), st.sampled_from(("", "m", "k", "Mi", "n")), st.integers(-(10**9), 10**9))
def test_billionths_are_in_the_order_of_quantities(first: int, suffix: str, second: int) -> None:
    texts = f"{first}{suffix}", f"{second}"
    assert (nanos(texts[0]) > nanos(texts[1])) == (parse(texts[0]) > parse(texts[1]))
