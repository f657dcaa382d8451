"""Answers that the client does not read: they keep their request's permit, they end, and they do not accumulate."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from steersman.net import time_slices
from steersman.net.connection import Core
from steersman.net.http1 import exchange as http1_exchange
from steersman.net.http1.connection import Http1Connection
from steersman.net.http2 import frames, hpack
from steersman.net.http2.connection import Http2Connection
from steersman.net.http2.frames import ErrorCode, Setting
from steersman.net.in_process import InProcessClient
from steersman.net.limits import Limits
from steersman.net.message import Request, Response
from tests.net.listening import ListeningServer
from tests.net.wire import Undated, Wire

LARGE = b"x" * (2 << 20)
CLOSED = {Setting.INITIAL_WINDOW_SIZE: 0}
HEAD = [(":method", "GET"), (":path", "/"), (":scheme", "https"), (":authority", "a")]
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
IMPATIENT = Limits(send_timeout=0.2)


class Places:
    """A handler that counts its unfinished answers."""

    def __init__(self, body: Any = LARGE) -> None:
        self.body = body
        self.begun = self.over = 0

    @property
    def taken(self) -> int:
        return self.begun - self.over

    def leave(self) -> None:
        self.over += 1

    async def __call__(self, request: Request) -> Response:
        self.begun += 1
        request.on_request_end = self.leave
        return Response(200, [], self.body() if callable(self.body) else self.body)


async def pulled() -> AsyncIterator[Any]:
    for _ in range(16):
        yield LARGE[: 128 << 10]


BODIES = {"bytes": LARGE, "pieces": [LARGE[:100], LARGE[100:]], "an iterator": pulled}


@pytest.mark.parametrize("body", BODIES)
async def test_over_http2_a_place_is_kept_until_the_answer_has_left(
    serve: Callable[..., Awaitable[ListeningServer]],
    http2: Callable[..., Awaitable[Any]],
    eventually: Callable[[Callable[[], bool]], Awaitable[None]],
    body: Any,
) -> None:
    places = Places(BODIES[body])
    client = await http2(await serve(places), settings=CLOSED)
    stream = client.request()
    await client.until(frames.HEADERS)
    await client.ping()
    assert places.taken == 1
    client.writer.write(frames.window_update(stream, len(LARGE)))
    assert (await client.answer(stream)).body == LARGE
    await eventually(lambda: places.over == 1)


async def test_over_http1_a_place_is_kept_until_the_answer_has_left(
    serve: Callable[..., Awaitable[ListeningServer]],
    http1: Callable[..., Awaitable[Any]],
    eventually: Callable[[Callable[[], bool]], Awaitable[None]],
) -> None:
    places = Places([LARGE] * 8)
    client = await http1(await serve(places))
    client.writer.transport.pause_reading()
    client.send(GET)
    await eventually(lambda: places.begun == 1)
    assert places.taken == 1
    client.writer.transport.resume_reading()
    _, _, got = await client.response()
    assert len(got) == 8 * len(LARGE)
    await eventually(lambda: places.over == 1)


async def test_what_leaves_at_once_gives_its_place_back_at_once(
    serve: Callable[..., Awaitable[ListeningServer]],
    http1: Callable[..., Awaitable[Any]],
    http2: Callable[..., Awaitable[Any]],
) -> None:
    places = Places(b"little")
    server = await serve(places)
    first = await http1(server)
    first.send(GET)
    await first.response()
    second = await http2(server)
    await second.answer(second.request())
    head = second.request("HEAD")
    await second.answer(head)
    assert (places.begun, places.over) == (3, 3)


async def test_a_client_that_goes_away_gives_its_place_back(
    serve: Callable[..., Awaitable[ListeningServer]],
    http2: Callable[..., Awaitable[Any]],
    eventually: Callable[[Callable[[], bool]], Awaitable[None]],
) -> None:
    places = Places()
    client = await http2(await serve(places), settings=CLOSED)
    kept = client.request()
    client.request()
    await eventually(lambda: places.begun == 2)
    client.writer.write(frames.rst_stream(kept, ErrorCode.CANCEL))
    await eventually(lambda: places.over == 1)
    client.close()
    await eventually(lambda: places.over == 2)


async def test_in_process_what_is_written_is_the_clients() -> None:
    places = Places()
    response = await InProcessClient(places).request("GET", "/")
    assert (places.begun, places.over) == (1, 1)
    assert await response.read() == LARGE


async def test_over_http2_what_is_not_read_in_time_is_reset_and_the_connection_lives(
    serve: Callable[..., Awaitable[ListeningServer]],
    http2: Callable[..., Awaitable[Any]],
    eventually: Callable[[Callable[[], bool]], Awaitable[None]],
) -> None:
    places = Places()
    client = await http2(await serve(places, limits=IMPATIENT), settings=CLOSED)
    stream = client.request()
    assert await client.reset(stream) == ErrorCode.INTERNAL_ERROR
    await eventually(lambda: places.over == 1)
    await client.ping()


async def test_over_http2_a_body_that_has_ended_has_to_leave_too(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    async def handler(request: Request) -> Response:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"x" * 1000

        return Response(200, [], pieces())

    client = await http2(await serve(handler, limits=IMPATIENT), settings=CLOSED)
    assert await client.reset(client.request()) == ErrorCode.INTERNAL_ERROR


@pytest.mark.parametrize("tls", [False, True])
async def test_over_http1_what_is_not_read_in_time_ends_the_connection(
    serve: Callable[..., Awaitable[ListeningServer]],
    client_context: Callable[..., ssl.SSLContext],
    eventually: Callable[[Callable[[], bool]], Awaitable[None]],
    tls: bool,
) -> None:
    places = Places([LARGE] * 8)
    server = await serve(places, limits=IMPATIENT, tls=tls)
    with socket.create_connection(server.address) as plain:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        if tls:
            context = client_context("http/1.1")
            wrapped: socket.socket = await asyncio.to_thread(context.wrap_socket, plain, server_hostname="localhost")
            wrapped.sendall(GET)
        else:
            wrapped = plain
            plain.sendall(GET)
        await eventually(lambda: places.over == 1 and server.statistics().open_http1 == 0)
        wrapped.close()


async def test_one_connection_is_not_answered_on_while_it_keeps_what_it_may(
    serve: Callable[..., Awaitable[ListeningServer]],
    http2: Callable[..., Awaitable[Any]],
    eventually: Callable[[Callable[[], bool]], Awaitable[None]],
) -> None:
    places = Places()
    client = await http2(await serve(places, limits=Limits(max_unsent=5 << 20)), settings=CLOSED)
    streams = [client.request() for _ in range(10)]
    await client.ping()
    assert places.begun == 3  # the third is one too many
    client.writer.write(frames.rst_stream(streams[0], ErrorCode.CANCEL))
    await eventually(lambda: places.begun == 4)
    client.writer.write(frames.settings({Setting.INITIAL_WINDOW_SIZE: len(LARGE)}))
    client.writer.write(frames.window_update(0, 32 << 20))
    answers = await client.answers(*streams[1:], credit=False)
    assert all(answer.body == LARGE for answer in answers.values())
    await eventually(lambda: places.begun == places.over == 10)


async def test_a_connection_that_keeps_answers_whose_end_nobody_waits_for_is_not_answered_on(
    serve: Callable[..., Awaitable[ListeningServer]],
    http2: Callable[..., Awaitable[Any]],
    eventually: Callable[[Callable[[], bool]], Awaitable[None]],
) -> None:
    begun = []

    async def handler(request: Request) -> Response:
        begun.append(request)
        return Response(403, [], LARGE[:1000])

    client = await http2(await serve(handler, limits=Limits(max_unsent_free=2500)), settings=CLOSED)
    streams = [client.request() for _ in range(10)]
    await client.ping()
    assert len(begun) == 3
    client.writer.write(frames.rst_stream(streams[0], ErrorCode.CANCEL))
    await eventually(lambda: len(begun) == 4)


async def test_what_many_are_told_at_once_is_written_in_many_turns() -> None:
    writers = []

    class Watch:
        def start(self, writer: Any) -> None:
            writers.append(writer)

        def closed(self) -> None:
            pass

    async def handler(request: Request) -> Response:
        return Response(200, [], Watch())

    class Clock:
        now = 0.0

        def __call__(self) -> float:
            self.now += time_slices.SLICE / 10
            return self.now

    fields = [Undated(encode) for encode in (http1_exchange.field, hpack.field)]
    loop = asyncio.get_running_loop()
    core = Core(handler, Limits(), loop, eager=True, h1_fields=fields[0], h2_fields=fields[1])
    core.flushes.clock = Clock()
    wires = [Wire() for _ in range(50)]
    for wire in wires:
        connection = Http1Connection(core)
        connection.connection_made(wire)
        connection.data_received(GET)
    while len(writers) < len(wires):  # noqa: ASYNC110
        await asyncio.sleep(0)
    before = core.flushes.count
    for writer in writers:
        writer.write(LARGE)
    assert all(len(wire.written) < 1000 for wire in wires), "a large piece is not written at once"
    while any(writer.pending for writer in writers):  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert all(wire.written.count(b"x") == len(LARGE) for wire in wires)
    batches = len(wires) * len(LARGE) // (128 << 10)
    assert core.flushes.count - before >= batches / 10


class Pushed:
    """A body that the test writes."""

    def start(self, writer: Any) -> None:
        self.writer = writer

    def closed(self) -> None:
        pass


class Full(Wire):
    """A transport from which nobody reads."""

    connection: Http1Connection | Http2Connection | None = None
    high = 0

    def set_write_buffer_limits(self, high: Any = None, low: Any = None) -> None:
        self.high = high

    def write(self, data: Any) -> None:
        super().write(data)
        if self.connection is not None and len(self.written) > self.high:
            self.connection.pause_writing()


def unread(kind: Any, body: Any) -> tuple[Full, Http1Connection | Http2Connection]:
    """Return a connection to a client that has sent one request and reads nothing."""

    async def handler(request: Request) -> Response:
        return Response(200, [], body)

    fields = [Undated(encode) for encode in (http1_exchange.field, hpack.field)]
    core = Core(handler, Limits(), asyncio.get_running_loop(), eager=True, h1_fields=fields[0], h2_fields=fields[1])
    connection, wire = kind(core), Full()
    connection.connection_made(wire)
    wire.connection = connection
    if kind is Http1Connection:
        connection.data_received(GET)
    else:
        connection.data_received(frames.PREFACE + frames.settings({Setting.INITIAL_WINDOW_SIZE: 1 << 30}))
        connection.data_received(frames.window_update(0, 1 << 30))
        block = b"".join(hpack.field(*each) for each in HEAD)
        connection.data_received(frames.headers(1, block, frames.END_STREAM, 16384))
    return wire, connection


@pytest.mark.parametrize("kind", [Http1Connection, Http2Connection])
@pytest.mark.parametrize("size", [1 << 20, 60_000, 1000])
async def test_what_a_connection_keeps_of_its_own_for_a_client_that_does_not_read_is_bounded(
    kind: Any, size: int
) -> None:
    """Shared pieces wait without a copy; joined pieces in the transport are one copy."""
    shared, watch = b"x" * size, Pushed()
    wire, connection = unread(kind, watch)
    for _ in range((8 << 20) // size):
        watch.writer.write(shared)
    for _ in range(100):
        await asyncio.sleep(0)
    assert len(wire.written) <= 48 << 10
    wire.connection = None  # somebody reads
    connection.resume_writing()
    for _ in range(1000):
        await asyncio.sleep(0)
    assert wire.written.count(b"x") == (8 << 20) // size * size


@pytest.mark.parametrize("kind", [Http1Connection, Http2Connection])
async def test_of_a_large_answer_the_transport_is_given_no_more_than_it_takes(kind: Any) -> None:
    wire, connection = unread(kind, LARGE)
    for _ in range(100):
        await asyncio.sleep(0)
    assert len(wire.written) <= 144 << 10
    wire.connection = None
    connection.resume_writing()
    for _ in range(1000):
        await asyncio.sleep(0)
    assert wire.written.count(b"x") == len(LARGE)


async def test_what_the_transport_has_not_taken_leaves_when_the_connection_is_closed() -> None:
    answer = b"x" * (60 << 10)
    watch = Pushed()
    wire, connection = unread(Http1Connection, watch)
    for _ in range(10):
        watch.writer.write(answer)
    await asyncio.sleep(0)
    assert connection.blocked
    watch.writer.end()
    wire.connection = None
    connection.resume_writing()
    for _ in range(1000):
        await asyncio.sleep(0)
    assert wire.written.count(b"x") == 10 * len(answer)
    assert wire.written.endswith(b"0\r\n\r\n")
