"""The printable characters, which are Go's whatever the Unicode version of the interpreter."""

from __future__ import annotations

import pytest

from steersman.machinery.errors.field import Path, quote
from steersman.machinery.go.printable import is_printable
from steersman.machinery.go.printable_ranges import UNICODE
from steersman.machinery.managed_fields.requests import manager_name
from steersman.machinery.validation.managed_fields import validate_field_manager

NEW = "\U00011f02"
"""A letter of Unicode 15.0, which no earlier version has."""
NEWER = "\U0002ebf0"
"""One of 15.1, which Go does not know."""


def test_the_table_is_of_the_unicode_that_go_has() -> None:
    assert UNICODE == "15.0.0"
    assert is_printable(NEW)
    assert not is_printable(NEWER)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("abc ~", True),
        ("", True),
        ("a\n", False),
        ("\x7f", False),
        ("é", True),
        ("\xa0", False),
        ("\xad", False),
        ("\u2028", False),
        ("\ud800", False),
        ("\ue000", False),
        ("日本", True),
        ("\U0010ffff", False),
        ("😀", True),
    ],
)
def test_what_is_printed_as_it_is(text: str, printed: bool) -> None:
    assert is_printable(text) is printed


def test_quotes_and_field_managers_depend_on_it() -> None:
    assert quote(NEW) == f'"{NEW}"'
    assert quote(f"a{NEWER}") == '"a\\U0002ebf0"'
    assert manager_name("", f"a{NEW}{NEWER}/1") == f"a{NEW}"
    assert not list(validate_field_manager(NEW, Path("manager")))
    [error] = validate_field_manager(f"a{NEWER}", Path("manager"))
    assert error.detail == "invalid character U+2EBF0 (at position 1)"
