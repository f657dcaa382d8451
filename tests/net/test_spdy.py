"""SPDY sessions: two of them on one connection, and invalid peers."""

from __future__ import annotations

import asyncio
import hashlib
import struct
import zlib
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.net.spdy import DICTIONARY, GOAWAY, PING, RST_STREAM, SETTINGS, SYN_STREAM, Session, SpdyError, Stream
from tests.loop_turns import steps_of_turns


class Pipe:
    """One end of a connection in memory; `other` receives the written data."""

    def __init__(self) -> None:
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue()
        self.other: Pipe = self
        self.closed = False

    @property
    def is_empty(self) -> bool:
        """True if this end has read all that the other has written."""
        return self._pieces.empty()

    def receive(self, data: bytes) -> None:
        """Add data to what this end reads."""
        self._pieces.put_nowait(data)

    async def read(self) -> bytes:
        return await self._pieces.get()

    async def write(self, data: bytes) -> None:
        if self.closed or self.other.closed:
            raise ConnectionResetError("closed")
        for at in range(0, len(data), 1000):
            self.other.receive(data[at : at + 1000])

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.receive(b"")
            self.other.receive(b"")


def pipes() -> tuple[Pipe, Pipe]:
    one, other = Pipe(), Pipe()
    one.other, other.other = other, one
    return one, other


class Pair:
    """A client, and a server session that echoes every stream or runs `accept`."""

    def __init__(self, accept: Any = None) -> None:
        one, self.pipe = pipes()
        self.taken: list[Stream] = []
        self.client = Session(one)
        self.server = Session(self.pipe, server=True, accept=accept or self._echo)
        self.tasks = {asyncio.create_task(self.client.run()), asyncio.create_task(self.server.run())}

    async def _echo(self, stream: Stream) -> bool:
        async def echo() -> None:
            with suppress(SpdyError):  # a reset ends the echo
                while data := await stream.read():
                    await stream.write(data)
                await stream.end()

        self.taken.append(stream)
        self.tasks.add(asyncio.create_task(echo()))
        return True

    async def close(self) -> None:
        self.client.close()
        self.server.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


def test_the_dictionary_is_that_of_the_draft() -> None:
    assert len(DICTIONARY) == 1423
    digest = "51d27341373f923f3cd88e1eb7162aeaa3723d7585ff2399201dc06498407f02"
    assert hashlib.sha256(DICTIONARY).hexdigest() == digest
    assert zlib.adler32(DICTIONARY) == 0xE3C6A7C2


async def test_streams_carry_bytes_both_ways_at_the_same_time() -> None:
    pair = Pair()
    streams = [await pair.client.open({"streamtype": f"data-{number}"}, 5) for number in range(5)]
    assert [each.number for each in streams] == [1, 3, 5, 7, 9]
    assert [each.fields["streamtype"] for each in pair.taken] == [f"data-{number}" for number in range(5)]
    texts = [bytes([65 + number]) * 200_000 for number in range(5)]

    async def send(stream: Stream, text: bytes) -> None:
        await stream.write(text)
        await stream.end()

    results = await asyncio.gather(*(each.read_all(1 << 20) for each in streams), *(map(send, streams, texts)))
    assert results[:5] == texts
    await pair.close()


async def test_a_stream_that_is_not_taken_is_refused() -> None:
    async def refuse(stream: Stream) -> bool:
        return False

    pair = Pair(refuse)
    with pytest.raises(SpdyError, match="refused"):
        await pair.client.open({}, 5)
    await pair.close()


async def test_a_stream_that_nobody_answers_times_out() -> None:
    one, _ = pipes()
    session = Session(one)
    with pytest.raises(SpdyError, match="timeout"):
        await session.open({}, 0.01)


async def test_a_reset_and_the_end_of_the_session_are_told_to_readers() -> None:
    pair = Pair()
    stream = await pair.client.open({}, 5)
    await stream.reset()
    with pytest.raises(SpdyError, match="reset"):
        await pair.taken[0].read()
    another = await pair.client.open({}, 5)
    pair.server.close()
    with pytest.raises(SpdyError):
        await another.read()
    with pytest.raises(SpdyError):
        await pair.client.open({}, 5)
    await pair.close()


async def test_nothing_is_written_after_the_end() -> None:
    pair = Pair()
    stream = await pair.client.open({}, 5)
    await stream.end()
    with pytest.raises(SpdyError, match="closed stream"):
        await stream.write(b"x")
    assert await stream.read() == b""
    await pair.close()


async def test_more_than_the_limit_is_refused() -> None:
    pair = Pair()
    stream = await pair.client.open({}, 5)
    await stream.write(b"x" * 100)
    with pytest.raises(SpdyError, match="more than 10 bytes"):
        await stream.read_all(10)
    await pair.close()


async def test_a_stream_that_is_not_read_holds_up_the_session() -> None:
    async def take(stream: Stream) -> bool:
        taken.append(stream)
        return True

    taken: list[Stream] = []
    pair = Pair(take)
    stream = await pair.client.open({}, 5)
    await stream.write(b"x" * 2_000_000)
    for _ in range(100):
        await asyncio.sleep(0)
    assert not pair.pipe.is_empty, "no more is read than what the reader may leave unread"
    assert await asyncio.wait_for(_read(taken[0], 2_000_000), 5) == 2_000_000
    await pair.close()


