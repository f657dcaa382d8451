"""Conditions of statuses."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import steersman
from steersman.api.core.v1 import PodCondition
from steersman.machinery.values import conditions, times

SOURCE: Final = Path(steersman.__file__).parent
ANY_OF_A_TYPE: Final = {"registry/batch/job_status_validation.py"}
"""Files in which any condition of a type counts, as upstream, and not the first."""
OLD = "2020-01-01T00:00:00Z"


def of(type_: str, status: str, time: str | None = OLD, reason: str = "") -> PodCondition:
    return PodCondition(type=type_, status=status, last_transition_time=time, reason=reason)


def test_the_time_changes_with_the_status_only() -> None:
    before = [of("Ready", "False"), of("Other", "True")]
    same = conditions.with_condition(before, of("Ready", "False", None, "New"))
    assert [(each.type, each.reason, each.last_transition_time) for each in same] == [
        ("Ready", "New", OLD),
        ("Other", "", OLD),
    ]
    changed = conditions.with_condition(before, of("Ready", "True", None))
    assert times.parse(changed[0].last_transition_time or "").year > 2020
    assert [each.status for each in before] == ["False", "True"]


def test_a_new_condition_stands_at_the_end_with_its_own_time() -> None:
    (first, last) = conditions.with_condition([of("Ready", "False")], of("Other", "True", "2021-01-01T00:00:00Z"))
    assert (first.type, last.type, last.last_transition_time) == ("Ready", "Other", "2021-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("given", "expected"), [([], False), ([of("Ready", "Unknown")], False), ([of("Ready", "True")], True)]
)
def test_a_condition_is_true_if_it_says_so(given: list[PodCondition], expected: bool) -> None:
    assert conditions.is_condition_true(given, "Ready") is expected
    assert conditions.without_conditions(given, "Ready") == []


def looked_for_by_hand(source: str) -> Iterator[int]:
    """Yield the lines where the first condition of a type is looked for, or one that is True."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.GeneratorExp) or not ast.unparse(node.generators[0].iter).endswith("conditions"):
            continue
        judged = ast.unparse(node.elt), *map(ast.unparse, node.generators[0].ifs)
        is_found = (
            judged[0] == "each" and judged[1:] and judged[1].startswith("each.type == ") and " or " not in judged[1]
        )
        is_true = judged[0].startswith("each.type == ") and judged[0].endswith(" and each.status == 'True'")
        if is_found or is_true:
            yield node.lineno


def test_conditions_are_looked_for_in_one_way() -> None:
    assert list(looked_for_by_hand("next((each for each in a.conditions if each.type == 'Ready'), None)")) == [1]
    assert list(looked_for_by_hand("any(each.type == 'a' and each.status == 'True' for each in conditions)")) == [1]
    found = {
        str(path.relative_to(SOURCE)): lines
        for path in SOURCE.rglob("*.py")
        if "each.type == " in (source := path.read_text()) and (lines := list(looked_for_by_hand(source)))
    }
    assert found.keys() == ANY_OF_A_TYPE
