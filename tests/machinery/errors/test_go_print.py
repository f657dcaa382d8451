"""Values as Go prints them; the expectations are those of fmt."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.machinery.errors.go_print import go_source, go_text, go_type, go_value

MIXED = {"b": [1, 1.5, True, None, "x y"], "a": {"c": {}}}


def test_values() -> None:
    assert go_value(MIXED) == "map[a:map[c:map[]] b:[1 1.5 true <nil> x y]]"
    assert go_value(None) == "<nil>"


def test_text_marks_what_is_none() -> None:
    assert go_text(MIXED) == "map[a:map[c:map[]] b:[%!s(int64=1) %!s(float64=1.5) %!s(bool=true) <nil> x y]]"
    assert go_text(None) == "%!s(<nil>)"
    assert go_text("x") == "x"


def test_source() -> None:
    assert go_source({"a": [1, None, "x"]}) == (
        'map[string]interface {}{"a":[]interface {}{1, interface {}(nil), "x"}}'
    )


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({}, "map[string]interface {}"),
        ([], "[]interface {}"),
        (True, "bool"),
        (1, "int64"),
        (1.0, "float64"),
        ("", "string"),
        (None, "<nil>"),
    ],
)
def test_types(value: Any, name: str) -> None:
    assert go_type(value) == name


@pytest.mark.parametrize(("value", "text"), [(80.0, "80"), (1e6, "1e+06"), (1e-5, "1e-05"), (-2.25, "-2.25")])
def test_floats(value: float, text: str) -> None:
    assert go_value(value) == text
