"""Work on named things, tried again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from steersman.aggregator.work_queue import TryAgain, WorkQueue


class Work:
    """Counts what it is asked for; fails as often as it is told to."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.failures = 0
        self.again: float | None = None
        self.held: asyncio.Event | None = None
        self.at_once = self.most_at_once = 0
        self._came = asyncio.Condition()

    async def __call__(self, key: str) -> float | None:
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        try:
            if self.held is not None:
                await self.held.wait()
            async with self._came:
                self.done.append(key)
                self._came.notify_all()
            if self.failures:
                self.failures -= 1
                raise TryAgain("not yet")
            return self.again
        finally:
            self.at_once -= 1

    async def was_done(self, count: int) -> list[str]:
        async with asyncio.timeout(20), self._came:
            await self._came.wait_for(lambda: len(self.done) >= count)
        return self.done


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
async def queue(work: Work) -> AsyncIterator[WorkQueue]:
    queue = WorkQueue("test", work, workers=2, first=0.001, longest=0.004)
    yield queue
    await queue.stop()


async def test_nothing_is_done_before_it_begins(queue: WorkQueue, work: Work) -> None:
    queue.add("a")
    queue.add_after("b", 60)
    await asyncio.sleep(0)
    assert not work.done
    queue.start()
    assert sorted(await work.was_done(2)) == ["a", "b"]


async def test_what_fails_is_tried_again(queue: WorkQueue, work: Work) -> None:
    work.failures = 5
    queue.start()
    queue.add("a")
    assert await work.was_done(6) == ["a"] * 6
    await asyncio.sleep(0)
    assert not queue.has_failed("a")


async def test_what_is_to_be_done_again_is(queue: WorkQueue, work: Work) -> None:
    work.again = 0.0
    queue.start()
    queue.add("a")
    await work.was_done(3)
    queue.forget("a")
    work.again = None


async def test_a_key_is_worked_on_by_one_at_a_time_and_again_if_it_was_added_meanwhile(
    queue: WorkQueue, work: Work
) -> None:
    work.held = asyncio.Event()
    queue.start()
    for _ in range(5):
        queue.add("a")
        await asyncio.sleep(0)
    assert work.at_once == 1
    work.held.set()
    assert await work.was_done(2) == ["a", "a"]
    await asyncio.sleep(0.01)
    assert len(work.done) == 2


async def test_few_keys_are_worked_on_at_once(queue: WorkQueue, work: Work) -> None:
    queue.start()
    for key in "abcdefgh":
        queue.add(key)
    await work.was_done(8)
    assert work.most_at_once <= 2


async def test_the_end_stops_what_is_under_way(queue: WorkQueue, work: Work) -> None:
    work.held = asyncio.Event()
    queue.start()
    queue.add("a")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert work.at_once
    await queue.stop()
    assert not work.at_once
    queue.add("b")
    assert not work.done
