"""JSON Merge Patch: RFC 7386's examples, what the reference does otherwise, and its errors."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.machinery.errors.status import StatusError
from steersman.machinery.patch import merge_patch


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": 1}, {"b": None}, {"a": 1}),
    ],
)
def test_patch_merges(document: dict[str, Any], patch: dict[str, Any], expected: dict[str, Any]) -> None:
    assert merge_patch.apply(document, patch) == expected


def test_nulls_inside_a_list_are_dropped_unless_it_replaces_an_object() -> None:
    patch = {"a": [{"x": None, "y": 1}, None]}
    assert merge_patch.apply({}, patch) == {"a": [{"y": 1}, None]}
    assert merge_patch.apply({"a": []}, patch) == {"a": [{"y": 1}, None]}
    assert merge_patch.apply({"a": {"b": 1}}, patch) == patch


@pytest.mark.parametrize(
    ("patch", "strict", "message"),
    [
        ([1], True, "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (
            "t",
            True,
            "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}",
        ),
        (5, False, "Invalid JSON Patch"),
        (None, True, "Invalid JSON Patch"),
        (None, False, "Invalid JSON Patch"),
    ],
)
def test_what_is_no_patch_is_refused(patch: Any, strict: bool, message: str) -> None:
    with pytest.raises(StatusError) as raised:
        merge_patch.apply({}, patch, strict=strict)
    assert (raised.value.code, raised.value.message) == (400, message)


def test_list_is_the_result_when_not_strict() -> None:
    assert merge_patch.apply({"a": 1}, [{"x": None}, 2], strict=False) == [{}, 2]


def test_deep_nesting_is_refused() -> None:
    deep: dict[str, Any] = {}
    patch = deep
    for _ in range(20_000):
        deep["a"] = deep = {}
    with pytest.raises(StatusError, match="nested too deeply"):
        merge_patch.apply({}, patch)


def test_parts_that_do_not_change_are_shared_not_copied() -> None:
    document = {"big": {"x": 1}, "small": {"y": 1}}
    assert merge_patch.apply(document, {"small": {"y": 2}})["big"] is document["big"]


KEYS = st.text("abc", max_size=2)
VALUES = st.recursive(
    st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
# Nulls inside lists are left out: see the test on them above, they make a second application drop more.
PATCHES = st.dictionaries(
    KEYS,
    st.recursive(
        st.none() | st.booleans() | st.integers(-3, 3) | st.lists(VALUES, max_size=2),
        lambda inner: st.dictionaries(KEYS, inner, max_size=3),
        max_leaves=8,
    ),
    max_size=3,
)


def difference(old: Any, new: Any) -> Any:
    """A merge patch from one object to another."""
    patch = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            patch[key] = difference(before, value)
        elif key not in old or before != value or type(before) is not type(value):
            patch[key] = value
    return patch


@given(OBJECTS, OBJECTS)
def test_patch_made_from_a_difference_gives_the_other(old: Any, new: Any) -> None:
    assert merge_patch.apply(old, difference(old, new)) == new


@given(OBJECTS, PATCHES)
def test_applying_twice_is_applying_once_and_changes_nothing_in_place(document: Any, patch: Any) -> None:
    before = copy.deepcopy((document, patch))
    once = merge_patch.apply(document, patch)
    assert (document, patch) == before
    assert merge_patch.apply(once, patch) == once


@given(OBJECTS)
def test_empty_patch_changes_nothing(document: Any) -> None:
    assert merge_patch.apply(document, {}) == document


def test_what_a_patch_touches_has_its_members_sorted() -> None:
    document = {"kind": "K", "b": {"z": 1, "y": 2}, "a": {"z": 1, "y": 2}}
    found = merge_patch.apply(document, {"b": {"x": 3}, "c": {"e": 1, "d": None, "b": {"z": 1, "a": 2}}})
    assert list(found) == ["a", "b", "c", "kind"]
    assert (list(found["a"]), list(found["b"])) == (["z", "y"], ["x", "y", "z"])
    assert (list(found["c"]), list(found["c"]["b"])) == (["b", "e"], ["a", "z"])
