"""Field selectors: the grammar, escapes, matching, transformation."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.machinery.selectors import fields
from steersman.machinery.selectors.fields import Requirement, Selector, SelectorError, parse


@pytest.mark.parametrize(
    ("text", "requirements"),
    [
        ("", []),
        ("a=b", [("a", "=", "b")]),
        ("a==b", [("a", "=", "b")]),
        ("a!=b", [("a", "!=", "b")]),
        ("z=1,a=2,", [("a", "=", "2"), ("z", "=", "1")]),
        ("a=", [("a", "=", "")]),
        ("=", []),
        (r"a=b\,c,d=e\=f\\", [("a", "=", "b,c"), ("d", "=", "e=f\\")]),
    ],
)
def test_selector_is_read(text: str, requirements: list[Any]) -> None:
    assert [(each.field, each.operator, each.value) for each in parse(text).requirements] == requirements


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("a=b,c in (a)", "invalid selector: 'a=b,c in (a)'; can't understand 'c in (a)'"),
        (r"metadata.name=a\x", r"invalid field selector: invalid escape sequence: \x"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
    ],
)
def test_unreadable_selector_says_why(text: str, error: str) -> None:
    with pytest.raises(SelectorError) as raised:
        parse(text)
    assert str(raised.value) == error


def test_matching_takes_missing_fields_as_empty() -> None:
    selector = parse("spec.nodeName=,status.phase!=Running")
    assert selector.matches({"status.phase": "Pending"})
    assert selector.matches({})
    assert not selector.matches({"spec.nodeName": "n"})
    assert not selector.matches({"status.phase": "Running"})


def test_everything_and_nothing() -> None:
    assert parse("") is fields.EVERYTHING
    assert fields.EVERYTHING.empty
    assert fields.EVERYTHING.matches({})
    assert not fields.NOTHING.empty
    assert not fields.NOTHING.matches({})


def test_exact_match_is_found() -> None:
    selector = parse("a!=1,b=2,c=")
    assert [selector.requires_exact_match(name) for name in "abcd"] == [None, "2", "", None]


def test_transformation_renames_drops_and_refuses() -> None:
    def rename(field: str, value: str) -> tuple[str, str]:
        if field == "bad":
            raise SelectorError(f"field label not supported: {field}")
        return ("", "") if field == "drop" else (f"metadata.{field}", value.upper())

    assert str(parse("name=a,drop=b").transform(rename)) == "metadata.name=A"
    with pytest.raises(SelectorError, match=r"^field label not supported: bad$"):
        parse("bad=x").transform(rename)


NAMES = st.text("abc.", min_size=1, max_size=4)
TEXT = st.text(st.sampled_from("a,=\\!é "), max_size=6)
SELECTORS = st.lists(st.builds(Requirement, NAMES, st.sampled_from(["=", "!="]), TEXT), max_size=4).map(Selector)


@given(SELECTORS)
def test_printed_selector_reads_as_itself(selector: Any) -> None:
    assert set(parse(str(selector)).requirements) == set(selector.requirements)


@given(TEXT)
def test_escaped_value_reads_as_itself(value: Any) -> None:
    assert fields.unescape_value(fields.escape_value(value)) == value


@given(st.text("ab=!,\\", max_size=10))
def test_any_text_is_read_or_refused(text: Any) -> None:
    try:
        selector = parse(text)
    except SelectorError:
        return
    assert set(parse(str(selector)).requirements) == set(selector.requirements)
