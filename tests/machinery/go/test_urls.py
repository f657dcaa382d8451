"""URLs as Go reads them."""

from __future__ import annotations

import pytest

from steersman.machinery.go.urls import uri_error


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
