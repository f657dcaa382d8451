"""jq expressions come to the results of jq, and end whatever they say."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import jq
import pytest

from steersman.nodes.stages.declaration import StageError
from steersman.nodes.stages.expressions import Expressions

OBJECT: dict[str, Any] = {
    "a": {"b": [{"t": "x", "v": 1}, {"t": "y", "v": None}]},
    "s": "text",
    "yes": True,
    "n": [3, 1, 2.5, -1],
    "t": "2026-11-29T10:00:00Z",
    "o": {"k": "v", "z": [1, {"q": "w"}]},
    "status": {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "Initialized", "status": "False"}],
    },
    "metadata": {"annotations": {"x.y/z": "5"}, "ownerReferences": [{"kind": "Job"}]},
}
EXPRESSIONS = (Path(__file__).parent / "expressions.txt").read_text().splitlines()


def ours(source: str, obj: Any) -> list[Any] | None:
    """Return the results that are not null; None for an error."""
    expressions = Expressions()
    try:
        place = expressions.add(source)
    except StageError:
        return None
    return expressions.evaluate(json.dumps(obj))[place]


def of_jq(source: str) -> list[Any] | None:
    """Return the results of jq itself that are not null; None for an error."""
    try:
        found = jq.compile(f"def env: {{}}; {{}} as $ENV | {source}").input_value(OBJECT).all()
    except ValueError:
        return None
    return [each for each in found if each is not None]


@pytest.mark.parametrize("source", EXPRESSIONS)
def test_an_expression_has_the_results_of_jq(source: str) -> None:
    assert ours(source, OBJECT) == of_jq(source)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("[limit(2; repeat(.s)) | type]", [["object", "string"]]),
        ('"\\(.s)!"', ["text!"]),
        ("[.n[] | select(. > 1)]", [[3, 2.5]]),
        (".a = 1", None),
        (". as [$x] | $x", None),
        ('import "a" as a; .', None),
        ("halt", None),
        ("input", None),
        ("label $out | 1, break $out", None),
    ],
)
def test_the_language_is_that_of_kwok_without_assignments(source: str, found: list[Any] | None) -> None:
    assert ours(source, OBJECT) == found


LARGE = {"a": list(range(1000)), "s": "x" * 10_000, "o": {str(number): number for number in range(1000)}}


@pytest.mark.parametrize(
    "source",
    [
        "[range(1e9)] | length",
        "def f: f; f",
        "def f: [f]; f",
        "def f: f, f; f",
        "def f(g): f(f(g)); f(.)",
        "def f($x): f($x + 1); f(0)",
        "|".join(["(.,.)"] * 60),
        '"a" | ' + "|".join([". + ."] * 60),
        "[1] | " + "|".join(["[., .]"] * 60) + " | tojson",
        "[1] | " + "|".join(["[., .]"] * 58) + " | . == (. | map(.))",
        "reduce range(10000) as $i (0; [.]) | tojson",
        "until(false; .)",
        "[recurse([.])] | length",
        "last(range(1e12))",
        '"a" * 1e12',
        "[.a[] as $x | .a[] as $y | $x * $y] | add",
        "[.a[] | [range(1000)]]",
        '.s | gsub("x"; "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy")',
        "[.s, .s, .s] | join(.s)",
        "try error([range(1e9)]) catch .",
        "(" * 5000,
        "-" * 5000 + "1",
        '"' + "\\(" * 3000,
        ". as $x | " * 1500 + ".",
        "{a:" * 2000,
    ],
)
def test_what_would_take_for_ever_fails_soon(source: str) -> None:
    began = time.process_time()
    assert ours(source, LARGE) is None
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "source",
    ['.s | test("(x+x+)+y")', ".o | with_entries(.) | keys | length", "walk(.) | .a | length", "[paths] | length"],
)
def test_large_objects_are_evaluated(source: str) -> None:
    assert ours(source, LARGE) is not None
