"""Frames between processes."""

from __future__ import annotations

import asyncio
import random
import socket

from steersman.net import link as link_module
from steersman.net.link import Link, frame

Frames = list[tuple[int, int, bytes]]


async def pair(received: Frames, lost: list[str]) -> tuple[Link, Link]:
    """Return both ends of a connection; `received` records what the second end receives."""
    near, far = socket.socketpair()
    one = await Link.on(near, lambda *_: None, lambda: lost.append("near"))
    other = await Link.on(far, lambda *found: received.append(found), lambda: lost.append("far"))
    return one, other


async def until(received: Frames, count: int) -> None:
    for _ in range(10_000):
        if len(received) >= count:
            return
        await asyncio.sleep(0.001)
    raise AssertionError(f"{len(received)} frames have come")


async def test_frames_of_any_size_come_whole_and_in_order() -> None:
    received: Frames = []
    one, other = await pair(received, [])
    chosen = random.Random(1)
    sent = [(kind % 200, kind, chosen.randbytes(chosen.choice((0, 1, 9, 300, 70_000)))) for kind in range(200)]
    for kind, number, body in sent:
        one.send(frame(kind, number, body[:5], body[5:]))
    await until(received, len(sent))
    assert received == sent
    one.close()
    other.close()


async def test_what_is_posted_comes_in_the_order_in_which_it_was_posted_with_what_follows_a_turn_later() -> None:
    received: Frames = []
    one, other = await pair(received, [])
    one.post(frame(1, 1))
    await asyncio.sleep(0)
    one.post(frame(1, 2))
    await until(received, 2)
    assert received == [(1, 1, b""), (1, 2, b"")]
    one.post(frame(1, 3))
    one.close()
    await until(received, 3)
    other.close()


async def test_a_link_over_which_something_comes_that_cannot_be_taken_is_ended() -> None:
    ends = asyncio.Event(), asyncio.Event()
    near, far = socket.socketpair()
    one = await Link.on(near, lambda *_: None, ends[0].set)

    def refuse(kind: int, number: int, body: bytes) -> None:
        raise ValueError("not this")

    await Link.on(far, refuse, ends[1].set)
    one.send(frame(1, 1) + frame(1, 2))
    async with asyncio.timeout(10):
        await asyncio.gather(*(each.wait() for each in ends))


async def test_who_waits_for_room_goes_on_when_the_other_side_is_gone() -> None:
    lost: list[str] = []
    near, far = socket.socketpair()
    one = await Link.on(near, lambda *_: None, lambda: lost.append("near"))
    one.send(frame(1, 1, bytes(8 << 20)))
    assert one.unsent > 1 << 20
    waiting = asyncio.ensure_future(one.drain())
    await asyncio.sleep(0)
    assert not waiting.done()
    far.close()
    async with asyncio.timeout(10):
        await waiting
    assert lost == ["near"]


async def test_a_frame_beyond_all_bounds_ends_the_connection() -> None:
    over = asyncio.Event()
    near, far = socket.socketpair()
    received: Frames = []
    one = await Link.on(near, lambda *_: None, lambda: None)
    await Link.on(far, lambda *found: received.append(found), over.set)
    one.send(link_module.HEAD.pack(link_module.LONGEST + 1, 1, 1))
    async with asyncio.timeout(10):
        await over.wait()
    assert received == []
