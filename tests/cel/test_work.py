"""Limits on work beside the cost: comparing, formatting and creating values ends once it has become too much."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.cel import regular
from steersman.cel.steps import Frame
from steersman.cel.values import CostLimitExceeded, EvaluationError, equal
from steersman.cel.work import HERE, spend, spend_on_text
from tests.cel.cel_sample import evaluate

LIMIT = 1_000_000
DOUBLED = "[[1]]" + ".map(x, [x, x])" * 40
"""A list of lists of lists, 2^40 numbers, of which it has each twice: to make it costs a thousand."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        f"dyn({DOUBLED}) == dyn({DOUBLED})",
        f"dyn({DOUBLED}) in [dyn({DOUBLED})]",
        f"dyn([{DOUBLED}]).indexOf(dyn({DOUBLED})) == 0",
        f"sets.contains([dyn({DOUBLED})], [dyn({DOUBLED})])",
        f"'%s'.format([{DOUBLED}]) == ''",
        f"dyn({DOUBLED}).isSorted()",
        f"dyn({DOUBLED}).flatten(100).size() > 1",
        "[{'a': 1}]" + ".map(x, {'a': x, 'b': x})" * 40 + " == [{'a': 1}]" + ".map(x, {'a': x, 'b': x})" * 40,
        "lists.range(100000).distinct().size() > 1",
        "sets.contains(lists.range(100000), lists.range(100000))",
        "sets.intersects(lists.range(100000), lists.range(100000).map(x, x + 100000))",
    ],
)
def test_an_evaluation_ends_where_it_does_more_than_its_cost_tells(text: str) -> None:
    with pytest.raises(CostLimitExceeded):
        evaluate(text, LIMIT)


@pytest.mark.slow
def test_texts_and_lists_do_not_grow_beyond_all_bounds() -> None:
    with pytest.raises(EvaluationError, match="result of join"):
        evaluate("lists.range(20000).map(x, lists.range(1000).map(y, 'a').join()).join().size() > 1", 100 * LIMIT)
    twice = "lists.range(1000000)"
    for _ in range(6):
        twice = f"[{twice}].map(x, x + x)[0]"
    with pytest.raises(EvaluationError, match="concatenation is too large"):
        evaluate(f"{twice}.size() > 1", 100 * LIMIT)


def test_what_is_small_costs_what_it_cost() -> None:
    small = list(range(500))
    frame = Frame({}, LIMIT)
    HERE.worker = frame
    try:
        assert equal([small], [list(small)])
        assert frame.cost == 0
        assert equal([small] * 9, [small] * 9)
        assert 0 < frame.cost <= 9 * 500
    finally:
        HERE.worker = None


def test_a_little_is_charged_where_little_may_be_done() -> None:
    frame = Frame({}, 100)
    HERE.worker = frame
    try:
        spend_on_text(31)
        assert frame.cost == 0
        spend(40)
        assert frame.cost == 10
        with pytest.raises(CostLimitExceeded):
            spend(4000)
    finally:
        HERE.worker = None


def test_outside_of_evaluations_nothing_is_counted() -> None:
    values: list[Any] = [1]
    for _ in range(10):
        values = [values, values]
    assert equal(values, list(values))


@pytest.mark.parametrize("search", [regular.matches, regular.find, regular.find_all])
def test_a_search_that_costs_too_much_is_not_begun(search: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes as long as there are characters in the text times the pattern, and cannot be ended amid."""
    begun: list[str] = []

    class Compiled:
        def search(self, text: str) -> None:
            begun.append(text)

        def finditer(self, text: str) -> list[Any]:
            begun.append(text)
            return []

    monkeypatch.setattr(regular, "compiled", lambda pattern: Compiled())
    frame = Frame({}, 5_000)
    HERE.worker = frame
    try:
        search("a" * 1000, "a" * 100)
        assert begun == ["a" * 1000]
        assert frame.cost < 100
        with pytest.raises(CostLimitExceeded):
            search("a" * 10_000, "a" * 100)
        assert frame.cost > 5_000
        assert len(begun) == 1
    finally:
        HERE.worker = None
