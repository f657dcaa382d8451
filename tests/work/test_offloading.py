"""Offloading: where work runs, whose account it uses, and what happens to work that turns out to take long."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from steersman.work import offloading
from steersman.work.offloading import (
    Account,
    begin_task,
    bound,
    can_move_to_thread,
    current,
    ensure_offloaded,
    expect_offloading,
    mark_large,
    missed_offloads,
    offload,
    offload_if,
)
from steersman.work.threads import WorkerThreads


@pytest.fixture
def threads() -> Iterator[WorkerThreads]:
    made = WorkerThreads()
    yield made
    made.close()


@pytest.fixture
def request_account(threads: WorkerThreads) -> Iterator[Account]:
    with bound(Account(threads, "alice", keeps_size=True)) as account:
        yield account


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr(missed_offloads, "report", lambda: found.append(missed_offloads.count))
    return found


class Work:
    """Work that reports that it takes long, and records the threads it ran in."""

    def __init__(self) -> None:
        self.began: list[int] = []
        self.ended: list[int] = []

    def __call__(self) -> str:
        self.began.append(threading.get_ident())
        ensure_offloaded()
        self.ended.append(threading.get_ident())
        return "done"


async def test_small_work_runs_on_the_loop(request_account: Account) -> None:
    assert await offload(threading.get_ident) == threading.get_ident()
    assert not request_account.is_large


async def test_work_on_something_large_runs_in_a_thread(request_account: Account) -> None:
    assert await offload_if(True, threading.get_ident) != threading.get_ident()
    assert await offload_if(False, threading.get_ident) == threading.get_ident()
    mark_large()
    assert await offload(threading.get_ident) != threading.get_ident()


async def test_work_that_takes_long_runs_again_in_a_thread_as_does_all_that_follows(request_account: Account) -> None:
    work = Work()
    assert await offload(work) == "done"
    here = threading.get_ident()
    assert (work.began[0], len(work.began), here in work.ended) == (here, 2, False)
    assert request_account.is_large
    assert await offload(threading.get_ident) != here


async def test_a_component_begins_each_piece_of_work_on_the_loop(threads: WorkerThreads) -> None:
    with bound(Account(threads, "controllers")):
        assert await offload(Work()) == "done"
        mark_large()
        assert await offload(threading.get_ident) == threading.get_ident()


async def test_arguments_results_and_errors_pass_through(request_account: Account) -> None:
    def fail(text: str, *, times: int) -> None:
        raise ValueError(text * times)

    for large in (False, True):
        assert await offload_if(large, int, "ff", base=16) == 255
        with pytest.raises(ValueError, match="nono"):
            await offload_if(large, fail, "no", times=2)
    assert not can_move_to_thread()


async def test_work_can_move_to_a_thread_on_the_loop_only(request_account: Account) -> None:
    assert await offload(can_move_to_thread)
    assert not await offload_if(True, can_move_to_thread)
    assert not can_move_to_thread()


async def test_forgotten_work_is_done_at_once_and_counted(reports: list[int]) -> None:
    work = Work()
    assert work() == "done"
    assert work.ended == [threading.get_ident()]
    expect_offloading()
    assert len(reports) == 2
    assert reports[1] == reports[0] + 1 == missed_offloads.count


def test_code_without_a_loop_forgets_nothing(reports: list[int]) -> None:
    assert Work()() == "done"
    expect_offloading()
    assert not reports


async def test_work_within_work_belongs_to_it(request_account: Account, reports: list[int]) -> None:
    """An offloaded function may call another one. A report of long work then counts for both."""
    inner = Work()

    def outer() -> str:
        expect_offloading()
        return inner()

    assert await offload(outer) == "done"
    assert not reports


async def test_concurrent_requests_have_their_own_accounts(threads: WorkerThreads) -> None:
    async def request(user: str, *, large: bool) -> tuple[str, bool, bool]:
        with bound(Account(threads, user, keeps_size=True)):
            if large:
                mark_large()
            await asyncio.sleep(0)
            is_beside = await offload(threading.get_ident) != threading.get_ident()
            return current().user, current().is_large, is_beside

    results = await asyncio.gather(request("a", large=True), request("b", large=False))
    assert list(results) == [("a", True, True), ("b", False, False)]


async def test_a_task_of_the_server_does_not_work_on_the_account_of_a_request(request_account: Account) -> None:
    async def whose() -> str:
        return current().user

    mark_large()
    assert await asyncio.create_task(whose()) == "alice"
    assert await begin_task(whose(), name="of the server") == offloading.SERVER
    assert current() is request_account


async def test_cancelling_who_waits_ends_the_wait_and_leaves_the_account_as_it_was(request_account: Account) -> None:
    over, begun = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        over.wait()

    waiting = asyncio.create_task(offload_if(True, hold))
    await asyncio.to_thread(begun.wait)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    over.set()
    assert await offload_if(True, int, "7") == 7
    assert not request_account.is_large


async def test_cancelling_a_wait_for_a_permit_runs_nothing(threads: WorkerThreads) -> None:
    ran: list[int] = []

    class Permit:
        async def acquire(self) -> None:
            await asyncio.Event().wait()

    with bound(Account(threads, "alice", keeps_size=True)) as account:
        account.permit = Permit()
        waiting = asyncio.create_task(offload_if(True, ran.append, 1))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert not ran


async def test_without_a_server_there_are_threads_all_the_same() -> None:
    assert await offload(Work()) == "done"
    assert await offload_if(True, threading.get_ident) != threading.get_ident()


class Owner:
    """Owner of an account that is created when worker threads are first needed."""

    def __init__(self, threads: WorkerThreads) -> None:
        self.account: Account | None = None
        self.opened = 0
        self._threads = threads

    def open_account(self) -> Account:
        self.opened += 1
        return Account(self._threads, "alice", keeps_size=True)


async def test_small_work_needs_no_account_and_what_takes_long_opens_one(threads: WorkerThreads) -> None:
    owner = Owner(threads)
    token = offloading.bind(owner)
    try:
        assert await offload(threading.get_ident) == threading.get_ident()
        assert (owner.opened, owner.account) == (0, None)
        work = Work()
        assert await offload(work) == "done"
        assert work.ended[0] != threading.get_ident()
        assert await offload(threading.get_ident) != threading.get_ident()
        assert owner.opened == 1
    finally:
        offloading.unbind(token)
