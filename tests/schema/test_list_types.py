"""Lists that must not have anything twice."""

from __future__ import annotations

from typing import Any

from tests.schema.asking import compiled, told


def keyed(*keys: str) -> dict[str, Any]:
    items = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


SCHEMA = compiled(
    one=keyed("k"),
    two=keyed("k", "p"),
    set={"type": "array", "x-kubernetes-list-type": "set", "items": {}},
    map={"type": "object", "additionalProperties": keyed("k")},
)


def test_the_second_is_told_and_not_the_third() -> None:
    assert told(SCHEMA.validate_lists({"set": ["a", "b", "a", "a", 1, 1, {"a": 1}, {"a": 1}]})) == [
        ("set[2]", 'Duplicate value: "a"'),
        ("set[5]", "Duplicate value: 1"),
        ("set[7]", 'Duplicate value: {"a":1}'),
    ]
    assert told(SCHEMA.validate_lists({"map": {"x": [{"k": 1}, {"k": 1}]}})) == [
        ("map[x][1]", 'Duplicate value: {"k":1}')
    ]


def test_scalars_of_other_types_are_others_and_compounds_are_what_their_json_is() -> None:
    assert SCHEMA.validate_lists({"set": [1, 1.0, True, "1", None]}) == []
    assert told(SCHEMA.validate_lists({"set": [[1], [1.0]]})) == [("set[1]", "Duplicate value: [1]")]
    assert SCHEMA.validate_lists({"one": [{"k": 1}, {"k": 1.0}, {"k": True}]}) == []
    assert len(SCHEMA.validate_lists({"two": [{"k": 1, "p": 1}, {"k": 1.0, "p": 1}]})) == 1


def test_items_without_keys_are_the_same() -> None:
    assert told(SCHEMA.validate_lists({"one": [{"x": 1}, None], "two": [{"k": 1, "z": 1}, {"k": 1, "z": 2}]})) == [
        ("one[1]", "Duplicate value: {}"),
        ("two[1]", 'Duplicate value: {"k":1}'),
    ]
    assert SCHEMA.validate_lists({"one": [{"k": None}, {}]}) == []


def test_an_item_that_is_no_object_is_told_alone() -> None:
    assert told(SCHEMA.validate_lists({"one": [5, {"k": 1}, {"k": 1}]})) == [
        ("one[0]", "Invalid value: 5: must be an object for an array of list-type map")
    ]


def test_nothing_is_said_where_the_old_object_was_wrong_already() -> None:
    assert SCHEMA.validate_lists({"set": [1, 1]}, {"one": [{}, {}]}) == []
    assert len(SCHEMA.validate_lists({"set": [1, 1]}, {"set": [1]})) == 1
