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
        ("faults: [{kind: lost, at: {client: a, verb: patch, resource: pods, nth: 0}}]", "faults[0].at.nth: 0 is less"),
        (
            "faults: [{kind: lost, at: {client: a, verb: get, resource: pods}}]",
            "faults[0]: lost cannot happen at the verb 'get'",
        ),
        ("faults: [{kind: error, at: {client: a, verb: fly, resource: pods}}]", "cannot happen at the verb 'fly'"),
        ("faults: [{kind: stale, at: {client: a, verb: watch, resource: pods}}]", "cannot happen at the verb 'watch'"),
        (
            "faults: [{kind: stale, at: {client: a, verb: watch, resource: pods, event: CHANGED}}]",
            "cannot happen at the event 'CHANGED'",
        ),
        (
            "faults: [{kind: crash-after, at: {client: a, verb: watch, resource: pods, event: ADDED}}]",
            "crash-after cannot happen at the event 'ADDED'",
        ),
    ],
)
def test_a_file_that_is_no_plan_is_refused(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(text)
    with pytest.raises(InvalidPlan) as refused:
        read_plan(file)
    assert why in str(refused.value)
