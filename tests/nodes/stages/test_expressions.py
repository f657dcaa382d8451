"""Expressions of jq that are evaluated together."""

from __future__ import annotations

import json

import pytest

from steersman.nodes.stages.declaration import StageError
from steersman.nodes.stages.expressions import MOST_SOURCE, Expressions

OBJECT = json.dumps({"a": {"b": [{"t": "x", "v": 1}, {"t": "y", "v": None}]}, "s": "text", "yes": True})


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (".s", ["text"]),
        (".none", []),
        (".none.deeper[]?", []),
        (".none.[]", None),
        ('.a.b.[] | select( .t == "x" ) | .v', [1]),
        (".a.b[].v", [1]),
        (".a.b[].t", ["x", "y"]),
        (".s.x", None),
        ('error("none")', None),
        (".a.b[0].v, .s.x", None),
        (".s # a comment", ["text"]),
        ("$ENV | length", [0]),
        ("env | length", [0]),
        ("input", None),
    ],
)
def test_an_expression_leads_to_what_is_there_or_fails_alone(source: str, found: object) -> None:
    expressions = Expressions()
    before, place, behind = (expressions.add(each) for each in (".yes", source, ".a.b[0].t"))
    answers = expressions.evaluate(OBJECT)
    assert (answers[before], answers[place], answers[behind]) == ([True], found, ["x"])


def test_the_same_expression_is_evaluated_once() -> None:
    expressions = Expressions()
    assert [expressions.add(each) for each in (".a", ".s", ".a")] == [0, 1, 0]
    assert len(expressions.evaluate(OBJECT)) == 2


@pytest.mark.parametrize("source", ["1), (2", ".a |", "]", 'import "a" as a; .', ". as [$x", "#" * (MOST_SOURCE + 1)])
def test_what_is_no_expression_by_itself_is_refused(source: str) -> None:
    with pytest.raises(StageError):
        Expressions().add(source)


def test_an_expression_cannot_end_the_others() -> None:
    expressions = Expressions()
    expressions.add(".s")
    expressions.add("halt")
    assert list(expressions.evaluate(OBJECT)) == [["text"], None]
