"""Patterns that are compiled at their first use."""

from __future__ import annotations

import re

import pytest

from steersman.work.patterns import late_pattern


def test_a_late_pattern_matches_as_a_compiled_one() -> None:
    late = late_pattern("([a-z]+)=(?P<value>[0-9]*)", re.IGNORECASE)
    compiled = re.compile("([a-z]+)=(?P<value>[0-9]*)", re.IGNORECASE)
    text = "a=1 B=22"
    for _ in range(2):  # before and after the first use
        found = late.match(text)
        assert found is not None
        assert found["value"] == "1"
        assert late.fullmatch(text) is None
        assert late.search(text, 2)
        assert late.findall(text) == compiled.findall(text)
        assert [each[0] for each in late.finditer(text)] == ["a=1", "B=22"]
        assert late.sub("x", text) == "x x"
        assert late.subn("x", text) == ("x x", 2)
        assert late.split(text) == compiled.split(text)
    assert late.pattern == compiled.pattern


def test_a_pattern_is_compiled_at_its_first_use() -> None:
    wrong = late_pattern("(")
    with pytest.raises(re.error):
        wrong.match("")
    with pytest.raises(AttributeError):
        late_pattern("a").matches  # type: ignore[attr-defined]  # noqa: B018


def test_patterns_of_bytes() -> None:
    assert late_pattern(rb"a+").sub(b"b", b"caac") == b"cbc"