async def _read(stream: Stream, size: int) -> int:
    got = 0
    while got < size:
        got += len(await stream.read())
    return got


async def test_what_is_ignored_holds_nothing_up() -> None:
    async def take(stream: Stream) -> bool:
        stream.ignore()
        return True

    pair = Pair(take)
    stream = await pair.client.open({}, 5)
    await stream.write(b"x" * 2_000_000)
    second = await asyncio.wait_for(pair.client.open({}, 5), 5)
    assert second.number == 3
    await pair.close()


def frame(kind: int, body: bytes, flags: int = 0) -> bytes:
    return struct.pack(">II", 0x80030000 | kind, flags << 24 | len(body)) + body


def block(*fields: tuple[str, str], count: int | None = None) -> bytes:
    data = struct.pack(">I", len(fields) if count is None else count)
    for pair in fields:
        for text in pair:
            data += struct.pack(">I", len(text)) + text.encode()
    compressor = zlib.compressobj(zdict=DICTIONARY)
    return compressor.compress(data) + compressor.flush(zlib.Z_SYNC_FLUSH)


def opening(number: int, fields: bytes) -> bytes:
    return frame(SYN_STREAM, struct.pack(">IIH", number, 0, 0) + fields)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (struct.pack(">II", 0x80020000 | PING, 4) + b"0000", "version"),
        (struct.pack(">II", 0x80030000 | SETTINGS, 0xFFFFFF), "too large"),
        (opening(1, b"not compressed"), "malformed"),
        (opening(2, block()), "cannot be opened"),
        (opening(1, block(count=5)), "malformed"),
        (opening(1, block(count=1000)), "too many fields"),
        (opening(1, block(("a", "x" * 200_000))), "too large"),
        (opening(3, block()) + opening(1, b""), "malformed|cannot"),
        (frame(PING, b"1"), "malformed"),
        (frame(RST_STREAM, b""), "malformed"),
        (b"\x80\x03", "unexpected end"),
        (struct.pack(">II", 1, 100) + b"short", "unexpected end"),
    ],
)
async def test_what_breaks_the_protocol_ends_the_session(data: bytes, message: str) -> None:
    one, other = pipes()
    session = Pair()._echo
    server = Session(other, server=True, accept=session)
    await one.write(data)
    one.other._pieces.put_nowait(b"")
    with pytest.raises(SpdyError, match=message):
        await asyncio.wait_for(server.run(), 5)
    server.close()


async def test_pings_are_answered_and_what_is_not_needed_is_passed_over() -> None:
    one, other = pipes()
    server = Session(other, server=True)
    running = asyncio.create_task(server.run())
    await one.write(frame(SETTINGS, struct.pack(">III", 1, 4, 1000)) + frame(GOAWAY, bytes(8)))
    await one.write(struct.pack(">II", 77, 3) + b"abc" + frame(PING, struct.pack(">I", 7)))
    assert await one.read() == frame(PING, struct.pack(">I", 7))
    server.close()
    await asyncio.gather(running, return_exceptions=True)


@given(st.binary(max_size=300))
def test_no_bytes_do_more_than_end_the_session(data: bytes) -> None:
    async def run() -> None:
        one, other = pipes()
        server = Session(other, server=True, first=data)
        one.close()
        try:
            await asyncio.wait_for(server.run(), 5)
        except SpdyError:
            return

    asyncio.run(run())


async def test_sessions_share_a_turn_of_the_loop() -> None:
    """Frames of many sessions are read in one time slice per iteration, all together."""
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 0.0005  # each look at the clock is a frame
        return now

    frames = b"".join(frame(PING, struct.pack(">I", 2)) for _ in range(1000))
    sessions = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("steersman.net.spdy.time.monotonic", clock)
        for _ in range(20):
            _, other = pipes()
            other.receive(frames)
            other.receive(b"")
            sessions.append(asyncio.create_task(Session(other, server=True).run()))
        steps = await steps_of_turns(lambda: int(now / 0.0005), lambda: all(each.done() for each in sessions))
    assert sum(steps) > 20_000
    assert max(steps) < 100
    await asyncio.gather(*sessions)


async def test_what_nobody_reads_is_bounded_in_all_streams_together() -> None:
    async def accept(stream: Stream) -> bool:
        taken.append(stream)
        return True

    taken: list[Stream] = []
    pair = Pair(accept)
    streams = [await pair.client.open({}, 5) for _ in range(30)]
    sent = 0
    for each in streams:
        await each.write(bytes(200_000))
        sent += 200_000
    for _ in range(1000):
        await asyncio.sleep(0)
    assert sum(each._unread for each in taken) < 4_500_000
    for number, each in enumerate(taken):  # all of it comes when it is read
        read = 0
        while read < 200_000:
            read += len(await each.read())
        assert (number, read) == (number, 200_000)
    await pair.close()
