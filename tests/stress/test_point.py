"""Points, and plans as files."""

from __future__ import annotations

from pathlib import Path

import pytest

from steersman.stress.point import InvalidPlan, Kind, Plan, PlannedFault, Point, read_plan

CREATE = Point("manager", "create", "configmaps", "default", "a")
EVENT = Point("manager", "watch", "pods", "default", "web-*", "DELETED", 2)


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    plan = Plan([PlannedFault(Kind.CRASH_AFTER, CREATE), PlannedFault(Kind.STALE, EVENT)])
    file = tmp_path / "plan.yaml"
    file.write_bytes(b"# a comment\n" + plan.encoded())
    assert read_plan(file) == plan


def test_points_are_named_for_people() -> None:
    assert str(PlannedFault(Kind.LOST, CREATE)) == "lost at create configmaps default/a"
    assert str(PlannedFault(Kind.STALE, EVENT)) == "stale at DELETED pods default/web-* (2nd)"
    assert str(Point("c", "delete", "nodes", nth=11)) == "delete nodes (11th)"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "a plan is one document"),
        ("faults: []", "faults: between 1 and 100 are needed"),
        ("faults: [{kind: crash, at: {client: a, verb: get, resource: pods}}]", "kind"),
        ("faults: [{kind: lost, at: {client: a, verb: get, resource: pods, nr: 1}}]", "nr"),
        ("{", "plan.yaml"),
    ],
)
def test_a_file_that_is_no_plan_is_refused(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(text)
    with pytest.raises(InvalidPlan) as refused:
        read_plan(file)
    assert why in str(refused.value)
