"""Expressions come to what the reference implementation makes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cel.cel_sample import outcome

RECORDED: list[dict[str, Any]] = [
    json.loads(line)
    for line in Path(__file__).with_name("recorded_expressions.jsonl").read_text("utf-8").split("\n")
    if line
]


def sort_of(recorded: dict[str, Any]) -> str:
    if "error" not in recorded:
        return "fails" if "fails" in recorded else "value"
    return "syntax" if "Syntax error" in recorded["error"] else "check"


@pytest.mark.parametrize("sort", ["syntax", "check", "fails", "value"])
def test_expressions_come_to_what_was_recorded(sort: str) -> None:
    cases = [recorded for recorded in RECORDED if sort_of(recorded) == sort]
    assert len(cases) > 50
    wrong = {}
    for case in cases:
        text = case["expression"]
        found = {"expression": text, **outcome(text)}
        if found != case:
            wrong[text] = (case, found)
    assert not wrong
