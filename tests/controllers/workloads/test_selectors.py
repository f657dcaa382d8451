"""Tests of selectors of objects, small and large."""

from __future__ import annotations

import pytest

from steersman.api.meta.v1 import LabelSelector, LabelSelectorRequirement
from steersman.controllers.workloads import selectors
from steersman.controllers.workloads.selectors import compile_selector, may_select


def large(name: str, count: int = 5_000) -> LabelSelector:
    return LabelSelector(match_labels={f"{name}{number}": "v" for number in range(count)})


def test_small_selectors_are_compared_exactly() -> None:
    expression = LabelSelectorRequirement(key="b", operator="NotIn", values=["c"])
    selector = LabelSelector(match_labels={"a": "b"}, match_expressions=[expression])
    assert may_select(selector, {"a": "b"})
    assert not may_select(selector, {"a": "b", "b": "c"})
    assert not may_select(LabelSelector(), {"a": "b"})
    assert not may_select(None, {"a": "b"})


def test_of_large_selectors_the_wanted_labels_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "from_label_selector", None)
    selector = large("k")
    assert not may_select(selector, {"k1": "v"})
    assert may_select(selector, {**selector.match_labels, "a": "b"})
    values = [f"v{number}" for number in range(1_000)]
    by_values = LabelSelector(match_expressions=[LabelSelectorRequirement(key="a", operator="In", values=values)])
    assert may_select(by_values, {"a": "another"})


async def test_large_selectors_are_remembered_within_a_number_of_requirements() -> None:
    first = await compile_selector(large("first"))
    assert await compile_selector(large("first")) is first
    for number in range(25):
        await compile_selector(large(f"other{number}-"))
    assert 50_000 < selectors._remembered.weight <= 100_000
    assert await compile_selector(large("first")) is not first
