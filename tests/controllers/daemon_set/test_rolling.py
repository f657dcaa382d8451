"""Tests of the next step of a rolling update."""

from __future__ import annotations

from steersman.api.apps.v1 import DaemonSet, DaemonSetSpec, DaemonSetUpdateStrategy, RollingUpdateDaemonSet
from steersman.api.core.v1 import Pod, PodCondition
from steersman.api.meta.v1 import ObjectMeta
from steersman.controllers.daemon_set.rolling import next_change

NODES = ("a", "b", "c", "d")


def daemon_set(surge: int | str, unavailable: int | str) -> DaemonSet:
    rolling = RollingUpdateDaemonSet(max_surge=surge, max_unavailable=unavailable)
    return DaemonSet(
        spec=DaemonSetSpec(update_strategy=DaemonSetUpdateStrategy(type="RollingUpdate", rolling_update=rolling))
    )


def pod(name: str, revision: str = "old", *, serves: bool = True, goes: bool = False) -> Pod:
    found = Pod(metadata=ObjectMeta(name=name, labels={"controller-revision-hash": revision}))
    found.metadata.deletion_timestamp = "2024-01-01T00:00:00Z" if goes else None
    found.status.conditions = [PodCondition(type="Ready", status="True" if serves else "False")]
    return found


def planned_change(surge: int | str, unavailable: int | str, **on_nodes: list[Pod]) -> tuple[list[str], list[str]]:
    found = next_change(daemon_set(surge, unavailable), on_nodes, set(NODES), "new", 0)
    return found.nodes, [each.metadata.name for each in found.pods]


def test_as_many_go_as_may_be_missing() -> None:
    old = {name: [pod(name)] for name in NODES}
    assert planned_change(0, 1, **old) == ([], ["a"])
    assert planned_change(0, "50%", **old) == ([], ["a", "b"])
    assert planned_change(0, 0, **old) == ([], ["a"])


def test_those_that_are_missing_already_count_and_those_that_do_not_serve_go_first() -> None:
    on_nodes = {"a": [pod("a", "new", serves=False)], "b": [pod("b")], "c": [pod("c", serves=False)], "d": [pod("d")]}
    assert planned_change(0, 2, **on_nodes) == ([], ["c"])
    assert planned_change(0, 3, **on_nodes) == ([], ["c", "b"])
    assert planned_change(0, 1, **{**on_nodes, "d": [pod("d", goes=True)]}) == ([], ["c"])


def test_with_surge_old_pods_go_when_the_new_one_beside_them_serves() -> None:
    on_nodes = {
        "a": [pod("a"), pod("a new", "new")],
        "b": [pod("b"), pod("b new", "new", serves=False)],
        "c": [pod("c")],
        "d": [pod("d", serves=False)],
    }
    assert planned_change(2, 0, **on_nodes) == (["d", "c"], ["a"])
    assert planned_change(1, 0, **on_nodes) == (["d"], ["a"])


def test_old_pods_on_nodes_that_suit_no_more_go_when_enough_others_serve() -> None:
    on_nodes = {**{name: [pod(name, "new")] for name in NODES}, "gone": [pod("old")]}
    assert planned_change(1, 0, **on_nodes) == ([], ["old"])
    on_nodes["a"] = [pod("a", "new", serves=False)]
    assert planned_change(1, 0, **on_nodes) == ([], [])
