"""Pruning of objects."""

from __future__ import annotations

from typing import Any

from tests.schema.asking import compiled

TEXT = {"type": "string"}
OPEN = {"x-kubernetes-preserve-unknown-fields": True}


def test_unknown_fields_are_taken_out_and_told_in_order() -> None:
    structural = compiled(
        spec={"type": "object", "properties": {"a": TEXT, "l": {"type": "array", "items": {"type": "object"}}}}
    )
    obj: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Foo",
        "metadata": {"name": "x", "odd": 1},
        "top": 1,
        "spec": {"a": "x", "z": {"deep": 1}, "l": [{"y": 1}, {}, {"x": 1}]},
    }
    assert structural.fit(obj, strict=True) == ["spec.l[0].y", "spec.l[2].x", "spec.z", "top"]
    assert obj == {
        "apiVersion": "v1",
        "kind": "Foo",
        "metadata": {"name": "x", "odd": 1},
        "spec": {"a": "x", "l": [{}, {}, {}]},
    }


def test_nothing_is_told_unless_it_is_asked_for() -> None:
    obj = {"odd": 1}
    assert compiled(a=TEXT).fit(obj) == []
    assert obj == {}


def test_what_is_preserved_is_pruned_where_the_schema_says_more() -> None:
    structural = compiled(
        spec={"type": "object", **OPEN, "properties": {"inner": {"type": "object", "properties": {"a": TEXT}}}}
    )
    obj = {"spec": {"any": {"x": 1}, "inner": {"a": "x", "b": 1}}}
    assert structural.fit(obj, strict=True) == ["spec.inner.b"]
    assert obj == {"spec": {"any": {"x": 1}, "inner": {"a": "x"}}}


def test_items_of_a_list_that_is_preserved_keep_unknown_fields() -> None:
    items = {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": TEXT}}}}
    obj = {"l": [{"odd": {"x": 1}, "a": {"b": "x", "c": 1}}, [{"y": 1}]]}
    assert compiled(l={"type": "array", **OPEN, "items": items}).fit(obj, strict=True) == ["l[0].a.c"]
    assert obj == {"l": [{"odd": {"x": 1}, "a": {"b": "x"}}, [{"y": 1}]]}


def test_members_of_a_map_of_anything_lose_what_is_in_them() -> None:
    """additionalProperties: true permits all names, and the content below is unknown."""
    obj = {"m": {"a": {"b": 1}, "c": [{"d": 1}], "e": 5}}
    assert compiled(m={"type": "object", "additionalProperties": True}).fit(obj, strict=True) == ["m.a.b", "m.c[0].d"]
    assert obj == {"m": {"a": {}, "c": [{}], "e": 5}}


def test_values_of_the_wrong_type_are_pruned_too() -> None:
    obj: dict[str, Any] = {"s": {"a": 1}, "l": {"a": 1}}
    structural = compiled(s=TEXT, l={"type": "array", "items": TEXT})
    assert structural.fit(obj, strict=True) == ["l.a", "s.a"]
    assert obj == {"s": {}, "l": {}}


def test_embedded_resources_keep_what_every_resource_has() -> None:
    structural = compiled(
        r={"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}}
    )
    obj = {"r": {"apiVersion": "v1", "kind": "A", "metadata": {"name": "x", "odd": 1}, "spec": {"y": 1}, "z": 1}}
    assert structural.fit(obj, strict=True) == ["r.spec.y", "r.z", "r.metadata.odd"]
    assert obj == {"r": {"apiVersion": "v1", "kind": "A", "metadata": {"name": "x"}, "spec": {}}}


def test_nulls_are_dropped_unless_they_are_allowed_or_defaulted() -> None:
    properties = {
        "a": TEXT,
        "b": {"type": "string", "nullable": True},
        "c": {"type": "string", "default": "x"},
        "l": {"type": "array", "items": {"type": "object", "properties": {"a": TEXT}}},
        "m": {"type": "object", "additionalProperties": TEXT},
        "open": {"type": "object", **OPEN},
    }
    obj: dict[str, Any] = {
        "a": None,
        "b": None,
        "c": None,
        "l": [None, {"a": None}],
        "m": {"x": None, "y": "z"},
        "open": {"x": None},
    }
    assert compiled(**properties).fit(obj, strict=True) == []
    assert obj == {"b": None, "c": None, "l": [None, {}], "m": {"y": "z"}, "open": {"x": None}}


def test_what_is_pruned_and_dropped_at_once_is_what_is_after_each_other() -> None:
    properties = {"a": TEXT, "l": {"type": "array", **OPEN, "items": {"type": "object", "properties": {"a": TEXT}}}}
    at_once: dict[str, Any] = {"a": None, "b": 1, "l": [{"a": None, "b": None}]}
    one_by_one: dict[str, Any] = {"a": None, "b": 1, "l": [{"a": None, "b": None}]}
    structural = compiled(**properties)
    structural.fit(at_once)
    structural.prune(one_by_one)
    structural.drop_nulls(one_by_one)
    assert at_once == one_by_one == {"l": [{"b": None}]}


def test_long_names_do_not_make_more_text_than_there_is_room_for() -> None:
    structural = compiled(m={"type": "object", "additionalProperties": {"type": "object"}})
    obj = {"m": {"k" * 100_000: {f"n{number}": 1 for number in range(5000)}}}
    assert 50 < len(structural.fit(obj, strict=True)) < 300
    assert list(obj["m"].values()) == [{}]
