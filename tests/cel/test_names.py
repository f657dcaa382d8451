"""Names of members as expressions write them."""

import pytest

from steersman.cel.names import escape, unescape


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("plain", "plain"),
        ("a_b", "a_b"),
        ("a__b", "a__underscores__b"),
        ("a-b", "a__dash__b"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("namespace", "__namespace__"),
        ("namespaces", "namespaces"),
        ("true", "__true__"),
        ("___", "__underscores___"),
    ],
)
def test_a_name_is_escaped_and_found_again(name: str, escaped: str) -> None:
    assert escape(name) == escaped
    assert unescape(escaped) == name


@pytest.mark.parametrize("name", ["", "1a", "a b", "é", "a$b", "a\n"])
def test_some_members_have_no_name(name: str) -> None:
    assert escape(name) is None


@pytest.mark.parametrize("escaped", ["a__none__", "a__namespace__", "__in__b"])
def test_some_names_stand_for_no_member(escaped: str) -> None:
    assert unescape(escaped) is None
