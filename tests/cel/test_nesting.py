"""The deepest expressions are read, checked, estimated and evaluated, and Python's limit on calls stays as it is."""

from __future__ import annotations

import sys

import pytest

from steersman.cel.nesting import allows_nesting
from tests.cel.cel_sample import outcome


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("[" * 249 + "1" + "]" * 249, "list"),
        ("(" * 249 + "1" + ")" * 249, "int"),
        ("true ? 1 : " * 249 + "2", "int"),
        ("1" + " + 1" * 250, "int"),
        ("[1].all(x, " * 200 + "true" + ")" * 200, "bool"),
    ],
)
def test_the_deepest_expressions_have_an_outcome(text: str, type: str) -> None:
    before = sys.getrecursionlimit()
    found = outcome(text)
    assert found["type"].startswith(type)
    assert "value" in found
    assert sys.getrecursionlimit() == before


def test_what_never_ends_is_still_stopped() -> None:
    def endless(depth: int) -> int:
        return endless(depth + 1)

    with pytest.raises(RecursionError):
        allows_nesting(endless)(0)


def test_calls_within_calls_are_not_made_again_each() -> None:
    made = 0

    @allows_nesting
    def nested(depth: int) -> int:
        nonlocal made
        made += 1
        return nested(depth + 1)

    with pytest.raises(RecursionError):
        nested(0)
    assert made < 40_000
