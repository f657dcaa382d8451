"""Bytes on connections: HTTP/1.1, HTTP/2 with HPACK, SPDY, WebSockets."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine
from functools import cache
from typing import Any, Final, TypeVar

import hpack as second_hpack

from steersman.net.connection import Core
from steersman.net.fields import FieldCache
from steersman.net.http1 import exchange as http1_exchange
from steersman.net.http1.connection import Http1Connection
from steersman.net.http2 import frames, hpack
from steersman.net.http2.blocks import FieldDecoder, TooLarge
from steersman.net.http2.connection import Http2Connection
from steersman.net.limits import Limits
from steersman.net.message import Request, Response
from steersman.net.spdy import Session, SpdyError, Stream
from steersman.net.websocket.messages import open_messages
from tools.fuzz.target import Target, same

R = TypeVar("R")

_PIECE: Final = 7
"""Bytes: a number that no length is a multiple of."""


class _Undated(FieldCache):
    """Fields without the time, so that two runs can be compared."""

    def date(self) -> bytes:
        return b""


class _Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """There is no buffer."""

    def pause_reading(self) -> None:
        """It reads what it is given."""

    resume_reading = pause_reading

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close


@cache
def _runner() -> asyncio.Runner:
    return asyncio.Runner()


def _done(work: Coroutine[Any, Any, R]) -> R:
    return _runner().run(work)


async def _handler(request: Request) -> Response:
    """Tells the request without its body, so that it needs no turn of the loop."""
    return Response(200, [], f"{request.method} {request.path} {sorted(request.headers.items())}".encode())


async def _served(kind: type[Http1Connection] | type[Http2Connection], pieces: list[bytes]) -> bytes:
    """Return the bytes that a connection writes for these pieces."""
    fields = [_Undated(encode) for encode in (http1_exchange.field, hpack.field)]
    core = Core(
        _handler, Limits(linger=0), asyncio.get_running_loop(), eager=True, h1_fields=fields[0], h2_fields=fields[1]
    )
    connection, wire = kind(core), _Wire()
    connection.connection_made(wire)
    for piece in pieces:
        if not wire.closed:
            connection.data_received(piece)
    for _ in range(5):
        await asyncio.sleep(0)
    connection.connection_lost(None)
    same((core.counters.running, core.counters.streams), (0, 0), "handlers and streams that are left")
    return bytes(wire.written)


def _pieces(data: bytes) -> list[bytes]:
    return [data[at : at + _PIECE] for at in range(0, len(data), _PIECE)]


def http1(data: bytes) -> int:
    """Whatever pieces it comes in, the same is answered. The number is that of the first status.

    But where a client waits to be told to send a body: whether it is still waiting depends on what has come.
    """
    whole, in_pieces = (_done(_served(Http1Connection, each)) for each in ([data], _pieces(data)))
    if b"expect" not in data.lower():
        same(whole, in_pieces, "answers to a whole and to its pieces")
    return int(whole[9:12]) if whole[9:12].isdigit() else 0


def _goaway(written: bytes) -> int:
    """The code of the GOAWAY frame, -1 if there is none; when handlers start depends on the pieces, this does not."""
    at = 0
    while at < len(written):
        head, _, _ = frames.unpack_head(written, at)
        if head & 0xFF == frames.GOAWAY:
            return int.from_bytes(written[at + 13 : at + 17], "big")
        at += 9 + (head >> 8)
    return -1


def http2(data: bytes) -> int:
    """After the preface and settings. Whatever pieces it comes in, it ends for the same reason.

    But for one: what comes for a stream that is over ends the connection, and what comes while it is answered does not.
    """
    sent = frames.PREFACE + frames.settings({}) + data
    code, in_pieces = (_goaway(_done(_served(Http2Connection, each))) for each in ([sent], _pieces(sent)))
    if frames.ErrorCode.STREAM_CLOSED not in (code, in_pieces):
        same(code, in_pieces, "ends of a whole and of its pieces")
    return code


def header_blocks(data: bytes) -> int:
    """Blocks of one connection, with their lengths before them. What is decoded, hpack's own decoder decodes too."""
    decoder, second = FieldDecoder(1 << 20, 1000), second_hpack.Decoder(1 << 20)
    number = at = 0
    while at < len(data):
        end = at + 1 + data[at]
        block = data[at + 1 : end]
        fields = decoder.decode(block)  # raises
        try:
            other = [(bytes(name), bytes(value)) for name, value in second.decode(block, raw=True)]
        except second_hpack.HPACKError:
            return -1  # stricter in its sizes of tables
        same([(name, value) for name, value, _ in fields], other, "fields by two decoders")
        number, at = number + 1, end
    return number


