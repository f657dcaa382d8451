"""Schemas and values that are nested as deeply as documents may be."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from steersman.machinery.large_work.nesting import MAX_DEPTH, raise_recursion_limit
from steersman.schema import SchemaChecks, compile_schema, schema_errors
from tests.schema.asking import PATH, compiled, told

LEVELS = MAX_DEPTH // 2 - 2
"""Each level of a schema is two of its document: `properties`, and a name in it."""


@pytest.fixture(autouse=True)
def room() -> Iterator[None]:
    before = sys.getrecursionlimit()
    raise_recursion_limit()
    yield
    sys.setrecursionlimit(before)


def nested(inner: Any, **members: Any) -> Any:
    for _ in range(LEVELS):
        inner = {"type": "object", "properties": {"a": inner}, **members}
    return inner


def an_object(inner: Any) -> Any:
    for _ in range(LEVELS):
        inner = {"a": inner}
    return inner


def test_deep_schemas_are_worked_with() -> None:
    plain = nested({"type": "integer", "default": 1, "maximum": 5}, default={})
    plain.pop("default")
    assert schema_errors(plain, PATH, SchemaChecks(), status_enabled=False) == []
    structural = compile_schema(plain)
    obj: dict[str, Any] = {}
    structural.default(obj)
    assert obj == an_object(1)
    assert structural.fit(obj, strict=True) == []
    assert structural.ownership is not None
    wrong, old = an_object(9), an_object(8)
    ((_, text),) = told(structural.validate(wrong))
    assert text.startswith("Invalid value: 9: a.a.a.")
    assert len(structural.validate_update(wrong, old)) == 1
    assert structural.validate_update(wrong, an_object(9)) == []


def test_deep_alternatives_are_tried_once_each() -> None:
    inner: Any = {"required": ["b"]}
    for _ in range(LEVELS // 2):
        inner = {"anyOf": [inner, {"required": ["c"]}]}
    structural = compiled(v={"type": "object", **inner})
    assert structural.validate({"v": {"b": 1}}) == []
    assert len(structural.validate({"v": {}})) == 2


def test_deep_values_of_which_nothing_is_said_are_compared_and_copied() -> None:
    deep: Any = 1
    for _ in range(MAX_DEPTH - 5):
        deep = [deep]
    open_ = {"x-kubernetes-preserve-unknown-fields": True}
    structural = compiled(
        v={**open_, "default": deep}, s={"type": "array", "x-kubernetes-list-type": "set", "items": open_}
    )
    obj: dict[str, Any] = {"s": [deep, deep]}
    structural.default(obj)
    structural.fit(obj)
    assert obj["v"] == deep
    assert len(structural.validate_lists(obj)) == 1
