"""Field paths and field errors: how they print."""

import math
from typing import Any

import pytest

from steersman.api.meta.v1 import OwnerReference
from steersman.machinery.errors import field
from steersman.machinery.errors.field import Path, Verbatim, print_value

HERE = Path("spec", "a")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (Path(), "<nil>"),
        (Path(""), "[]"),
        (Path("spec"), "spec"),
        (Path("spec", "ports")[0] / "name", "spec.ports[0].name"),
        (Path("data")["a b"], "data[a b]"),
        (Path() / "key", "key"),
        (Path().child("a", "b"), "a.b"),
        (Path("a").child("b", "c"), "a.b.c"),
    ],
)
def test_path_prints(path: Any, text: str) -> None:
    assert str(path) == text


def test_paths_compare_by_where_they_lead() -> None:
    assert Path("a", "b") == Path("a") / "b"
    assert len({Path("a.b"), Path("a") / "b", Path("a")}) == 2


@pytest.mark.parametrize(
    ("error", "type_", "text"),
    [
        (field.required(HERE), "FieldValueRequired", "spec.a: Required value"),
        (field.required(HERE, "say"), "FieldValueRequired", "spec.a: Required value: say"),
        (field.invalid(HERE, "x", "no"), "FieldValueInvalid", 'spec.a: Invalid value: "x": no'),
        (
            field.not_supported(HERE, "x", ("a", "b")),
            "FieldValueNotSupported",
            'spec.a: Unsupported value: "x": supported values: "a", "b"',
        ),
        (field.not_supported(HERE, "x", ()), "FieldValueNotSupported", 'spec.a: Unsupported value: "x"'),
        (field.duplicate(HERE, "x"), "FieldValueDuplicate", 'spec.a: Duplicate value: "x"'),
        (field.not_found(HERE, "x"), "FieldValueNotFound", 'spec.a: Not found: "x"'),
        (field.forbidden(HERE, "no"), "FieldValueForbidden", "spec.a: Forbidden: no"),
        (field.too_long(HERE, 5), "FieldValueTooLong", "spec.a: Too long: may not be more than 5 bytes"),
        (field.too_long(HERE, 1), "FieldValueTooLong", "spec.a: Too long: may not be more than 1 byte"),
        (field.too_long(HERE, -1), "FieldValueTooLong", "spec.a: Too long: value is too long"),
        (field.too_many(HERE, 3, 2), "FieldValueTooMany", "spec.a: Too many: 3: must have at most 2 items"),
        (field.too_many(HERE, 3, 1), "FieldValueTooMany", "spec.a: Too many: 3: must have at most 1 item"),
        (field.too_many(HERE, -1, -1), "FieldValueTooMany", "spec.a: Too many: has too many items"),
        (field.internal(HERE, ValueError("oh")), "InternalError", "spec.a: Internal error: oh"),
    ],
)
def test_error_prints(error: Any, type_: str, text: str) -> None:
    assert (error.type, str(error)) == (type_, text)
    assert error.body == text.removeprefix("spec.a: ")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (0, "0"),
        (-5, "-5"),
        (0.5, "0.5"),
        (2.0, "2"),
        (100000.0, "100000"),
        (1e6, "1e+06"),
        (1234567.8, "1.2345678e+06"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (-1.5e300, "-1.5e+300"),
        (math.inf, "+Inf"),
        (math.nan, "NaN"),
        ("a", '"a"'),
        ('q"\\', '"q\\"\\\\"'),
        ("a\n\a\x00\x7f\x85\u2028é😀", '"a\\n\\a\\x00\\x7f\\u0085\\u2028é😀"'),
        (["b", "a"], '["b","a"]'),
        ({"b": 1, "a": "<&>\u2028"}, '{"a":"\\u003c\\u0026\\u003e\\u2028","b":1}'),
        (
            OwnerReference(api_version="v1", kind="Event", name="n", uid="u"),
            '{"apiVersion":"v1","kind":"Event","name":"n","uid":"u"}',
        ),
        (Verbatim('{"Go":1}'), '{"Go":1}'),
    ],
)
def test_value_prints_as_go_would(value: Any, text: str) -> None:
    assert print_value(value) == text


def test_errors_are_told_together_once_each() -> None:
    one, two = field.required(Path("a")), field.required(Path("b"))
    assert field.aggregate([one, one]) == "a: Required value"
    assert field.aggregate([one, two, one]) == "[a: Required value, b: Required value]"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([1e300, 1e21, 3.4e38], "[1e+300,1e+21,3.4e+38]"),
        ([1e-7, 2.5e-9, 5e-324], "[1e-7,2.5e-9,5e-324]"),
        ({"a": [1.0, 1e16, -0.0, 1.5]}, '{"a":[1,10000000000000000,-0,1.5]}'),
        ({"a": "1.0 and 1e9"}, '{"a":"1.0 and 1e9"}'),
    ],
)
def test_floats_in_composite_values_are_those_of_go_s_json(value: Any, text: str) -> None:
    assert print_value(value) == text
