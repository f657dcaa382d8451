"""Places for requests with large bodies: few at once, shared by users, none lost."""

from __future__ import annotations

import asyncio

from steersman.machinery.large_work.places import Place, Places
from steersman.work.offloading import Account
from steersman.work.threads import WorkerThreads


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_no_more_are_begun_than_there_are_places() -> None:
    places = Places(2)
    first, second, third = (Place(places, f"user-{number}", 1) for number in range(3))
    await first.acquire()
    await first.acquire()
    await second.acquire()
    waiting = asyncio.ensure_future(third.acquire())
    await settled()
    assert not waiting.done()
    first.give_back()
    first.give_back()
    await waiting
    third.give_back()
    second.give_back()
    assert places._taken == {}


async def test_the_next_is_of_a_user_with_the_fewest_and_the_smallest_of_these() -> None:
    places = Places(2)
    held = [Place(places, "alice", 1), Place(places, "bob", 1)]
    for each in held:
        await each.acquire()
    order: list[str] = []

    async def wait(name: str, user: str, size: int) -> None:
        place = Place(places, user, size)
        await place.acquire()
        order.append(name)
        place.give_back()

    tasks = [
        asyncio.ensure_future(wait(*each))
        for each in (("alice's", "alice", 1), ("carol's large", "carol", 9), ("dora's small", "dora", 2))
    ]
    await settled()
    held[1].give_back()
    await asyncio.gather(*tasks)
    assert order == ["dora's small", "carol's large", "alice's"]
    held[0].give_back()


async def test_who_goes_away_takes_no_place_with_them() -> None:
    places = Places(1)
    held = Place(places, "alice", 1)
    await held.acquire()
    gone, given = (asyncio.ensure_future(Place(places, user, 1).acquire()) for user in ("bob", "carol"))
    await settled()
    gone.cancel()
    await settled()
    held.give_back()
    given.cancel()  # it has been given the place, and does not know it yet
    await settled()
    assert places._taken == {}
    last = Place(places, "dora", 1)
    await asyncio.wait_for(last.acquire(), 1)


async def test_nothing_runs_for_a_request_before_it_has_its_place() -> None:
    threads, places = WorkerThreads(), Places()
    try:
        held = [Place(places, f"user-{number}", 1) for number in range(6)]
        for each in held:
            await each.acquire()
        done: list[int] = []
        late = Account(threads, "late")
        late.permit = Place(places, "late", 1)
        running = asyncio.ensure_future(late.offload_if(True, done.append, 1))
        await settled()
        assert not done
        await Account(threads, "small").offload_if(True, done.append, 0)
        held[0].give_back()
        await running
        assert done == [0, 1]
    finally:
        threads.close()
