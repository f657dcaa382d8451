"""Decisions of the scheduler: nodes for pods, and reasons for pods without one."""

from __future__ import annotations

from steersman.client.resources import NODES, PODS
from tests.scheduler.scene import Scene, wait_for


async def test_a_pod_gets_the_node_with_most_room(scene: Scene) -> None:
    await scene.node("small", allocatable={"cpu": "1"})
    await scene.node("large", allocatable={"cpu": "8", "memory": "16Gi"})
    await scene.pod("a", cpu="500m", memory="1Gi")
    assert await scene.wait_for_node("a") == "large"
    assert await scene.wait_for_event("a", "Scheduled") == "Successfully assigned default/a to large"


async def test_a_pod_that_fits_nowhere_gets_the_reason_and_later_a_new_node(scene: Scene) -> None:
    for name in ("a", "b"):
        await scene.node(name)
    await scene.node("c", unschedulable=True)
    await scene.node("d", taints=[{"key": "k", "effect": "NoSchedule"}])
    await scene.pod("big", cpu="4")
    condition = await scene.wait_for_refusal("big")
    assert (condition.reason, condition.observed_generation) == ("Unschedulable", 1)
    assert condition.message == (
        "0/4 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, "
        "2 Insufficient cpu. "
        "no new claims to deallocate, preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling."
    )
    assert await scene.wait_for_event("big", "FailedScheduling") == condition.message
    await scene.node("e", allocatable={"cpu": "8"})
    assert await scene.wait_for_node("big") == "e"


async def test_without_nodes_pods_wait(scene: Scene) -> None:
    await scene.pod("a")
    assert (await scene.wait_for_refusal("a")).message == "no nodes available to schedule pods"
    await scene.node("n")
    assert await scene.wait_for_node("a") == "n"


async def test_a_gated_pod_is_not_tried(scene: Scene) -> None:
    await scene.node("n")
    await scene.pod("gated", schedulingGates=[{"name": "example.com/gate"}])
    await scene.pod("other")
    await scene.wait_for_node("other")
    assert (await scene.wait_for_refusal("gated")).reason == "SchedulingGated"
    await scene.client.patch(PODS, "gated", "default", {"spec": {"schedulingGates": None}})
    assert await scene.wait_for_node("gated") == "n"


async def test_pods_of_other_schedulers_are_left_alone(scene: Scene) -> None:
    await scene.node("n")
    await scene.pod("other", schedulerName="mine")
    await scene.pod("a")
    await scene.wait_for_node("a")
    assert (await scene.get("other")).spec.node_name == ""
    assert len(scene.scheduler.queue) == 0


async def test_a_pod_waits_for_room_that_another_leaves(scene: Scene) -> None:
    await scene.node("n")
    await scene.pod("first", cpu="2")
    await scene.wait_for_node("first")
    await scene.pod("second", cpu="2")
    assert "1 No preemption victims found for incoming pod" in (await scene.wait_for_refusal("second")).message
    await scene.delete("first")
    assert await scene.wait_for_node("second") == "n"


async def test_a_pod_waits_for_a_taint_to_go(scene: Scene) -> None:
    await scene.node("n", taints=[{"key": "k", "effect": "NoSchedule"}])
    await scene.pod("a")
    assert "untolerated taint(s)" in (await scene.wait_for_refusal("a")).message
    await scene.client.patch(NODES, "n", "", {"spec": {"taints": None}})
    assert await scene.wait_for_node("a") == "n"


async def test_a_pod_that_is_deleted_leaves_nothing(scene: Scene) -> None:
    await scene.pod("a")
    await scene.wait_for_refusal("a")
    await scene.delete("a")

    async def empty() -> bool:
        return not len(scene.scheduler.queue)

    await wait_for(empty)
