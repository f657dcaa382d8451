"""Regular expressions of CEL: their validity, which is that of Go's regexp package, and the cost of checking it."""

from __future__ import annotations

import pytest

from steersman.cel import regular


@pytest.mark.parametrize("pattern", [r"a+", r"\pL{1,900}", "a{1000}" * 500, r"[\pL\PN]{1000}", r"a\\C", r"\Q\C"])
def test_an_expression_is_only_read_to_see_whether_it_is_one(pattern: str) -> None:
    before = regular.compile_pattern.cache_info().misses
    regular.check_pattern(pattern)
    assert regular.compile_pattern.cache_info().misses == before


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(a", "missing closing ): `(a`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("(a{1,1000}){1,1000}", "invalid repeat count: `{1,1000}`"),
        ("\\", "trailing backslash at end of expression: ``"),
        (r"a\C", r"invalid escape sequence: `\C`"),
    ],
)
def test_what_is_wrong_with_one_is_told_in_go_s_words(pattern: str, reason: str) -> None:
    with pytest.raises(regular.PatternError) as error:
        regular.check_pattern(pattern)
    assert str(error.value) == f"error parsing regexp: {reason}"
