"""URLs as Go reads them."""

from __future__ import annotations

import pytest

from steersman.machinery.go.urls import has_bad_escape, parse_reference, redacted_url, unescape_path, uri_error
from tests.counted_work import calls


@pytest.mark.parametrize(
    ("text", "escape"),
    [
        ("http://%41", "%41"),
        ("http://a%2f", "%2f"),
        ("http://[::1%2eth0]/", "%2e"),
        ("http://[::1%25a%2f]/", "%2f"),
        ("http://[::1%25a%c3]/", "%c3"),
    ],
)
def test_what_needs_no_escape_in_a_host_must_have_none(text: str, escape: str) -> None:
    assert uri_error(text) == f'parse "{text}": invalid URL escape "{escape}"'


@pytest.mark.parametrize("text", ["http://a%C3%A4", "http://[::1%25eth0]/", "http://[::1%25a%20b]/", "http://a/%41"])
def test_other_escapes_are_read(text: str) -> None:
    assert uri_error(text) is None


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("https://u:p@h:1/a?b#c", ("https", "u:p", "h:1", "/a", "b", "c")),
        ("//h/a", ("", None, "h", "/a", "", "")),
        ("https://a%40b@h", ("https", "a%40b", "h", "", "", "")),
        ("/a@b", ("", None, "", "/a@b", "", "")),
        ("a#b%20c", ("", None, "", "a", "", "b c")),
        ("mailto:a@b", ("mailto", None, "", "", "", "")),
    ],
)
def test_a_reference_has_all_its_parts(text: str, parts: tuple[str | None, ...]) -> None:
    assert parse_reference(text) == parts


@pytest.mark.parametrize(
    ("text", "plain"),
    [("a%41%2fb", "aA/b"), ("%4", "%4"), ("%hh", "%hh"), ("a+b", "a+b"), ("%C3%A9", "\u00e9"), ("%ff", "\ufffd")],
)
@pytest.mark.parametrize("more", [0, 100, 1000])
def test_escapes_of_a_path_in_short_and_in_long_texts(text: str, plain: str, more: int) -> None:
    bad = plain == text and "%" in text
    assert has_bad_escape("%41" * more + text) == bad
    assert unescape_path("%41" * more + text) == ("%41" if bad else "A") * more + plain


def test_very_many_escapes_take_few_calls() -> None:
    assert calls(lambda: unescape_path("%41" * 300_000)) < 100


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://h/p?key=secret", "https://h/p"),
        ("https://h?access_token=secret#part", "https://h"),
        ("https://h/p#access_token=secret", "https://h/p"),
        ("https://me:secret@h:1/p@q", "https://me:***@h:1/p@q"),
        ("https://me@h/p", "https://me@h/p"),
        ("me:secret@h/p?key=a://b", "me:***@h/p"),
        ("https://[::1]:8/", "https://[::1]:8/"),
        ("", ""),
    ],
)
def test_messages_show_urls_without_what_may_be_secret(text: str, shown: str) -> None:
    assert redacted_url(text) == shown
