"""Order of faults, and the points that they fit."""

from __future__ import annotations

import pytest

from steersman.stress.planning import fits, planned
from steersman.stress.point import Kind, Point
from steersman.stress.tap import Seen


def seen(verb: str, resource: str = "configmaps", name: str = "a", code: int = 200, **rest: object) -> Seen:
    event = str(rest.pop("event", ""))
    return Seen(
        Point("c", verb, resource, "default", name, event), code, has_version=bool(rest.pop("has_version", False))
    )


def test_each_combination_comes_once_before_any_comes_again() -> None:
    run = [seen("create", name="a", code=201), seen("create", name="b", code=201), seen("update", name="a")]
    found = planned([run], [Kind.LOST, Kind.CRASH_AFTER])
    assert list(map(str, found)) == [
        "crash-after at update configmaps default/a",
        "crash-after at create configmaps default/a",
        "lost at update configmaps default/a",
        "lost at create configmaps default/a",
        "crash-after at create configmaps default/b",
        "lost at create configmaps default/b",
    ]


def test_deletions_come_first_and_then_what_a_run_has_once() -> None:
    often = [seen("update", "services", name=name) for name in "ab"]
    once = seen("create", "secrets", code=201)
    deleted = [seen("delete", "pods", name=name) for name in "ab"]
    found = planned([[*often, once, *deleted]], [Kind.CRASH_AFTER])
    assert [f"{each.at.verb} {each.at.name}" for each in found] == [
        "delete a",
        "create a",
        "update a",
        "delete b",
        "update b",
    ]
    events = [seen("watch", event=event) for event in ("ADDED", "DELETED")]
    assert [each.at.event for each in planned([events], [Kind.EXPIRED])] == ["DELETED", "ADDED"]


def test_points_that_not_all_runs_have_come_last() -> None:
    rare, common = seen("create", name="a", code=201), seen("create", name="b", code=201)
    found = planned([[rare, common], [common]], [Kind.LOST])
    assert [each.at.name for each in found] == ["b", "a"]


def test_only_chosen_clients_are_hit() -> None:
    assert planned([[seen("delete")]], [Kind.LOST], ["other"]) == []
    assert len(planned([[seen("delete")]], [Kind.LOST], ["c"])) == 1


@pytest.mark.parametrize(
    ("point", "kinds"),
    [
        (seen("get", code=404), {Kind.ERROR, Kind.THROTTLED, Kind.UNAVAILABLE}),
        (seen("create", code=409), {Kind.ERROR, Kind.THROTTLED, Kind.UNAVAILABLE}),
        (seen("watch", event="ADDED"), {Kind.STALE, Kind.EXPIRED, Kind.CLOSED}),
        (seen("update"), set(Kind) - {Kind.CONFLICT, Kind.STALE, Kind.EXPIRED, Kind.CLOSED}),
        (seen("update", has_version=True), set(Kind) - {Kind.STALE, Kind.EXPIRED, Kind.CLOSED}),
        (seen("create", code=201), set(Kind) - {Kind.STALE, Kind.EXPIRED, Kind.CLOSED}),
        (seen("create", "pods/eviction", code=201), set(Kind) - {Kind.CONFLICT, Kind.STALE, Kind.EXPIRED, Kind.CLOSED}),
    ],
)
def test_faults_fit_the_points_at_which_a_server_may_let_them_happen(point: Seen, kinds: set[Kind]) -> None:
    assert {kind for kind in Kind if fits(kind, point)} == kinds
