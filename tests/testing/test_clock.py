"""A clock that tests advance."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from steersman.api.core.v1 import Container, Pod, PodSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.in_process import InProcessTransport
from steersman.client.resources import NODES, PODS
from steersman.machinery.values import times
from steersman.testing import Environment
from steersman.testing.clock import Clock
from steersman.work import upkeep


async def test_what_falls_due_happens_in_its_order_and_at_its_time() -> None:
    clock = Clock()
    loop = asyncio.get_running_loop()
    began, reported = loop.time(), list[tuple[str, int]]()

    async def tick(name: str, every: float) -> None:
        while True:
            await asyncio.sleep(every)
            reported.append((name, round(loop.time() - began)))

    tasks = [asyncio.create_task(tick("a", 40)), asyncio.create_task(tick("b", 60))]
    before = times.unix_now()
    await clock.advance(minutes=2)
    assert reported == [("a", 40), ("b", 60), ("a", 80), ("a", 120), ("b", 120)] or reported == [
        ("a", 40),
        ("b", 60),
        ("a", 80),
        ("b", 120),
        ("a", 120),
    ]
    assert 119 < times.unix_now() - before < 130
    for task in tasks:
        task.cancel()


async def test_rounds_of_upkeep_are_left_out_while_nothing_else_happens() -> None:
    clock = Clock()
    loop = asyncio.get_running_loop()
    began, reported = loop.time(), dict[str, list[int]]()

    async def tick(name: str, every: float, pause: Callable[[float], Awaitable[object]]) -> None:
        while True:
            await pause(every)
            reported.setdefault(name, []).append(round(loop.time() - began))

    tasks = [
        asyncio.create_task(tick("often", 10, upkeep.sleep)),
        asyncio.create_task(tick("seldom", 1800, upkeep.sleep)),
        asyncio.create_task(tick("job", 7200, asyncio.sleep)),
    ]
    await clock.advance(hours=4)
    assert reported["job"] == [7200, 14400]
    # few rounds per hour: some until everything is calm, and some before each event
    assert len(reported["often"]) < 40
    # a timer that is due in the skipped time runs once, before the end
    assert 2 <= len(reported["seldom"]) <= 6
    assert 14400 - reported["often"][-1] <= 10
    rounds = len(reported["often"])
    await clock.advance(hours=1)
    assert len(reported["often"]) - rounds < 15
    for task in tasks:
        task.cancel()


async def test_timers_of_upkeep_make_timers_of_their_own() -> None:
    found: list[bool] = []
    made = upkeep.call_later(asyncio.get_running_loop(), 0, lambda: found.append(upkeep.is_upkeep()))
    await asyncio.sleep(0.01)
    assert found == [False]
    assert not made.cancelled()


async def test_hours_of_a_cluster_cost_what_happens_in_them_and_a_node_is_lost_in_time_all_the_same() -> None:
    async with Environment(clock=True, nodes=2) as environment:
        clock, server, storage = environment.clock, environment.plane.server, environment.plane.storage
        assert server is not None
        assert storage is not None
        client = Client(InProcessTransport(server.handler, environment.token()), "tests")

        async def ready() -> list[str]:
            nodes = (await client.list(NODES)).items
            return [each.status for node in nodes for each in node.status.conditions if each.type == "Ready"]

        await clock.advance(minutes=5)
        before = storage.revision
        await clock.advance(hours=5)
        assert storage.revision - before < 400  # with all rounds of upkeep it would be 7,300
        assert await ready() == ["True", "True"]
        spec = PodSpec(node_name="node-0", containers=[Container(name="c", image="i")])
        await client.create(PODS, Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=spec))
        await clock.advance(hours=2)
        said = {"metadata": {"annotations": {"simulation.steersman.dev/unreachable": "true"}}}
        await client.patch(NODES, "node-0", "", said)
        await clock.advance(seconds=65)
        assert await ready() == ["Unknown", "True"]
        assert (await client.get(PODS, "p", "default")).metadata.deletion_timestamp is None
        await clock.advance(seconds=305)
        assert (await client.get(PODS, "p", "default")).metadata.deletion_timestamp is not None


async def test_timeouts_run_out_and_cancelled_waits_do_not_matter() -> None:
    clock = Clock()
    loop = asyncio.get_running_loop()
    loop.call_later(5, pytest.fail, "it was cancelled").cancel()
    waiting = asyncio.create_task(asyncio.wait_for(asyncio.Event().wait(), 30))
    await clock.advance(seconds=29)
    assert not waiting.done()
    await clock.advance(seconds=2)
    with pytest.raises(TimeoutError):
        await waiting


async def test_what_is_done_in_threads_is_waited_for() -> None:
    clock = Clock()
    done = asyncio.create_task(asyncio.to_thread(sum, range(100_000)))
    await clock.settle()
    assert done.done()


def test_a_loop_whose_time_cannot_be_moved_is_refused() -> None:
    loop = uvloop.new_event_loop()
    with pytest.raises(TypeError, match="cannot be moved"):
        Clock(loop)
    loop.close()


async def test_the_process_has_its_time_back_when_it_is_closed() -> None:
    before = times.unix_now()
    clock = Clock()
    await clock.advance(hours=1)
    assert clock.moved > 3500
    clock.close()
    clock.close()
    assert abs(times.unix_now() - before) < 60
    with pytest.raises(RuntimeError, match="closed"):
        await clock.advance(seconds=1)
