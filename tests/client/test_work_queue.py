"""What is to be done, each thing once."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

import uvloop

from steersman.client.work_queue import WorkQueue
from steersman.net.turns import SLICE


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


async def test_keys_are_seen_to_and_those_that_fail_again() -> None:
    queue: WorkQueue[str] = WorkQueue(base_delay=0)
    seen: list[str] = []
    failures: list[tuple[str, str]] = []

    async def see_to(key: str) -> None:
        seen.append(key)
        if seen.count("a") == 1:
            raise ValueError("not yet")

    queue.add("a")
    task = asyncio.create_task(queue.work(see_to, lambda key, error: failures.append((key, str(error)))))
    async with asyncio.timeout(20):
        while len(seen) < 2 or not queue.idle:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)
    assert (seen, failures, queue.retries("a")) == (["a", "a"], [("a", "not yet")], 0)
    task.cancel()
    assert (await asyncio.gather(task, return_exceptions=True))[0].__class__ is asyncio.CancelledError


async def test_work_ends_though_a_look_ends_with_an_error_while_it_is_cancelled() -> None:
    queue: WorkQueue[str] = WorkQueue()
    begun = asyncio.Event()

    async def see_to(key: str) -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            raise ValueError("what was to be put right cannot be")

    queue.add("a")
    task = asyncio.create_task(queue.work(see_to, lambda key, error: None))
    await begun.wait()
    task.cancel()
    async with asyncio.timeout(20):
        await asyncio.wait([task])
    queue.close()


async def test_keys_whose_looks_never_wait_share_a_slice_of_a_turn() -> None:
    queue: WorkQueue[int] = WorkQueue()
    for key in range(40):
        queue.add(key)
    turns: list[int] = []
    turn = 0

    async def see_to(key: int) -> None:
        end = time.monotonic() + SLICE / 2
        while time.monotonic() < end:
            pass
        turns.append(turn)

    queue.start(see_to, lambda key, error: None, name="keys", workers=10)
    while len(turns) < 40:
        turn += 1
        await asyncio.sleep(0)
    await queue.stop()
    assert max(Counter(turns).values()) <= 3
