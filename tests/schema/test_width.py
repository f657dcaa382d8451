"""The limits on the number of conditions that a schema has for one value."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.schema import compile_schema
from tests.schema.asking import of

TEXT = {"type": "string"}
MANY = 400


@pytest.mark.parametrize(
    "wide",
    [
        {**TEXT, "enum": [str(number) for number in range(MANY)]},
        {**TEXT, "anyOf": [{"minLength": number} for number in range(MANY)]},
        {**TEXT, "oneOf": [{"enum": [str(number)]} for number in range(MANY)]},
        {**TEXT, "not": {"allOf": [{"minLength": number} for number in range(MANY)]}},
        {"type": "object", "required": [str(number) for number in range(MANY)]},
        of(**{f"d{number}": {**TEXT, "default": ""} for number in range(MANY)}),
        {"type": "array", "items": {**TEXT, "enum": [str(number) for number in range(MANY)]}},
    ],
)
def test_a_schema_is_wide_where_one_value_is_asked_much(wide: dict[str, Any]) -> None:
    assert compile_schema(of(a=of(b=wide))).is_wide


def test_alternatives_of_alternatives_multiply() -> None:
    inner: dict[str, Any] = {"minLength": 1}
    for _ in range(12):
        inner = {"anyOf": [inner, inner]}
    assert compile_schema(of(a={**TEXT, **inner})).is_wide


def test_many_fields_alone_make_no_schema_wide() -> None:
    fields = {f"f{number}": {**TEXT, "enum": ["a", "b"], "pattern": "^a"} for number in range(MANY)}
    assert not compile_schema(of(**fields)).is_wide
