"""Patterns of texts."""

from __future__ import annotations

import pytest

from steersman.schema.patterns import matches, pattern_error
from tests.schema.asking import compiled, told


def test_a_pattern_is_found_anywhere() -> None:
    assert matches("b+", "abc")
    assert not matches("^b", "abc")
    assert matches("^.$", "ä")
    assert not matches("^a$", "a\n")


def test_what_is_no_pattern_is_told_in_go_s_words() -> None:
    assert pattern_error("a[") == "error parsing regexp: missing closing ]: `[`"
    assert pattern_error("^a+$") == ""
    with pytest.raises(ValueError, match="missing closing"):
        matches("a[", "a")


def test_nothing_has_what_is_no_pattern() -> None:
    """Schemas that were stored before patterns were judged may have one."""
    assert told(compiled(s={"type": "string", "pattern": "a["}).validate({"s": "a"})) == [
        (
            "s",
            'Invalid value: "a": s in body should match \'a[, but pattern is invalid: error parsing regexp: missing'
            " closing ]: `[`'",
        )
    ]


def test_a_pattern_takes_time_linear_in_the_text() -> None:
    assert not matches("^(a+)+$", "a" * 100_000 + "b")
