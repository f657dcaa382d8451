"""What is to be done, each thing once."""

from __future__ import annotations

import asyncio

import uvloop

from steersman.client.work_queue import WorkQueue


async def test_a_key_waits_once_and_is_not_worked_on_twice_at_the_same_time() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.add("a")
    queue.add("b")
    assert await queue.get() == "a"
    queue.add("a")
    assert await queue.get() == "b"
    assert len(queue) == 0
    queue.done("a")
    assert await queue.get() == "a"
    queue.done("a")
    queue.done("b")
    assert queue.idle


async def test_who_waits_is_woken_and_who_has_left_is_not() -> None:
    queue: WorkQueue[str] = WorkQueue()
    leaving = asyncio.ensure_future(queue.get())
    staying = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    leaving.cancel()
    assert await staying == "a"
    assert leaving.cancelled()


async def test_what_is_due_later_is_due_once_at_the_earliest_time() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 1000)
    queue.add_after("a", 0.001)
    queue.add_after("a", 500)
    async with asyncio.timeout(20):
        assert await queue.get() == "a"
    assert not queue._timers
    queue.close()


def test_what_is_due_later_is_due_on_the_loop_of_servers_too() -> None:
    async def add_twice() -> str:
        queue: WorkQueue[str] = WorkQueue()
        for seconds in (1000, 0.0001, 2000):  # at so short a wait uvloop makes another kind of handle
            queue.add_after("a", seconds)
        async with asyncio.timeout(20):
            return await queue.get()

    assert uvloop.run(add_twice()) == "a"


async def test_waits_grow_with_failures_until_they_are_forgotten() -> None:
    queue: WorkQueue[str] = WorkQueue(base_delay=1000, max_delay=3000)
    loop = asyncio.get_running_loop()
    waits = []
    for _ in range(3):
        queue.retry("a")
        due, _ = queue._timers.pop("a")
        waits.append(round(due - loop.time(), -2))
    assert waits == [1000, 2000, 3000]
    assert queue.retries("a") == 3
    queue.forget("a")
    assert queue.retries("a") == 0
