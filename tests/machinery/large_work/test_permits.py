"""Permits for requests with large bodies: only a few at a time, shared fairly by users, and none is lost."""

from __future__ import annotations

import asyncio

from steersman.machinery.large_work.permits import Permit, Permits
from steersman.work.offloading import Account
from steersman.work.threads import WorkerThreads


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_no_more_are_begun_than_there_are_places() -> None:
    permits = Permits(2)
    first, second, third = (Permit(permits, f"user-{number}", 1) for number in range(3))
    await first.acquire()
    await first.acquire()
    await second.acquire()
    waiting = asyncio.ensure_future(third.acquire())
    await settled()
    assert not waiting.done()
    first.release()
    first.release()
    await waiting
    third.release()
    second.release()
    assert permits.by_user == {}


async def test_the_next_is_of_a_user_with_the_fewest_and_the_smallest_of_these() -> None:
    permits = Permits(2)
    held = [Permit(permits, "alice", 1), Permit(permits, "bob", 1)]
    for each in held:
        await each.acquire()
    order: list[str] = []

    async def wait(name: str, user: str, size: int) -> None:
        permit = Permit(permits, user, size)
        await permit.acquire()
        order.append(name)
        permit.release()

    tasks = [
        asyncio.ensure_future(wait(*each))
        for each in (("alice's", "alice", 1), ("carol's large", "carol", 9), ("dora's small", "dora", 2))
    ]
    await settled()
    held[1].release()
    await asyncio.gather(*tasks)
    assert order == ["dora's small", "carol's large", "alice's"]
    held[0].release()


async def test_who_goes_away_takes_no_place_with_them() -> None:
    permits = Permits(1)
    held = Permit(permits, "alice", 1)
    await held.acquire()
    gone, given = (asyncio.ensure_future(Permit(permits, user, 1).acquire()) for user in ("bob", "carol"))
    await settled()
    gone.cancel()
    await settled()
    held.release()
    given.cancel()  # it has been given the place, and does not know it yet
    await settled()
    assert permits.by_user == {}
    last = Permit(permits, "dora", 1)
    await asyncio.wait_for(last.acquire(), 1)


async def test_nothing_runs_for_a_request_before_it_has_its_place() -> None:
    threads, permits = WorkerThreads(), Permits()
    try:
        held = [Permit(permits, f"user-{number}", 1) for number in range(6)]
        for each in held:
            await each.acquire()
        done: list[int] = []
        late = Account(threads, "late")
        late.permit = Permit(permits, "late", 1)
        running = asyncio.ensure_future(late.offload_if(True, done.append, 1))
        await settled()
        assert not done
        await Account(threads, "small").offload_if(True, done.append, 0)
        held[0].release()
        await running
        assert done == [0, 1]
    finally:
        threads.close()
