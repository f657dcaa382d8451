"""Changes of definitions that break stored objects."""

from __future__ import annotations

import time
from typing import Any

import pytest

from steersman.check.definitions import changes


def definition(schema: dict[str, Any], *, served: bool = True, name: str = "v1") -> dict[str, Any]:
    root = {"type": "object", "properties": {"spec": {"type": "object", **schema}}}
    return {"spec": {"versions": [{"name": name, "served": served, "schema": {"openAPIV3Schema": root}}]}}


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ({"properties": {"a": TEXT}}, {}, "spec.a is removed: stored values are lost"),
        ({"properties": {"a": TEXT}}, {"properties": {"b": TEXT}}, "spec.a is removed: stored values are lost"),
        ({"x-kubernetes-preserve-unknown-fields": True}, {}, "spec no longer keeps unknown fields"),
        (
            {"properties": {"a": TEXT}},
            {"properties": {"a": {"type": "integer"}}},
            "the type changes from string to integer",
        ),
        ({}, {"required": ["a"], "properties": {"a": TEXT}}, "spec: a is now required, without a default"),
        ({"properties": {"a": TEXT}}, {"properties": {"a": {**TEXT, "maxLength": 3}}}, "maxLength is 3, was not set"),
        ({"minProperties": 1}, {"minProperties": 2}, "spec: minProperties is 2, was 1"),
        ({"properties": {"a": {"enum": ["x", "y"]}}}, {"properties": {"a": {"enum": ["y"]}}}, "x no longer allowed"),
        ({"properties": {"a": {}}}, {"properties": {"a": {"enum": ["y"]}}}, "only some values are allowed now"),
        ({"nullable": True}, {}, "null is no longer allowed"),
        ({}, {"x-kubernetes-validations": [{"rule": "self.a > 0"}]}, "the rule self.a > 0 is new"),
        ({"properties": {"a": {"items": TEXT}}}, {"properties": {"a": {"items": {}}}}, "spec.a[]: the type changes"),
        (
            {"additionalProperties": {"pattern": "a"}},
            {"additionalProperties": {"pattern": "b"}},
            "spec[*]: pattern changes",
        ),
        ({"exclusiveMinimum": False}, {"exclusiveMinimum": True}, "exclusiveMinimum is set"),
        ({"maximum": 10**400}, {"maximum": 3}, "maximum is 3, was inf"),
        ({"enum": [1, "1", {"a": 1}]}, {"enum": [1.0, {"a": 1}]}, "1 no longer allowed"),
    ],
)
def test_changes_that_break_stored_objects(before: dict[str, Any], after: dict[str, Any], message: str) -> None:
    found = list(changes(definition(before), definition(after)))
    assert [message in each.message for each in found] == [True]
    assert found[0].field.startswith("spec.versions[0].schema.openAPIV3Schema")
    assert list(changes(definition(before), definition(before))) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"maximum": 3}, {"maximum": 4}),
        ({"maximum": 3}, {}),
        ({"enum": ["a"]}, {"enum": ["a", "b"]}),
        ({"properties": {"a": TEXT}}, {"properties": {"a": TEXT, "b": TEXT}}),
        ({"properties": {"a": TEXT}}, {"x-kubernetes-preserve-unknown-fields": True}),
        ({}, {"required": ["a"], "properties": {"a": {**TEXT, "default": "x"}}}),
        ({"required": ["a"]}, {}),
    ],
)
def test_changes_that_break_nothing(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert list(changes(definition(before), definition(after))) == []


def test_versions_that_are_no_longer_served() -> None:
    old = definition({})
    gone = list(changes(old, definition({}, name="v2")))
    assert [(each.message, each.field) for each in gone] == [("version v1 is no longer served", "spec.versions")]
    unserved = list(changes(old, definition({}, served=False)))
    assert [each.field for each in unserved] == ["spec.versions[0].served"]
    assert list(changes(definition({}, served=False), definition({}, name="v2"))) == []


def test_malformed_definitions_and_many_changes_are_bounded() -> None:
    many = {"properties": {f"a{number}": TEXT for number in range(1_000)}}
    assert len(list(changes(definition(many), definition({})))) == 100
    for each in ({}, {"spec": 3}, {"spec": {"versions": [3, {"schema": [], "served": True}]}}):
        assert list(changes(each, each)) == []
    deep: dict[str, Any] = {}
    for _ in range(20_000):
        deep = {"properties": {"a": deep}}
    assert list(changes(definition(deep), definition(deep))) == []


def test_long_lists_are_compared_in_linear_time() -> None:
    before, after = ({"properties": {"a": {"enum": [f"{sign}{each}" for each in range(50_000)]}}} for sign in "ab")
    began = time.thread_time()
    (change,) = changes(definition(before), definition(after))
    assert change.message.endswith(", a18, a19 and 49980 more no longer allowed")
    assert time.thread_time() - began < 5.0
