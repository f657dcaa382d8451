"""Structural differences of JSON values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from steersman.machinery.differences import MISSING, Difference, Key, differences, key_member, shown_path

SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["a", "b", "", 0.5, 1.0])


def named(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from(["a", "b", "c"]) | st.integers(0, 1) | st.booleans()
    return st.lists(st.fixed_dictionaries({"name": names}, optional={"x": inner}), max_size=5)


VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "b", "name", "type"]), inner, max_size=4)
        | named(inner)
    ),
    max_leaves=12,
)


@given(VALUES, VALUES)
def test_differences_lead_from_one_value_to_the_other(before: Any, after: Any) -> None:
    found = list(differences(before, after))
    assert as_text(apply(before, found)) == as_text(after)
    assert (not found) == (as_text(before) == as_text(after))


def as_text(value: Any) -> str:
    """Return a value as text in which members of objects have one order and 1, 1.0 and true differ."""
    return json.dumps(value, sort_keys=True)


def apply(value: Any, found: Sequence[Difference]) -> Any:
    """Return a copy of `value` with the differences applied."""
    root = [deepcopy(value)]
    for each in found:
        *above, last = (0, *each.path)
        at: Any = root
        for step in above:
            at = at[place(at, step)]
        if each.is_order:
            items = at[place(at, last)]
            member = key_member(items)
            by_key = {json.dumps(item[member] if member else item): item for item in items}
            items[:] = [by_key[json.dumps(key)] for key in each.after]
        elif each.after is MISSING:
            del at[place(at, last)]
        elif isinstance(at, list) and each.before is MISSING:
            at.append(deepcopy(each.after))
        else:
            at[place(at, last)] = deepcopy(each.after)
    return root[0]


def place(at: Any, step: Any) -> Any:
    """Return the member or index of a step."""
    if not isinstance(step, Key):
        return step
    keys = [json.dumps(item[step.member] if step.member else item) for item in at]
    return keys.index(json.dumps(step.value))


def test_items_of_lists_are_named_by_their_keys() -> None:
    before = {"spec": {"containers": [{"name": "web", "image": "a:1"}, {"name": "log", "image": "b"}]}}
    after = {"spec": {"containers": [{"name": "log", "image": "b"}, {"name": "web", "image": "a:2"}]}}
    order, image = differences(before, after)
    assert order.is_order
    assert (order.before, order.after) == (["web", "log"], ["log", "web"])
    assert shown_path(image.path) == ".spec.containers[name=web].image"
    assert (image.before, image.after) == ("a:1", "a:2")


def test_scalars_of_lists_are_named_by_their_value() -> None:
    (found,) = differences({"finalizers": ["a/x", "b/y"]}, {"finalizers": ["b/y"]})
    assert shown_path(found.path) == ".finalizers[a/x]"
    assert found.after is MISSING


def test_a_member_that_is_no_identifier_is_quoted() -> None:
    (found,) = differences({"labels": {}}, {"labels": {"a.b/c": "1"}})
    assert shown_path(found.path) == '.labels["a.b/c"]'


def test_a_deep_value_needs_no_recursion() -> None:
    deep: Any = {"x": 1}
    other: Any = {"x": 2}
    for _ in range(2_000):
        deep, other = [deep], [other]
    (found,) = differences(deep, other)
    assert (found.before, found.after) == (1, 2)
    assert len(found.path) == 2_001
