"""URLs as Go's net/url takes them apart."""

import pytest

from steersman.machinery.go.urls import parse_reference


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
