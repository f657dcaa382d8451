"""The limit on the bytes of large bodies in memory."""

from __future__ import annotations

import asyncio

import pytest

from steersman.machinery.errors.status import StatusError
from steersman.machinery.large_work.body_budget import MAX_BYTES, BodyBudget
from steersman.work.threads import MAX_WAITING

HALF = MAX_BYTES // 2


async def asked(room: BodyBudget, user: str, size: int) -> asyncio.Task[None]:
    task = asyncio.ensure_future(room.acquire(user, size))
    await asyncio.sleep(0)
    return task


async def test_bodies_of_a_user_wait_for_each_other_in_their_order() -> None:
    room = BodyBudget()
    await room.acquire("alice", HALF)
    await room.acquire("alice", HALF)
    large, small = await asked(room, "alice", HALF), await asked(room, "alice", 1)
    await room.acquire("bob", MAX_BYTES)
    room.release("alice", HALF)
    await large
    assert not small.done()
    room.release("alice", HALF)
    await small


async def test_more_than_so_many_are_told_to_try_again() -> None:
    room = BodyBudget()
    await room.acquire("alice", MAX_BYTES)
    waiting = [await asked(room, "alice", 1) for _ in range(MAX_WAITING)]
    with pytest.raises(StatusError) as caught:
        await room.acquire("alice", 1)
    assert (caught.value.code, caught.value.retry_after) == (429, 1)
    await room.acquire("bob", 1)
    room.release("alice", MAX_BYTES)
    await asyncio.gather(*waiting)


async def test_many_users_have_less_room_each_but_for_one_body() -> None:
    room = BodyBudget()
    for number in range(32):
        await room.acquire(f"user{number}", MAX_BYTES)
    another = await asked(room, "user0", 1)
    assert not another.done()
    room.release("user0", MAX_BYTES)
    await another


async def test_who_does_not_wait_any_more_takes_no_room() -> None:
    room = BodyBudget()
    await room.acquire("alice", MAX_BYTES)
    gone = await asked(room, "alice", MAX_BYTES)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    assert await asked(room, "alice", MAX_BYTES)
    room.release("alice", MAX_BYTES)
    await asyncio.sleep(0)
    left = await asked(room, "alice", MAX_BYTES)
    left.cancel()
    room.release("alice", MAX_BYTES)
    await asyncio.gather(left, return_exceptions=True)
    assert not room.shares


async def test_who_leaves_when_the_turn_has_come_gives_it_on() -> None:
    room = BodyBudget()
    await room.acquire("alice", MAX_BYTES)
    late, last = [await asked(room, "alice", MAX_BYTES) for _ in range(2)]
    room.release("alice", MAX_BYTES)
    late.cancel()  # its turn has come, but it has not seen that yet
    await asyncio.gather(late, return_exceptions=True)
    await last
    room.release("alice", MAX_BYTES)
    assert not room.shares
