"""Order of the scheduling queue, and the events that move pods back into it."""

from __future__ import annotations

import asyncio
from typing import Any

from steersman.api.core.v1 import Node, Pod
from steersman.machinery.codec.serializer import from_plain
from steersman.scheduler.fit.status import NODE_RESOURCES_FIT, TAINT_TOLERATION
from steersman.scheduler.queue.cluster_events import Action, ClusterEvent
from steersman.scheduler.queue.scheduling_queue import QueuedPod, SchedulingQueue
from steersman.testing.clock import Clock
from tests.scheduler.scene import node_of, pod_of


def queue_of() -> SchedulingQueue:
    return SchedulingQueue(lambda _: {}, lambda _: "")


def pod(name: str, priority: int = 0, **spec: Any) -> Pod:
    plain = pod_of(name, priority=priority, **spec)
    plain["metadata"]["uid"] = name
    return from_plain(Pod, plain)


async def pop_name(queue: SchedulingQueue) -> str:
    """Return the name of the next pod, or "" if none is ready."""
    try:
        async with asyncio.timeout(0):
            return (await queue.pop()).pod.metadata.name
    except TimeoutError:
        return ""


async def refuse_next(queue: SchedulingQueue, *plugins: str) -> QueuedPod:
    """Pop the next pod and put it back as unschedulable."""
    queued = await queue.pop()
    queued.plugins = frozenset(plugins)
    queue.add_unschedulable(queued, queued.pod)
    return queued


def node_added(**node: Any) -> ClusterEvent:
    return ClusterEvent("nodes", Action.ADD, None, from_plain(Node, node_of("n", **node)))


async def test_the_highest_priority_is_first_then_who_came_first() -> None:
    queue = queue_of()
    for name, priority in (("a", 0), ("b", 5), ("c", 0), ("d", 5)):
        queue.add(pod(name, priority))
    assert [await pop_name(queue) for _ in range(5)] == ["b", "d", "a", "c", ""]


async def test_a_pod_comes_back_only_for_what_may_help_it() -> None:
    queue = queue_of()
    queue.add(pod("a", cpu="4"))
    await refuse_next(queue, NODE_RESOURCES_FIT)
    queue.move_all(node_added(allocatable={"cpu": "2"}))
    assert await pop_name(queue) == ""
    queue.move_all(node_added(allocatable={"cpu": "8"}))
    assert await pop_name(queue) == "a"
    queue.close()


async def test_what_happens_while_a_pod_is_tried_counts() -> None:
    queue = queue_of()
    queue.add(pod("a", cpu="4"))
    queued = await queue.pop()
    queue.move_all(node_added(allocatable={"cpu": "8"}))
    queued.plugins = frozenset({NODE_RESOURCES_FIT})
    queue.add_unschedulable(queued, queued.pod)
    assert await pop_name(queue) == "a"
    queue.close()


async def test_a_backoff_is_shortened_if_no_other_pod_waits() -> None:
    clock = Clock()
    queue = queue_of()
    queue.add(pod("a"))
    await refuse_next(queue, TAINT_TOLERATION)
    queue.move_all(node_added())
    queue.add(pod("b"))
    assert [await pop_name(queue), await pop_name(queue)] == ["b", "a"]
    queue.close()
    await clock.advance(seconds=1)


async def test_errors_are_tried_again_after_growing_waits() -> None:
    clock = Clock()
    queue = queue_of()
    queue.add(pod("a"))
    queued = await queue.pop()
    waited = []
    for _ in range(5):
        queue.add_unschedulable(queued, queued.pod)
        seconds = 0
        while not await pop_name(queue):
            await clock.advance(seconds=1)
            seconds += 1
        waited.append(seconds)
    queue.close()
    assert waited == sorted(waited)
    assert waited[0] <= 2 < waited[2]
    assert 9 <= waited[-1] <= 12


async def test_a_pod_that_nothing_helped_is_tried_again_after_minutes() -> None:
    clock = Clock()
    queue = queue_of()
    queue.add(pod("a"))
    await refuse_next(queue, TAINT_TOLERATION)
    await clock.advance(seconds=290)
    assert await pop_name(queue) == ""
    await clock.advance(seconds=60)
    assert await pop_name(queue) == "a"
    queue.close()


async def test_a_gated_pod_is_kept_until_its_gates_are_gone() -> None:
    queue = queue_of()
    gated = pod("a", schedulingGates=[{"name": "example.com/gate"}])
    queue.add(gated)
    assert await pop_name(queue) == ""
    queue.move_all(node_added())
    assert await pop_name(queue) == ""
    queue.update(gated, pod("a"))
    assert await pop_name(queue) == "a"


async def test_deleted_pods_leave_wherever_they_are() -> None:
    queue = queue_of()
    for name in ("a", "b"):
        queue.add(pod(name))
    queue.delete("a")
    queued = await queue.pop()
    assert queued.pod.metadata.name == "b"
    queue.delete("b")
    queued.plugins = frozenset({TAINT_TOLERATION})
    queue.add_unschedulable(queued, queued.pod)
    assert len(queue) == 0