class _Given:
    """A connection on which something has come, and then its end."""

    def __init__(self, data: bytes) -> None:
        self._pieces = itertools.chain(
            (data[at : at + 1000] for at in range(0, len(data), 1000)), itertools.repeat(b"")
        )

    async def read(self) -> bytes:
        return next(self._pieces)

    async def write(self, data: bytes) -> None:
        """Nobody reads it."""

    def close(self) -> None:
        """There is nothing to close."""


async def _spdy(data: bytes) -> int:
    taken: list[Stream] = []

    async def accept(stream: Stream) -> bool:
        taken.append(stream)
        return True

    await Session(_Given(data), server=True, accept=accept).run()
    return len(taken)


def spdy(data: bytes) -> int:
    """The streams that were opened."""
    return _done(_spdy(data))


async def _messages(data: bytes) -> int:
    messages = await open_messages(_Given(data))
    count = 0
    while await messages.receive() is not None:
        count += 1
    return count


def websocket(data: bytes) -> int:
    """The messages that came."""
    return _done(_messages(data))


_HTTP1_WORDS: Final = (
    b"GET / HTTP/1.1\r\n",
    b"POST /a?b HTTP/1.1\r\n",
    b"Host: h\r\n",
    b"Content-Length: 3\r\n",
    b"\r\n\r\n",
    b"abc",
    b"Transfer-Encoding: chunked\r\n",
    b"0\r\n\r\n",
    b"Connection: close\r\n",
    b"Expect: 100-continue\r\n",
    b"HTTP/1.0",
    b"Upgrade: websocket\r\nConnection: Upgrade\r\n",
    b"CONNECT h:1",
    b"http://h:1/p",
    b"%zz",
    b";ext=1",
    b"\t",
    b"Transfer-Encoding: identity\r\n",
    b"Content-Length: 00003\r\n",
    b"Trailer: a\r\n",
    b"HEAD",
    b"OPTIONS *",
)
_HTTP2_WORDS: Final = tuple(
    frames.frame(kind, flags, stream, payload)
    for kind, flags, stream, payload in (
        (0, 1, 1, b"abc"),
        (0, 9, 1, b"\2ab\0\0"),
        (1, 5, 1, b"\x82\x87\x84"),
        (1, 4, 3, b"\x83\x87\x84"),
        (1, 0x2D, 5, b"\0\0\0\0\0\x10\x82\x87\x84"),
        (2, 0, 1, bytes(5)),
        (3, 0, 1, bytes(4)),
        (4, 0, 0, bytes(6)),
        (4, 1, 0, b""),
        (5, 4, 1, bytes(4)),
        (6, 0, 0, bytes(8)),
        (7, 0, 0, bytes(8)),
        (8, 0, 0, b"\0\0\1\0"),
        (8, 0, 1, b"\x7f\xff\xff\xff"),
        (9, 4, 1, b"\x40\1a\1b"),
        (0x42, 0, 0, b"x"),
    )
)
_HPACK_WORDS: Final = (
    b"\x82",
    b"\x40\1a\1b",
    b"\x3f\xe1\x1f",
    b"\x20",
    b"\xff\xff\xff\xff\x0f",
    b"\x0f\x10",
    b"\xbe",
    b"\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff",
    b"\x10\x02aa\x81\xff",
    b"\3\x82\x87\x84",
)
_SPDY_WORDS: Final = (
    b"\x80\3\0\1",
    b"\x80\3\0\2",
    b"\x80\3\0\3",
    b"\x80\3\0\4",
    b"\x80\3\0\6",
    b"\x80\3\0\7",
    b"\x80\3\0\x08",
    b"\x80\3\0\x09",
    b"\0\0\0\1",
    b"\1\0\0\3abc",
    b"\0\0\0\x08",
    b"\x7f\xff\xff\xff",
)
_WEBSOCKET_WORDS: Final = (
    b"\x81\x83\0\0\0\0abc",
    b"\x82\x80\0\0\0\0",
    b"\x01\x81\0\0\0\0a",
    b"\x80\x81\0\0\0\0b",
    b"\x89\x80\0\0\0\0",
    b"\x88\x82\0\0\0\0\x03\xe8",
    b"\x82\xfe\0\x80",
    b"\x82\xff" + bytes(8),
    b"\xc1",
    b"\x8a\x80\0\0\0\0",
)

TARGETS: Final = (
    Target("http1", http1, words=_HTTP1_WORDS),
    Target("http2", http2, words=_HTTP2_WORDS),
    Target("hpack", header_blocks, (frames.ConnectionFault, TooLarge), _HPACK_WORDS, most=1024),
    Target("spdy", spdy, (SpdyError,), _SPDY_WORDS),
    Target("websocket", websocket, words=_WEBSOCKET_WORDS),
)
