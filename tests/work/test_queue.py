"""Work queues reconcile each key once at a time, again after a failure, and later on request."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator

import pytest
import uvloop

from steersman.testing.clock import Clock
from steersman.work import offloading, work_queue
from steersman.work.work_queue import SLICE, TryLater, WorkQueue, WorkQueues


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
    await queue.stop()


def test_what_is_due_later_is_due_on_the_loop_of_servers_too() -> None:
    async def add_twice() -> str:
        queue: WorkQueue[str] = WorkQueue()
        for seconds in (1000, 0.0001, 2000):  # for such short delays uvloop uses another kind of handle
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


async def test_keys_are_reconciled_and_failed_ones_retried() -> None:
    queue: WorkQueue[str] = WorkQueue(base_delay=0)
    seen: list[str] = []
    failures: list[tuple[str, str]] = []

    async def reconcile(key: str) -> None:
        seen.append(key)
        if seen.count("a") == 1:
            raise ValueError("not yet")

    queue.add("a")
    queue.start(reconcile, lambda key, error: failures.append((key, str(error))), name="keys", workers=1)
    async with asyncio.timeout(20):
        while len(seen) < 2:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)
        await queue.wait_until_idle()
    assert (seen, failures, queue.retries("a")) == (["a", "a"], [("a", "not yet")], 0)
    await queue.stop()


async def test_work_ends_though_a_reconcile_fails_while_it_is_cancelled() -> None:
    queue: WorkQueue[str] = WorkQueue()
    begun = asyncio.Event()

    async def reconcile(key: str) -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            raise ValueError("what was to be put right cannot be")

    queue.add("a")
    queue.start(reconcile, lambda key, error: None, name="keys", workers=1)
    await begun.wait()
    async with asyncio.timeout(20):
        await queue.stop()


async def test_reconciles_that_never_wait_share_a_slice_of_an_iteration() -> None:
    queue: WorkQueue[int] = WorkQueue()
    for key in range(40):
        queue.add(key)
    turns: list[int] = []
    turn = 0

    async def reconcile(key: int) -> None:
        end = time.monotonic() + SLICE / 2
        while time.monotonic() < end:
            pass
        turns.append(turn)

    queue.start(reconcile, lambda key, error: None, name="keys", workers=10)
    while len(turns) < 40:
        turn += 1
        await asyncio.sleep(0)
    await queue.stop()
    assert max(Counter(turns).values()) <= 3


class Work:
    """Counts the keys it is called with, and fails as often as configured."""

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
                raise TryLater("not yet")
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
async def queue() -> AsyncIterator[WorkQueue[str]]:
    queue: WorkQueue[str] = WorkQueue(base_delay=0.001, max_delay=0.004)
    yield queue
    await queue.stop()


def start(queue: WorkQueue[str], work: Work) -> None:
    queue.start(work, name="test", workers=2)


async def test_nothing_is_done_before_the_start(queue: WorkQueue[str], work: Work) -> None:
    queue.add("a")
    queue.add_after("b", 0.001)
    await asyncio.sleep(0)
    assert not work.done
    start(queue, work)
    assert sorted(await work.was_done(2)) == ["a", "b"]


async def test_a_key_that_fails_is_tried_again_and_its_failures_are_forgotten_once_it_does_not(
    queue: WorkQueue[str], work: Work, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    work.failures = 5
    start(queue, work)
    queue.add("a")
    assert await work.was_done(6) == ["a"] * 6
    await queue.wait_until_idle()
    assert not queue.retries("a")
    reported = [(each.levelname, each.getMessage()) for each in caplog.records if each.name == work_queue.__name__]
    assert reported == [("INFO", "test: a: not yet")] * 5


async def test_a_fault_is_logged_with_where_it_came_from(
    queue: WorkQueue[str], caplog: pytest.LogCaptureFixture
) -> None:
    tries = 0

    async def reconcile(key: str) -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise ValueError(key)

    queue.start(reconcile, name="test", workers=1)
    queue.add("a")
    async with asyncio.timeout(20):
        while tries < 2:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)
    (reported,) = [each for each in caplog.records if each.name == work_queue.__name__]
    assert (reported.levelname, reported.getMessage()) == ("ERROR", "test: a failed and is tried again")
    assert reported.exc_info is not None


async def test_a_key_is_worked_on_again_after_as_many_seconds_as_its_work_returned(
    queue: WorkQueue[str], work: Work
) -> None:
    work.again = 0.001
    start(queue, work)
    queue.add("a")
    assert await work.was_done(3) == ["a"] * 3


async def test_a_key_is_worked_on_by_one_at_a_time_and_again_if_it_was_added_meanwhile(
    queue: WorkQueue[str], work: Work
) -> None:
    work.held = asyncio.Event()
    start(queue, work)
    for _ in range(5):
        queue.add("a")
        for _ in range(5):
            await asyncio.sleep(0)
    assert work.at_once == 1
    work.held.set()
    assert await work.was_done(2) == ["a", "a"]
    await queue.wait_until_idle()
    assert len(work.done) == 2


async def test_no_more_keys_are_worked_on_at_once_than_there_are_workers(queue: WorkQueue[str], work: Work) -> None:
    start(queue, work)
    for key in "abcdefgh":
        queue.add(key)
    await work.was_done(8)
    assert work.most_at_once <= 2


async def test_the_end_stops_what_is_under_way(queue: WorkQueue[str], work: Work) -> None:
    work.held = asyncio.Event()
    start(queue, work)
    queue.add("a")
    while not work.at_once:  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0)
    await queue.stop()
    assert not work.at_once
    queue.add("b")
    await asyncio.sleep(0)
    assert not work.done


@pytest.mark.parametrize("turns", range(6))
async def test_the_end_comes_at_whatever_the_workers_wait_for(queue: WorkQueue[str], work: Work, turns: int) -> None:
    start(queue, work)
    queue.add("a")
    for _ in range(turns):
        await asyncio.sleep(0)
    async with asyncio.timeout(20):
        await queue.stop()
    assert not work.at_once
    assert not queue._working


async def test_a_key_that_is_discarded_is_not_worked_on(queue: WorkQueue[str], work: Work) -> None:
    queue.add("ready")
    queue.add_after("later", 0.001)
    queue.retry("failed")
    queue.add("kept")
    for key in ("ready", "later", "failed", "never added"):
        queue.discard(key)
    assert (len(queue), queue.retries("failed"), queue._timers) == (1, 0, {})
    start(queue, work)
    assert await work.was_done(1) == ["kept"]
    await queue.wait_until_idle()
    assert work.done == ["kept"]


async def test_a_key_that_is_discarded_while_it_is_worked_on_is_not_worked_on_again(
    queue: WorkQueue[str], work: Work
) -> None:
    work.held = asyncio.Event()
    start(queue, work)
    queue.add("a")
    while not work.at_once:  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0)
    queue.add("a")
    queue.discard("a")
    work.held.set()
    await queue.wait_until_idle()
    assert work.done == ["a"]


async def test_workers_outlive_a_wait_for_something_that_is_cancelled(queue: WorkQueue[str]) -> None:
    seen: list[str] = []
    failures: list[str] = []
    lost = asyncio.get_running_loop().create_future()
    lost.cancel()

    async def reconcile(key: str) -> None:
        seen.append(key)
        if len(seen) == 1:
            await lost

    queue.start(reconcile, lambda key, error: failures.append(str(error)), name="keys", workers=1)
    queue.add("a")
    async with asyncio.timeout(20):
        while len(seen) < 2:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)
    assert failures == ["an awaited task has been cancelled"]


async def test_who_waits_until_all_is_done_may_leave(queue: WorkQueue[str], work: Work) -> None:
    await queue.wait_until_idle()
    queue.add("a")
    leaving, staying = asyncio.ensure_future(queue.wait_until_idle()), asyncio.ensure_future(queue.wait_until_idle())
    await asyncio.sleep(0)
    leaving.cancel()
    start(queue, work)
    async with asyncio.timeout(20):
        await staying
    assert work.done == ["a"]


async def test_work_uses_the_servers_account_for_every_caller(queue: WorkQueue[str]) -> None:
    users: list[str] = []

    async def reconcile(key: str) -> None:
        users.append(offloading.current().user)

    with offloading.bound(offloading.current().for_user("somebody")):
        queue.start(reconcile, name="keys", workers=1)
    queue.add("a")
    async with asyncio.timeout(20):
        await queue.wait_until_idle()
    assert users == [offloading.SERVER]


async def test_waits_are_on_a_clock_that_is_moved() -> None:
    clock = Clock()
    loop = asyncio.get_running_loop()
    queue: WorkQueue[str] = WorkQueue(base_delay=600, max_delay=1200)
    began, seen = loop.time(), list[int]()

    async def reconcile(key: str) -> float | None:
        seen.append(round(loop.time() - began))
        if len(seen) <= 2:
            raise TryLater("not yet")
        return 3600

    queue.start(reconcile, name="keys", workers=1)
    queue.add("a")
    await clock.advance(hours=3)
    assert seen == [0, 600, 1800, 5400, 9000]
    await queue.stop()


async def test_several_queues_are_idle_once_each_of_them_is() -> None:
    first: WorkQueue[str] = WorkQueue()
    second: WorkQueue[int] = WorkQueue()
    both = WorkQueues([first, second])
    states = [both.idle]
    second.add(1)
    states.append(both.idle)
    assert await second.get() == 1
    states.append(both.idle)
    first.add("a")
    second.done(1)
    states.append(both.idle)
    first.discard("a")
    states.append(both.idle)
    assert states == [True, False, False, False, True]
