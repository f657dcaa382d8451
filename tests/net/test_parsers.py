"""Any bytes in any pieces: a connection answers or ends, and never fails."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.net.connection import Core
from steersman.net.http1 import exchange as http1_exchange
from steersman.net.http1.connection import Http1Connection
from steersman.net.http2 import frames, hpack
from steersman.net.http2.connection import Http2Connection
from steersman.net.limits import Limits
from steersman.net.message import Request, Response
from tests.example_counts import examples
from tests.net.wire import Undated, Wire


async def handler(request: Request) -> Response:
    """Answer with the request without its body, so that no iteration of the event loop is needed."""
    return Response(200, [], f"{request.method} {request.path} {sorted(request.headers.items())}".encode())


def run(kind: type[Http1Connection] | type[Http2Connection], pieces: list[bytes]) -> tuple[bytes, bool]:
    """Return the bytes that a connection writes for these pieces, without the Date, and True if it closes."""

    async def serve() -> tuple[bytes, bool]:
        fields = [Undated(encode) for encode in (http1_exchange.field, hpack.field)]
        limits = Limits(linger=0)
        core = Core(handler, limits, asyncio.get_running_loop(), eager=True, h1_fields=fields[0], h2_fields=fields[1])
        connection, wire = kind(core), Wire()
        connection.connection_made(wire)
        for piece in pieces:
            if not wire.closed:
                connection.data_received(piece)
        await asyncio.sleep(0.001)
        for _ in range(sum(map(len, pieces))):
            await asyncio.sleep(0)  # on a slow machine one iteration of the loop may take as little as one frame
        connection.connection_lost(None)
        assert core.counters.running == 0
        assert core.counters.streams == 0
        return wire.written, wire.closed

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serve())


def cut(data: bytes, at: list[int]) -> list[bytes]:
    """Cut `data` into pieces."""
    places = sorted({0, len(data), *(place % (len(data) + 1) for place in at)})
    return [data[start:end] for start, end in itertools.pairwise(places)]


def goaway(written: bytes) -> bytes | None:
    """Return the code of the GOAWAY frame, if any; it does not depend on the pieces, while a handler's start does."""
    at = 0
    while at < len(written):
        head, _, _ = frames.unpack_head(written, at)
        if head & 0xFF == frames.GOAWAY:
            return written[at + 13 : at + 17]
        at += 9 + (head >> 8)
    return None


GOOD_BLOCK = b"\x82\x87\x84" + hpack.field("x-a", "b")
FRAME = st.builds(
    frames.frame,
    st.sampled_from([*range(10), 0x42]),
    st.sampled_from([0, 1, 4, 5, 8, 0xC, 0x24, 0x25, 0x2D, 0xFF]),
    st.sampled_from([0, 1, 1, 2, 3, 3, 5, 7]),
    st.one_of(st.binary(max_size=12), st.sampled_from([b"", bytes(4), bytes(5), bytes(6), bytes(8), GOOD_BLOCK])),
)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(FRAME, max_size=12), st.lists(st.integers(0, 1 << 16), max_size=6))
def test_http2_takes_any_frames_in_any_pieces(sent: Any, places: Any) -> None:
    data = frames.PREFACE + frames.settings({}) + b"".join(sent)
    assert goaway(run(Http2Connection, cut(data, places))[0]) == goaway(run(Http2Connection, [data])[0])


LINES = st.sampled_from(
    [
        b"GET / HTTP/1.1\r\n",
        b"POST /a?b HTTP/1.1\r\n",
        b"Host: h\r\n",
        b"Content-Length: 3\r\n",
        b"\r\n",
        b"abc",
        b"Transfer-Encoding: chunked\r\n",
        b"3\r\n",
        b"abc\r\n",
        b"0\r\n\r\n",
        b"X: y\r\n",
        b" folded\r\n",
        b"Connection: Upgrade\r\nUpgrade: x\r\n",
        b"Connection: close\r\n",
        b"Expect: 100-continue\r\n",
        b"CONNECT h:1 HTTP/1.1\r\n",
        b"GET / HTTP/1.0\r\n",
        b"HEAD * HTTP/1.1\r\n",
        b"\n",
        b"\0",
        b"\xff",
    ]
)


def undecided(answer: tuple[bytes, bool]) -> tuple[bytes, bool]:
    """Remove the announcement of a close from an answer, as it cannot announce a later fault."""
    return answer[0].replace(b"Connection: close\r\n", b""), answer[1]


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.one_of(LINES, st.binary(max_size=5)), max_size=25), st.lists(st.integers(0, 4096), max_size=6))
def test_http1_answers_the_same_however_the_bytes_are_cut(lines: Any, places: Any) -> None:
    data = b"".join(lines)
    assert undecided(run(Http1Connection, cut(data, places))) == undecided(run(Http1Connection, [data]))


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_good_http2_requests_in_small_pieces_are_answered(size: int) -> None:
    data = frames.PREFACE + frames.settings({})
    for stream in range(1, 40, 2):
        data += frames.headers(stream, GOOD_BLOCK, frames.END_STREAM, 16384)
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    written, _ = run(Http2Connection, pieces)
    assert written.count(b"GET / [('x-a', 'b')]") == 20
