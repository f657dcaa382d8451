"""Yielding: loops over many items let others use the event loop, and many such loops block it no longer than a few."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import pairwise

import pytest

from steersman.work import yielding
from steersman.work.offloading import Account, bound
from steersman.work.threads import WorkerThreads
from steersman.work.yielding import BEGINNING, SLICE, IterationGate, TimeSlice, next_slice, time_sliced
from tests.loop_turns import steps_of_turns

MS = 0.001
A_SLICE = round(SLICE / MS) + 1
"""Milliseconds of work: the last part may start just before the slice is over."""


class Clock:
    """A clock that only work advances, and the seconds of work in each iteration of the event loop."""

    def __init__(self) -> None:
        self.now = 1000.0

    def work(self, seconds: float) -> None:
        self.now += seconds

    async def iterations(self, tasks: Iterable[asyncio.Task[None]]) -> list[int]:
        """Return the milliseconds of work in each iteration of the event loop until all tasks are done."""
        tasks = list(tasks)
        return await steps_of_turns(lambda: round(self.now / MS), lambda: all(each.done() for each in tasks))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(yielding, "monotonic", lambda: made.now)
    return made


def begin(user: str, work: Iterable[object], clock: Clock, done: list[str], name: str = "") -> asyncio.Task[None]:
    """Start a task of a user that works for a millisecond on each item."""

    async def run() -> None:
        async for _ in time_sliced(work):
            clock.work(MS)
        done.append(name or user)

    with bound(Account(WorkerThreads(), user)):
        return asyncio.create_task(run())


async def test_others_have_the_loop_when_a_slice_is_over(clock: Clock) -> None:
    async def work() -> None:
        time_slice = TimeSlice()
        for _ in range(20):
            clock.work(MS)
            await time_slice.pause_if_over()

    first, *others = await clock.iterations([asyncio.create_task(work())])
    assert first <= 2 + A_SLICE
    assert max(others) <= A_SLICE
    assert first + sum(others) == 20


async def test_short_work_never_waits(clock: Clock) -> None:
    """Before its first time slice is over, work does not touch the event loop."""
    time_slice = TimeSlice()
    time_slice.pause_if_over().close()
    for _ in range(3):
        clock.work(BEGINNING / 4)
        coroutine = time_slice.pause_if_over()
        with pytest.raises(StopIteration):
            coroutine.send(None)


async def test_many_loops_hold_the_event_loop_no_longer_than_one(clock: Clock) -> None:
    done: list[str] = []
    tasks = [begin("alice", range(10), clock, done, str(number)) for number in range(30)]
    first, *others = await clock.iterations(tasks)
    assert first <= 30 * 2 + A_SLICE, "each begins"
    assert max(others) <= A_SLICE
    assert sum(others) + first == 300
    assert done == [str(number) for number in range(30)]


async def test_users_are_served_one_after_the_other(clock: Clock) -> None:
    done: list[str] = []
    tasks = [begin("alice", range(10), clock, done) for _ in range(30)]
    tasks.append(begin("bob", range(20), clock, done))
    await clock.iterations(tasks)
    assert done.index("bob") < 10


async def test_the_servers_own_work_goes_on_in_each_iteration(clock: Clock) -> None:
    done: list[str] = []
    tasks = [begin(f"user {number}", range(20), clock, done) for number in range(30)]
    tasks.append(begin("", range(20), clock, done))
    _, *others = await clock.iterations(tasks)
    assert done[0] == ""
    assert max(others) <= 2 * A_SLICE


async def test_time_in_which_others_had_the_loop_is_not_counted(clock: Clock) -> None:
    """A task that waited for something between two parts has not blocked the loop, and does not queue."""
    tasks = [begin("alice", range(100), clock, []) for _ in range(10)]
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async def wait() -> None:
        time_slice = TimeSlice()
        for _ in range(10):
            await asyncio.sleep(0)
            clock.work(1.0)
            await time_slice.pause_if_over()

    with bound(Account(WorkerThreads(), "alice")):
        tasks.append(asyncio.create_task(wait()))
    counting = asyncio.create_task(count())
    await tasks[-1]
    assert turns <= 12
    await asyncio.gather(*tasks)
    counting.cancel()


async def test_a_clock_that_is_moved_far_ahead_ends_one_slice(clock: Clock) -> None:
    went: list[int] = []

    async def work() -> None:
        async for number in time_sliced(range(100)):
            clock.work(3600.0 if number in (20, 50, 80) else 0.0)
            went.append(number)

    task = asyncio.create_task(work())
    steps = await steps_of_turns(lambda: len(went), task.done)
    assert [each for each in steps if each] == [81, 19], "the first is looked at, the second begins a slice"


@pytest.mark.parametrize("turns", range(1, 8))
async def test_who_is_cancelled_leaves_the_line_to_the_others(clock: Clock, turns: int) -> None:
    """At each await: before it starts, while it is queued, and when it is next."""
    done: list[str] = []
    tasks = [begin("alice", range(10), clock, done, str(number)) for number in range(4)]
    for _ in range(turns):
        await asyncio.sleep(0)
    cancelled = [each for each in tasks if not each.done()][:2]
    for each in cancelled:
        each.cancel()
    steps = await clock.iterations(tasks)
    assert len(done) == 4 - len(cancelled)
    assert len(steps) < 20
    await begin("alice", range(10), clock, done)
    assert done[-1] == "alice"


async def test_what_raises_between_two_slices_holds_nothing(clock: Clock) -> None:
    async def fail() -> None:
        async for number in time_sliced(range(100)):
            clock.work(MS)
            if number == 9:
                raise ValueError

    tasks = [asyncio.create_task(fail()) for _ in range(3)]
    done: list[str] = []
    await clock.iterations([*tasks, begin("", range(30), clock, done)])
    assert done == [""]
    assert [type(each.exception()) for each in tasks] == [ValueError] * 3


async def test_items_that_raise_are_the_callers_error(clock: Clock) -> None:
    def items() -> Iterable[int]:
        yield 1
        raise ValueError("broken")

    async def work() -> None:
        async for _ in time_sliced(items()):
            clock.work(MS)

    with pytest.raises(ValueError, match="broken"):
        await work()


async def test_a_few_at_once_go_on_in_the_order_they_came() -> None:
    gate, went = IterationGate(3), []

    async def go(number: int) -> None:
        await gate.pass_through()
        went.append(number)

    tasks = [asyncio.ensure_future(go(number)) for number in range(8)]
    await asyncio.sleep(0)  # the callbacks run
    assert went == [0, 1, 2]
    tasks[4].cancel()
    seen = [3]
    while len(went) < 7:
        await asyncio.sleep(0)
        seen.append(len(went))
    assert went == [0, 1, 2, 3, 5, 6, 7]
    assert all(after - before <= 3 for before, after in pairwise(seen))
    for _ in range(10):  # a task also queues behind itself
        await gate.pass_through()


async def test_an_iteration_has_few_slices_of_all_tasks() -> None:
    made: list[int] = []

    async def make(number: int) -> None:
        for _ in range(4):
            await next_slice(3)
            made.append(number)

    making = [asyncio.ensure_future(make(number)) for number in range(10)]
    seen = await steps_of_turns(lambda: len(made), lambda: all(each.done() for each in making))
    assert len(made) == 40
    assert max(seen) == 3


def test_each_event_loop_has_its_own_line() -> None:
    """Tasks left in the queue of a loop that has ended block nobody."""

    left: list[asyncio.Task[None]] = []

    async def go() -> None:
        for _ in range(3):
            await asyncio.wait_for(next_slice(), 5.0)
        left.extend(asyncio.create_task(next_slice()) for _ in range(3))
        await asyncio.sleep(0)

    for _ in range(2):
        asyncio.run(go())
    assert len([each for each in left if each.cancelled()]) >= 4


async def test_a_callback_runs_for_so_many_seconds_in_each_iteration(clock: Clock) -> None:
    left = 10

    def some() -> bool:
        nonlocal left
        clock.work(2 * MS)
        left -= 1
        return left > 0

    async def until_done() -> None:
        while left:  # noqa: ASYNC110 - turns are what is counted
            await asyncio.sleep(0)

    yielding.run_in_slices(some, 3 * MS)
    assert left == 8
    turns = await clock.iterations([asyncio.create_task(until_done())])
    assert [each for each in turns if each] == [4, 4, 4, 4]
    left = 3
    yielding.run_in_slices(some, 0.0)
    assert left == 2
    await clock.iterations([asyncio.create_task(until_done())])


async def test_a_callback_with_nothing_left_is_called_once() -> None:
    calls = 0

    def nothing() -> bool:
        nonlocal calls
        calls += 1
        return False

    yielding.run_in_slices(nothing)
    await asyncio.sleep(0)
    assert calls == 1
