"""Preemption: pods are deleted for pods of a higher priority."""

from __future__ import annotations

from steersman.api.policy.v1 import PodDisruptionBudget
from steersman.client.resources import POD_DISRUPTION_BUDGETS, PODS
from steersman.machinery.codec.serializer import from_plain
from tests.scheduler.scene import Scene, make_priorities, wait_for


async def deleted(scene: Scene, name: str) -> bool:
    return bool((await scene.get(name)).metadata.deletion_timestamp)


async def test_a_pod_of_low_priority_makes_room(scene: Scene) -> None:
    await make_priorities(scene)
    await scene.node("n")
    await scene.pod("old", cpu="2", priorityClassName="low")
    assert await scene.wait_for_node("old") == "n"
    await scene.pod("new", cpu="1", priorityClassName="high")
    assert await scene.wait_for_nomination("new") == "n"
    await wait_for(lambda: deleted(scene, "old"))
    assert (await scene.wait_for_refusal("new")).message == "0/1 nodes are available: 1 Insufficient cpu."
    old, new = await scene.get("old"), await scene.get("new")
    target = next(each for each in old.status.conditions if each.type == "DisruptionTarget")
    assert (target.status, target.reason) == ("True", "PreemptionByScheduler")
    assert target.message == "default-scheduler: preempting to accommodate a higher priority pod"
    note = f"Preempted by pod {new.metadata.uid} on node n"
    assert await scene.wait_for_event("old", "Preempted") == note
    await scene.delete("old")
    assert await scene.wait_for_node("new") == "n"


async def test_a_pod_that_must_not_preempt_waits(scene: Scene) -> None:
    await make_priorities(scene)
    await scene.node("n")
    await scene.pod("old", cpu="2", priorityClassName="low")
    await scene.wait_for_node("old")
    await scene.pod("new", cpu="1", priorityClassName="patient")
    assert (await scene.wait_for_refusal("new")).message == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: not eligible due to preemptionPolicy=Never."
    )


async def test_a_pod_that_a_budget_protects_goes_last(scene: Scene) -> None:
    await make_priorities(scene)
    for name in ("a", "b"):
        await scene.node(name)
        selector = {"kubernetes.io/hostname": name}
        await scene.pod(f"on-{name}", cpu="2", priorityClassName="low", nodeSelector=selector, labels={"on": name})
        await scene.wait_for_node(f"on-{name}")
    plain = {
        "metadata": {"name": "budget", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"on": "a"}}},
    }
    await scene.client.create(POD_DISRUPTION_BUDGETS, from_plain(PodDisruptionBudget, plain))
    await scene.pod("new", cpu="1", priorityClassName="high")
    assert await scene.wait_for_nomination("new") == "b"


async def test_the_room_that_was_made_is_kept(scene: Scene) -> None:
    await make_priorities(scene)
    await scene.node("n")
    await scene.pod("old", cpu="2", priorityClassName="low")
    await scene.wait_for_node("old")
    await scene.pod("new", cpu="2", priorityClassName="high")
    assert await scene.wait_for_nomination("new") == "n"
    await scene.pod("other", cpu="2", priorityClassName="low")
    await scene.wait_for_refusal("other")
    await scene.delete("old")
    assert await scene.wait_for_node("new") == "n"
    assert (await scene.get("other")).spec.node_name == ""
    await scene.client.patch(PODS, "other", "default", {"metadata": {"labels": {"a": "b"}}})
    assert (await scene.get("other")).spec.node_name == ""
