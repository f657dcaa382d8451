"""The queue for worker threads, permits of waiting work, and the interpreter lock."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from itertools import count
from time import monotonic

import pytest

from steersman.machinery.errors.status import StatusError
from steersman.machinery.large_work.large_requests import check_backlog
from steersman.work.offloading import Account
from steersman.work.threads import MAX_WAITING, Interpreter, WorkerThreads


@pytest.fixture(autouse=True)
def _nobody_holds_collections() -> None:
    """Enable garbage collection, which threads of servers of earlier tests hold until they have rested."""
    gc.enable()


@pytest.fixture
def threads() -> Iterator[WorkerThreads]:
    made = WorkerThreads()
    yield made
    made.close()


async def test_what_the_work_raises_is_raised(threads: WorkerThreads) -> None:
    with pytest.raises(ValueError, match="no number"):
        await Account(threads).offload_if(True, _raise, "no number")


def _raise(text: str) -> None:
    raise ValueError(text)


async def test_the_loop_gets_its_turns_while_the_threads_works(threads: WorkerThreads) -> None:
    over = threading.Event()
    work = asyncio.ensure_future(Account(threads).offload_if(True, _spin, over))
    turns = 0
    while turns < 100:
        await asyncio.sleep(0)
        turns += 1
    assert not work.done()
    over.set()
    assert await work > 0


def _spin(over: threading.Event) -> int:
    count = 0
    while not over.is_set():
        count += 1
    return count


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.01)
    assert condition()


async def test_garbage_is_not_collected_meanwhile_and_is_after_a_rest() -> None:
    rest = 0.2
    threads = WorkerThreads(interpreter=Interpreter(rest=rest))
    began = monotonic()
    assert not await Account(threads).offload_if(True, gc.isenabled)
    assert not gc.isenabled() or monotonic() > began + rest
    await until(gc.isenabled)
    threads.close()


async def test_threads_switch_often_while_those_of_any_server_work(threads: WorkerThreads) -> None:
    over, others = threading.Event(), WorkerThreads()

    async def interval() -> float:
        return await Account(others).offload_if(True, sys.getswitchinterval)

    short = await interval()
    await until(lambda: sys.getswitchinterval() != short)  # threads of another test may still work
    usual = sys.getswitchinterval()
    long = asyncio.ensure_future(Account(threads).offload_if(True, over.wait))
    await until(lambda: sys.getswitchinterval() == short)
    assert await interval() == short
    assert sys.getswitchinterval() == short
    over.set()
    assert await long
    await until(lambda: sys.getswitchinterval() == usual)
    others.close()


async def test_a_step_that_takes_long_does_not_keep_others_waiting(threads: WorkerThreads) -> None:
    over = threading.Event()
    long = asyncio.ensure_future(Account(threads).offload_if(True, over.wait))
    assert await asyncio.wait_for(Account(threads).offload_if(True, int), 10) == 0
    over.set()
    assert await long


async def test_closed_threads_let_garbage_be_collected() -> None:
    threads = WorkerThreads()
    await Account(threads).offload_if(True, int)
    assert not gc.isenabled()
    threads.close()
    assert gc.isenabled()


def test_a_step_that_goes_on_after_its_threads_are_closed_holds_no_collection() -> None:
    interpreter = Interpreter()
    interpreter.thread_starts_work()
    interpreter.thread_ends_work()  # it is idle soon
    interpreter.close()
    interpreter.thread_starts_work()
    assert gc.isenabled()
    interpreter.thread_ends_work()
    assert gc.isenabled()


class OccupiedThreads:
    """Worker threads that are occupied, the first until `first_over` is set, the second until `over`: further work waits."""

    def __init__(self, threads: WorkerThreads) -> None:
        self.threads = threads
        self.over, self.first_over = threading.Event(), threading.Event()
        self.done: list[str] = []
        self._begun = [threading.Event(), threading.Event()]
        self._held = [
            asyncio.ensure_future(Account(threads).offload_if(True, self._hold, each, over))
            for each, over in zip(self._begun, (self.first_over, self.over), strict=True)
        ]

    async def begun(self) -> OccupiedThreads:
        for each in self._begun:
            await asyncio.to_thread(each.wait)
        return self

    def release(self) -> None:
        """Let both threads go on."""
        self.first_over.set()
        self.over.set()

    def _hold(self, begun: threading.Event, over: threading.Event) -> None:
        begun.set()
        over.wait()

    def ask(self, user: str, name: str) -> asyncio.Future[None]:
        return asyncio.ensure_future(Account(self.threads, user).offload_if(True, self.done.append, name))


async def wait_until_queued(*waiting: asyncio.Future[None]) -> None:
    """Wait until requested work is queued."""
    await asyncio.sleep(0)


async def test_users_alternate_however_much_one_has_requested_before(
    threads: WorkerThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = count()
    monkeypatch.setattr("steersman.work.threads.thread_time", lambda: next(readings) / 1000)  # all steps are equal
    busy = await OccupiedThreads(threads).begun()
    waiting = [busy.ask("alice", f"a{number}") for number in range(50)]
    await wait_until_queued(*waiting)
    waiting += [busy.ask("bob", "b0"), busy.ask("bob", "b1"), busy.ask("carol", "c0"), busy.ask("", "server")]
    await wait_until_queued(*waiting)
    busy.first_over.set()  # one thread works, so that the order is the same each time
    await asyncio.gather(*waiting)
    busy.over.set()
    assert busy.done[0] == "server"
    assert max(busy.done.index("b0"), busy.done.index("c0")) <= 4
    assert busy.done.index("b1") <= 7
    assert [name for name in busy.done if name[0] == "a"] == [f"a{number}" for number in range(50)]


async def test_a_request_is_finished_before_others_of_its_user_are_begun(threads: WorkerThreads) -> None:
    busy = await OccupiedThreads(threads).begun()
    first, second = Account(threads, "alice"), Account(threads, "alice")
    waiting = [asyncio.ensure_future(second.offload_if(True, busy.done.append, "second")) for _ in range(4)]
    waiting += [asyncio.ensure_future(first.offload_if(True, busy.done.append, "first")) for _ in range(4)]
    await wait_until_queued(*waiting)
    busy.release()
    await asyncio.gather(*waiting)
    assert busy.done[:3] == ["first"] * 3
    assert busy.done[5:] == ["second"] * 3


async def test_a_user_with_much_queued_work_gets_too_many_requests_and_others_do_not(threads: WorkerThreads) -> None:
    busy = await OccupiedThreads(threads).begun()
    for number in range(MAX_WAITING):
        check_backlog(Account(threads, "alice"))
        await wait_until_queued(busy.ask("alice", str(number)))
    with pytest.raises(StatusError) as caught:
        check_backlog(Account(threads, "alice"))
    assert (caught.value.code, caught.value.reason, caught.value.retry_after) == (429, "TooManyRequests", 1)
    assert caught.value.message == "too many requests, please try again later"
    check_backlog(Account(threads, "bob"))
    await wait_until_queued(*(busy.ask(f"user{number}", "") for number in range(20)))
    for number in range(20):
        check_backlog(Account(threads, f"user{number}"))
    # requests that have started still get their work done
    last = busy.ask("alice", "last")
    busy.release()
    await last
    assert busy.done.count("last") == 1


async def test_many_users_have_less_room_each(threads: WorkerThreads) -> None:
    busy = await OccupiedThreads(threads).begun()
    waiting = [busy.ask(f"user{number}", "") for number in range(30) for _ in range(8)]
    await wait_until_queued(*waiting)
    with pytest.raises(StatusError, match="too many requests"):
        check_backlog(Account(threads, "user7"))
    check_backlog(Account(threads, "another"))
    busy.release()
    await asyncio.gather(*waiting)
    check_backlog(Account(threads, "user7"))


async def test_abandoned_work_is_dropped_and_not_done(threads: WorkerThreads) -> None:
    busy = await OccupiedThreads(threads).begun()
    waiting = [busy.ask("alice", str(number)) for number in range(MAX_WAITING)]
    await wait_until_queued(*waiting)
    for each in waiting[1:]:
        each.cancel()
    await asyncio.gather(*waiting[1:], return_exceptions=True)
    check_backlog(Account(threads, "alice"))
    busy.release()
    await waiting[0]
    assert await Account(threads).offload_if(True, len, busy.done) == 1


async def test_closed_threads_block_no_caller(threads: WorkerThreads) -> None:
    busy = await OccupiedThreads(threads).begun()
    waiting = busy.ask("alice", "never")
    await wait_until_queued(waiting)
    threads.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    busy.release()
    assert not busy.done


async def test_an_error_does_not_outlive_its_request(threads: WorkerThreads) -> None:
    class Large:
        pass

    def fail() -> None:
        large = Large()
        alive.append(weakref.ref(large))
        raise ValueError("no number")

    alive: list[weakref.ref[Large]] = []
    gc.disable()
    try:
        with contextlib.suppress(ValueError):
            await Account(threads).offload_if(True, fail)
        # a thread frees the error before it takes its next work, which the other thread may take instead for a while
        for _ in range(100):
            await asyncio.gather(Account(threads).offload_if(True, int), Account(threads).offload_if(True, int))
            if alive[0]() is None:
                break
        assert alive[0]() is None
    finally:
        gc.enable()
