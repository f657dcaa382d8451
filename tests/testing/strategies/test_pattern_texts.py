from __future__ import annotations

import pytest
from hypothesis import find, given
from hypothesis import strategies as st

from steersman.schema.patterns import matches
from steersman.testing.strategies.errors import Unsatisfiable
from steersman.testing.strategies.pattern_texts import pattern_texts

PATTERNS = (
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$",
    r"^\d{3}-\w+\s[^a-z]\pL[[:upper:]]$",
    r"(?i)^foo|bar$",
    r"^.*\.ya?ml\z",
    r"^((a+)+)+$",
    r"^(([a-z]{1,3}){2,4}x){3}$",
    r"^https?://[^/?#]+(/.*)?$",
    r"\Qa.b\E\x41\x{1F600}\101[^[:^alpha:]]",
    "",
    "^$",
)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_texts_match_their_pattern(pattern: str) -> None:
    @given(pattern_texts(pattern))
    def check(text: str) -> None:
        assert matches(pattern, text)

    check()


@given(st.data())
def test_texts_have_the_lengths_that_are_asked_for(data: st.DataObject) -> None:
    text = data.draw(pattern_texts("^[a-z]+(-[a-z]+)*$", 20, 30))
    assert 20 <= len(text) <= 30


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(((((((((((((((((((((((((((((((a))))))))))))))))))))))))))))))))*$", "error parsing regexp"),
        ("^((((a{500}){500}))){9}$", "error parsing regexp"),
        (f"^{'b{1000}' * 20}$", "have at least 20000 characters"),
        ("x" * 20_001, "more than 20000 characters"),
        ("^[^\\x00-\\x{10FFFF}]$", "no character is known"),
    ],
)
def test_a_pattern_without_short_texts_is_refused(pattern: str, text: str) -> None:
    with pytest.raises(Unsatisfiable, match=text):
        pattern_texts(pattern)


def test_texts_shrink_to_short_ones() -> None:
    assert len(find(pattern_texts(PATTERNS[0]), lambda text: "." in text)) == 3
