"""Time that a test moves."""

from __future__ import annotations

import asyncio

import pytest
import uvloop

from steersman.machinery.values import times
from steersman.testing.clock import Clock


async def test_what_falls_due_happens_in_its_order_and_at_its_time() -> None:
    clock = Clock()
    loop = asyncio.get_running_loop()
    began, told = loop.time(), list[tuple[str, int]]()

    async def tick(name: str, every: float) -> None:
        while True:
            await asyncio.sleep(every)
            told.append((name, round(loop.time() - began)))

    tasks = [asyncio.create_task(tick("a", 40)), asyncio.create_task(tick("b", 60))]
    before = times.moment()
    await clock.advance(minutes=2)
    assert told == [("a", 40), ("b", 60), ("a", 80), ("a", 120), ("b", 120)] or told == [
        ("a", 40), ("b", 60), ("a", 80), ("b", 120), ("a", 120)
    ]  # fmt: skip
    assert 119 < times.moment() - before < 130
    for task in tasks:
        task.cancel()


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
    before = times.moment()
    clock = Clock()
    await clock.advance(hours=1)
    assert clock.moved > 3500
    clock.close()
    clock.close()
    assert abs(times.moment() - before) < 60
    with pytest.raises(RuntimeError, match="closed"):
        await clock.advance(seconds=1)
