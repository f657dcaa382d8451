"""Estimates grow with the sizes that are declared, and what an evaluation costs stays within them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.cel.expression import compile_expression
from steersman.cel.library.kubernetes_costs import kubernetes_costs
from steersman.cel.sizes import UNBOUNDED, Range, fixed
from steersman.cel.values import CostLimitExceeded, EvaluationError
from tests.cel.cel_sample import ENVIRONMENT, ESTIMATOR, VALUES, evaluate


def cost(text: str) -> Range:
    return compile_expression(text, ENVIRONMENT).estimate(ESTIMATOR)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("1", 0, 0),
        ("o.s", 2, 2),
        ("o.s == 'hello'", 3, 3),
        ("o.s == s", 4, 13),
        ("o.s.contains('hello')", 2, 12),
        ("s.contains('hello')", 1, 1844674407370955265),
        ("s.contains(s)", 2, UNBOUNDED),
        ("o.s.matches('^h.*')", 3, 13),
        ("o.list.all(x, x == 'a')", 3, 38),
        ("o.list.all(x, o.list.all(y, x == y))", 3, 339),
        ("has(o.s)", 1, 1),
        ("true ? o.s : 'x'", 0, 2),
        ("[1, 2, 3]", 10, 10),
        ("{'a': 1}", 30, 30),
        ("o.list.sort()", 13, 116),
        ("lists.range(10)", 21, 21),
        ("o.s.split('').size()", 3, 23),
        ("o.map[?'k'].orValue('')", 4, 4),
    ],
)
def test_costs_are_estimated(text: str, least: int, most: int) -> None:
    assert cost(text) == (least, most)


def test_numbers_do_not_overflow() -> None:
    assert fixed(UNBOUNDED).plus(fixed(1)) == fixed(UNBOUNDED)
    assert fixed(2**40).times(fixed(2**40)) == fixed(UNBOUNDED)
    assert fixed(UNBOUNDED).scaled(2) == fixed(UNBOUNDED)


def test_evaluation_ends_when_it_has_cost_too_much() -> None:
    with pytest.raises(CostLimitExceeded, match="operation cancelled: actual cost limit exceeded"):
        evaluate("lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0)) || true", limit=10_000)


_texts = st.sampled_from(["o.s", "'abc'", "o.list[0]", "o.map.k1", "o.inner.name"])
_numbers = st.sampled_from(["o.i", "1", "o.ints[0]", "o.list.size()", "o.s.size()"])


@given(_texts, _texts, _numbers, st.sampled_from(["==", "<", "!="]))
@settings(deadline=None)
def test_what_is_spent_is_within_the_estimate(one: str, other: str, number: str, operator: str) -> None:
    text = (
        f"o.list.all(x, x {operator} {one}) || {other}.contains({one}) && {number} in o.ints "
        f"|| ({one} + {other}).size() > {number} || o.map.exists(k, k.startsWith({other}))"
    )
    expression = compile_expression(text, ENVIRONMENT)
    try:
        _, spent = expression.program(kubernetes_costs).evaluate(VALUES, UNBOUNDED)
    except EvaluationError:
        return
    assert spent <= expression.estimate(ESTIMATOR).max
