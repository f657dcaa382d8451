"""Simple JSON paths into schemas."""

from __future__ import annotations

import pytest

from steersman.schema import FieldPathError, valid_field_path
from tests.schema.asking import of

TEXT = {"type": "string"}
SCHEMA = of(spec=of(a=TEXT, b={"type": "object", "additionalProperties": TEXT}, **{"x.y": TEXT, "it's": TEXT}))


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (".spec.a", "spec.a"),
        (".spec['a']", "spec.a"),
        (".spec['x.y']", "spec.x.y"),
        (r".spec['it\'s']", "spec.it's"),
        (".spec.b.c", "spec.b[c]"),
        (".spec.b['c.d']", "spec.b[c.d]"),
    ],
)
def test_where_paths_lead(text: str, path: str) -> None:
    found = valid_field_path(text, SCHEMA)
    assert (str(found.path), found.first, found.schema) == (path, "spec", TEXT)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("spec.a", "expected [ or . but got: spec"),
        (".", "unexpected end of JSON path"),
        (".gone", "does not refer to a valid field"),
        (".spec.a.b", "does not refer to a valid field"),
        (".spec[a]", "expected single quoted string but got a"),
        (".spec['a'", "unexpected end of JSON path"),
        (".spec['a'.b", "expected ] but got ."),
        (r".spec['\q']", r"invalid string literal: invalid escape char \q"),
        (".spec[", "unexpected end of JSON path"),
    ],
)
def test_paths_that_lead_nowhere(text: str, message: str) -> None:
    with pytest.raises(FieldPathError) as raised:
        valid_field_path(text, SCHEMA)
    assert str(raised.value) == message


def test_brackets_may_be_forbidden() -> None:
    with pytest.raises(FieldPathError, match="array notation is not allowed"):
        valid_field_path(".spec['a']", SCHEMA, array_notation=False)
