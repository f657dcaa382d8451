"""The last decisions about pods are kept, within bounds."""

from __future__ import annotations

from steersman.api.core.v1 import Pod
from steersman.api.meta.v1 import ObjectMeta
from steersman.machinery.values.times import advance
from steersman.scheduler.cycle import NoPlacement
from steersman.scheduler.decisions import LINGER, MOST_DECISIONS, Decision, Decisions, RejectedNodes, TriedPreemption
from steersman.scheduler.fit.status import Diagnosis, Rejection
from tests.scheduler.scene import Scene, make_priorities, wait_for


def pod(name: str, uid: str = "1") -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace="default", uid=uid))


def refusal(reason: str) -> NoPlacement:
    diagnosis = Diagnosis(2, before=Rejection("Plugin", (reason,)))
    return NoPlacement(diagnosis.message(), diagnosis=diagnosis)


def results(decisions: Decisions, name: str) -> list[str]:
    return [each.result for each in decisions.of("default", name)]


async def test_decisions_about_a_pod_are_kept_from_the_first_to_its_node(scene: Scene) -> None:
    await make_priorities(scene)
    await scene.node("n")
    await scene.node("tainted", taints=[{"key": "gpu", "effect": "NoSchedule"}])
    await scene.pod("old", cpu="2", priorityClassName="low")
    await scene.wait_for_node("old")
    await scene.pod("new", cpu="1", priorityClassName="high")
    await scene.wait_for_nomination("new")
    found = scene.scheduler.decisions.of("default", "new")
    assert found[0].result == "Unschedulable"
    assert found[0].message == (await scene.wait_for_refusal("new")).message
    assert found[0].rejections == (
        RejectedNodes("NodeResourcesFit", "Insufficient cpu", 1),
        RejectedNodes("TaintToleration", "node(s) had untolerated taint(s)", 1),
    )
    assert found[0].preemption == TriedPreemption("n", ("default/old",))
    await scene.delete("old")
    await scene.wait_for_node("new")
    last = scene.scheduler.decisions.of("default", "new")[-1]
    assert (last.result, last.node) == ("Scheduled", "n")
    assert last.time >= found[0].time


async def test_the_reason_for_no_preemption_is_kept(scene: Scene) -> None:
    await scene.node("n")
    await scene.pod("big", cpu="3")
    await scene.wait_for_refusal("big")

    async def kept() -> list[Decision]:
        return list(scene.scheduler.decisions.of("default", "big"))

    (found,) = await wait_for(kept)
    assert found.preemption is not None
    assert found.preemption.refused.endswith("1 Preemption is not helpful for scheduling.")


def test_equal_decisions_in_a_row_count_as_one() -> None:
    decisions = Decisions()
    for reason in ("a", "a", "a", "b", "a"):
        decisions.failed(pod("x"), refusal(reason), "Unschedulable")
    found = decisions.of("default", "x")
    assert [(each.rejections[0].reason, each.count) for each in found] == [("a", 3), ("b", 1), ("a", 1)]
    assert found[0].first_time
    assert not found[1].first_time


def test_a_pod_has_the_newest_few() -> None:
    decisions = Decisions()
    for number in range(20):
        decisions.placed(pod("x"), f"node-{number}")
    nodes = [each.node for each in decisions.of("default", "x")]
    assert nodes == [f"node-{number}" for number in range(20 - MOST_DECISIONS, 20)]


def test_a_new_pod_of_the_same_name_begins_anew() -> None:
    decisions = Decisions()
    decisions.placed(pod("x", "1"), "a")
    decisions.gone(pod("x", "1"))
    decisions.failed(pod("x", "2"), refusal("r"), "Unschedulable")
    decisions.gone(pod("x", "1"))
    assert results(decisions, "x") == ["Unschedulable"]


def test_decisions_about_a_pod_that_is_gone_are_kept_for_a_while() -> None:
    decisions = Decisions()
    decisions.placed(pod("x"), "a")
    decisions.gone(pod("x"))
    assert results(decisions, "x") == ["Scheduled"]
    advance(LINGER + 1)
    try:
        assert results(decisions, "x") == []
    finally:
        advance(-LINGER - 1)


def test_pods_and_bytes_are_bounded() -> None:
    decisions = Decisions(100, 100_000)
    for number in range(500):
        decisions.failed(pod(f"a{number}"), refusal(f"{number} " + "x" * 10_000), "Unschedulable")
        assert decisions.pods <= 100
        assert decisions.weight <= 100_000
    assert results(decisions, "a499") == ["Unschedulable"]
    assert results(decisions, "a0") == []
    assert len(decisions.of("default", "a499")[0].message) < 3_000


def test_a_decision_names_a_bounded_number_of_reasons() -> None:
    rejection = Rejection("NodeResourcesFit", tuple(f"Insufficient example.com/{number}" for number in range(5_000)))
    diagnosis = Diagnosis(1, before=rejection)
    decisions = Decisions()
    decisions.failed(pod("x"), NoPlacement(diagnosis.message(), diagnosis=diagnosis), "Unschedulable")
    (found,) = decisions.of("default", "x")
    assert len(found.rejections) == 32
