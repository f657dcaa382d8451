"""Limits on a WebSocket client: processing per time slice, and memory."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable

import pytest
from websockets.protocol import Protocol

from steersman.net.message import BodyWriter
from steersman.net.websocket import streams as websocket
from steersman.net.websocket.messages import MessageConnection, open_messages
from steersman.net.websocket.streams import serve_stream

READ = 256 << 10
PING = b"\x89\x80\0\0\0\0"
BYTE = b"\x81\x81\0\0\0\0a"
CLOSE = b"\x88\x82\0\0\0\0\x03\xe8"


def parts(count: int) -> bytes:
    """Return a message in `count` parts of one byte."""
    return b"\x01\x81\0\0\0\0a" + b"\0\x81\0\0\0\0a" * (count - 2) + b"\x80\x81\0\0\0\0a"


class Connection:
    """A connection from which `data` can be read, and then nothing; a `stuck` one accepts no writes."""

    def __init__(self, data: bytes, *, stuck: bool = False) -> None:
        self.read_bytes = 0
        self.written = b""
        self.closed = asyncio.Event()
        self._data = data
        self._stuck = stuck

    async def read(self) -> bytes:
        data = self._data[self.read_bytes : self.read_bytes + READ]
        self.read_bytes += len(data)
        if not data:
            await self.closed.wait()
        return data

    async def write(self, data: bytes) -> None:
        if self._stuck:
            await self.closed.wait()
        self.written += data

    def close(self) -> None:
        self.closed.set()


class Silent:
    """A stream that sends nothing."""

    def __init__(self) -> None:
        self.writer: BodyWriter | None = None

    def start(self, writer: BodyWriter) -> None:
        self.writer = writer

    def closed(self) -> None:
        pass


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Count the pieces that protocols get in each iteration of the event loop."""
    seen: Counter[int] = Counter()
    turn = 0
    loop_of: list[asyncio.AbstractEventLoop] = []
    original = Protocol.receive_data

    def tick() -> None:
        nonlocal turn
        turn += 1
        loop_of[0].call_soon(tick)

    def receive(protocol: Protocol, data: bytes) -> None:
        if not loop_of:
            loop_of.append(asyncio.get_running_loop())
            tick()
        seen[turn] += 1
        original(protocol, data)

    monkeypatch.setattr(Protocol, "receive_data", receive)
    return seen


async def until_idle(pieces: Counter[int], wanted: int) -> None:
    async with asyncio.timeout(30):
        while pieces.total() < wanted:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_frames_of_all_connections_are_read_a_piece_in_a_turn(pieces: Counter[int]) -> None:
    connections = [Connection(BYTE * 5_000) for _ in range(20)]
    serving = [asyncio.ensure_future(serve_stream(each, Silent())) for each in connections]
    messages = [await open_messages(Connection(parts(5_000))) for _ in range(5)]
    reading = [asyncio.ensure_future(each.receive()) for each in messages]
    await until_idle(pieces, 25 * 5_000 * len(BYTE) // 1024)
    assert max(pieces.values()) <= 2  # one may be given as the turn ends, and one as the next begins
    for each in connections:
        each.close()
    await asyncio.gather(*serving)
    assert {len(each or b"") for each in await asyncio.gather(*reading)} == {5_000}


async def test_large_frames_are_read_many_pieces_in_a_turn(pieces: Counter[int]) -> None:
    frame = b"\x82\xff" + (200_000).to_bytes(8, "big") + bytes(4) + b"x" * 200_000
    messages = await open_messages(Connection(frame))
    assert await messages.receive() == b"x" * 200_000
    assert len(pieces) < 100


@pytest.mark.slow
async def test_answers_to_pings_that_nobody_reads_are_not_piled_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "HIGH_WATER", 50_000)
    connection = Connection(PING * 500_000, stuck=True)
    stream = Silent()
    serving = asyncio.ensure_future(serve_stream(connection, stream))
    read = -1
    async with asyncio.timeout(60):
        while not connection.read_bytes:  # noqa: ASYNC110
            await asyncio.sleep(0)
        while read != connection.read_bytes:
            read = connection.read_bytes
            for _ in range(1_000):
                await asyncio.sleep(0)
    assert 0 < read < 1 << 20
    assert stream.writer is not None
    assert stream.writer.buffered < 100_000
    connection.close()
    await serving


async def test_few_frames_are_kept_unread() -> None:
    messages: MessageConnection = await open_messages(Connection(BYTE * 30_000))
    for _ in range(30_000):
        assert await messages.receive_frame() == (b"a", True)
        assert len(messages._frames) < 200


@pytest.mark.parametrize("last", [CLOSE, b"\xf1\x80\0\0\0\0"])
async def test_what_follows_the_end_is_not_waited_for(last: bytes) -> None:
    connection = Connection(BYTE + last + BYTE * 10)

    async def ended(serving: Awaitable[None]) -> None:
        async with asyncio.timeout(10):
            await serving

    await ended(serve_stream(connection, Silent()))
    assert connection.written[:1] == b"\x88"
