"""HTTP/2 over real sockets, with a client of raw frames: responses and flow control."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from steersman.net.http2 import frames
from steersman.net.http2.frames import ErrorCode, Setting
from steersman.net.limits import Limits
from steersman.net.message import BodyAborted, BodyTooLarge, Request, Response
from tests.net.listening import ListeningServer

WIDE = {Setting.INITIAL_WINDOW_SIZE: 1 << 24}


async def echo(request: Request) -> Response:
    """Answer with a description of the request."""
    body = await request.body.read(1 << 26)
    text = f"{request.method} {request.path} {request.query} {request.host} {request.version}|".encode()
    return Response(200, [("content-type", "text/plain")], text + body)


class Pushed:
    """A body that the test writes."""

    def __init__(self) -> None:
        self.writer: Any = None
        self.opened, self.over = asyncio.Event(), asyncio.Event()

    def start(self, writer: Any) -> None:
        self.writer = writer
        self.opened.set()

    def closed(self) -> None:
        assert not self.over.is_set()
        self.over.set()


async def test_a_get_over_tls_is_answered(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    client = await http2(await serve(echo, tls=True), tls=True)
    answer = await client.answer(client.request("GET", "/a?b=c", ("accept", "x")))
    headers = dict(answer.headers)
    assert answer.status == 200
    assert answer.body == b"GET /a b=c localhost 2|"
    assert headers["content-length"] == str(len(answer.body))
    assert headers["content-type"] == "text/plain"
    assert headers["date"].endswith("GMT")


async def test_repeated_requests_are_each_seen_as_sent(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    seen = []

    async def handler(request: Request) -> Response:
        seen.append(dict(request.headers))
        request.headers.pop("authorization", None)
        return Response(200, [], request.path.encode())

    client = await http2(await serve(handler))
    token = ("authorization", "Bearer t")
    # Repeated fields become one-byte references; another request between them moves the references.
    paths = ["/a", "/a", "/a", "/b", "/a", "/b", "/b", "/a", "/a"]
    streams = [client.request("GET", path, token) for path in paths]
    answers = await client.answers(*streams)
    assert [answers[stream].body.decode() for stream in streams] == paths
    assert seen == [{"authorization": "Bearer t"}] * len(paths)


async def test_the_same_block_means_another_request_once_the_table_has_moved(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    client = await http2(await serve(echo))
    blocks = []
    for path in ("/a", "/a", "/b", "/b", "/a", "/b"):
        block = client.encoder.encode([(":method", "GET"), (":scheme", "https"), (":path", path)])
        blocks.append(block)
        client.writer.write(frames.headers(client.next_id, block, frames.END_STREAM, 16384))
        answer = await client.answer(client.next_id)
        assert answer.body.startswith(b"GET %b " % path.encode())
        client.next_id += 2
    assert blocks[1] == blocks[3]


async def test_requests_are_served_at_the_same_time(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    both = asyncio.Barrier(2)

    async def handler(request: Request) -> Response:
        await both.wait()
        return Response(200)

    client = await http2(await serve(handler))
    answers = await client.answers(client.request(), client.request())
    assert [answer.status for answer in answers.values()] == [200, 200]


async def test_a_body_larger_than_all_windows_arrives(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    limits = Limits(stream_window=100_000, connection_window=150_000)
    client = await http2(await serve(echo, limits=limits), settings=WIDE, window=1 << 24)
    settings = frames.parse_settings((await client.until(frames.SETTINGS)).payload)
    assert dict(settings)[Setting.INITIAL_WINDOW_SIZE] == limits.first_window
    total, sent, room = 1_000_000, 0, {0: 150_000, 1: limits.first_window}
    stream = client.request("POST", "/", ("content-length", str(total)), end=False)
    assert (await client.until(frames.WINDOW_UPDATE)).payload == (150_000 - 65535).to_bytes(4)
    while sent < total:
        size = min(16384, total - sent, room[0], room[stream])
        if not size:
            frame = await client.until(frames.WINDOW_UPDATE)
            room[frame.stream_id] += int.from_bytes(frame.payload)
            continue
        client.data(stream, b"x" * size, end=sent + size == total)
        sent += size
        room[0] -= size
        room[stream] -= size
    answer = await client.answer(stream)
    assert answer.body.endswith(b"|" + b"x" * total)


async def test_padding_counts_against_the_windows_and_is_given_back(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    limits = Limits(stream_window=70_000, connection_window=70_000)
    client = await http2(await serve(echo, limits=limits))
    stream = client.request("POST", "/", end=False)
    padded = frames.frame(frames.DATA, frames.PADDED, stream, b"\xff" + b"a" + bytes(255))
    for _ in range(1000):
        client.writer.write(padded)
        await client.writer.drain()
        if _ % 100 == 0:
            await client.ping()
    client.data(stream, b"", end=True)
    assert (await client.answer(stream)).body.endswith(b"|" + b"a" * 1000)


async def test_nothing_is_sent_beyond_the_clients_windows(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, [], [b"x" * 1000] * 200)

    client = await http2(await serve(handler), settings={Setting.INITIAL_WINDOW_SIZE: 10_000})
    stream = client.request()
    await client.until(frames.HEADERS)
    got = 0
    while got < 10_000:
        got += len((await client.until(frames.DATA)).payload)
    assert got == 10_000
    await client.ping()
    client.writer.write(frames.settings({Setting.INITIAL_WINDOW_SIZE: 10_500}))
    assert len((await client.until(frames.DATA)).payload) == 500
    client.writer.write(frames.window_update(stream, 1 << 20))
    while got < 65535 - 500:
        got += len((await client.until(frames.DATA)).payload)
    assert got + 500 == 65535
    await client.ping()
    client.writer.write(frames.window_update(0, 1 << 20))
    while got < 200_000 - 500:
        frame = await client.until(frames.DATA)
        got += len(frame.payload)
    assert frame.flags & frames.END_STREAM


async def test_a_shrunken_window_goes_below_zero_and_recovers(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    body = Pushed()

    async def handler(request: Request) -> Response:
        return Response(200, [], body)

    client = await http2(await serve(handler))
    stream = client.request()
    await asyncio.wait_for(body.opened.wait(), 5)
    body.writer.write(b"x" * 5000)
    assert len((await client.until(frames.DATA)).payload) == 5000
    client.writer.write(frames.settings({Setting.INITIAL_WINDOW_SIZE: 0}))
    await client.ping()
    body.writer.write(b"y" * 10)
    body.writer.end()
    assert body.writer.buffered == 10
    client.writer.write(frames.window_update(stream, 5000))
    await client.ping()
    assert body.writer.buffered == 10
    client.writer.write(frames.window_update(stream, 10))
    frame = await client.until(frames.DATA)
    assert (frame.payload, frame.flags) == (b"y" * 10, frames.END_STREAM)
    await asyncio.wait_for(body.over.wait(), 5)


async def test_large_answers_take_turns(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, [], b"x" * 500_000)

    client = await http2(await serve(handler), settings=WIDE, window=1 << 24)
    first, second = client.request(), client.request()
    order = []
    while second not in order:  # the first may be under way before the other is read
        order = [(await client.until(frames.DATA)).stream_id]
    for _ in range(39):
        order.append((await client.until(frames.DATA)).stream_id)
    assert abs(order.count(first) - order.count(second)) <= 2


async def test_larger_frames_are_sent_if_the_client_takes_them(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, [], b"x" * 60_000)

    client = await http2(await serve(handler), settings={Setting.MAX_FRAME_SIZE: 1 << 20})
    client.request()
    assert len((await client.until(frames.DATA)).payload) == 60_000


async def test_writes_of_one_turn_leave_together(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    bodies = [Pushed(), Pushed()]
    left = iter(bodies)

    async def handler(request: Request) -> Response:
        return Response(200, [], next(left))

    client = await http2(await serve(handler))
    streams = [client.request(), client.request()]
    for body in bodies:
        await asyncio.wait_for(body.opened.wait(), 5)
    for n in range(3):
        for body in bodies:
            body.writer.write(b"%d" % n)
    got = [(await client.until(frames.DATA)) for _ in range(6)]
    assert [(frame.stream_id, frame.payload) for frame in got] == [
        (stream, b"%d" % n) for n in range(3) for stream in streams
    ]
    bodies[0].writer.end()
    assert (await client.until(frames.DATA)).flags == frames.END_STREAM
    assert bodies[0].over.is_set()
    assert not bodies[1].over.is_set()
    bodies[1].writer.abort()
    assert await client.reset(streams[1]) == ErrorCode.INTERNAL_ERROR
    assert bodies[1].over.is_set()
    bodies[1].writer.write(b"too late")
    await client.ping()


async def test_a_reader_that_takes_nothing_costs_bounded_memory_and_shows_in_buffered(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    body = Pushed()

    async def handler(request: Request) -> Response:
        return Response(200, [], body)

    client = await http2(await serve(handler), settings={Setting.INITIAL_WINDOW_SIZE: (1 << 31) - 1})
    client.writer.write(frames.window_update(0, (1 << 31) - 1 - 65535))
    client.request()
    await asyncio.wait_for(body.opened.wait(), 5)
    client.writer.transport.pause_reading()
    written = 0
    while body.writer.buffered < 1_000_000 and written < 100_000_000:
        body.writer.write(bytes(10_000))
        written += 10_000
        await asyncio.sleep(0)
    assert body.writer.buffered >= 1_000_000
    draining = asyncio.ensure_future(body.writer.drain())
    await asyncio.sleep(0)
    assert not draining.done()
    client.writer.transport.resume_reading()
    got = 0
    while got < written:
        got += len((await client.until(frames.DATA)).payload)
    await asyncio.wait_for(draining, 5)
    assert body.writer.buffered == 0


async def test_heads_wait_too_while_the_client_does_not_read(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, [], b"x" * 8000)

    server = await serve(handler, limits=Limits(write_high_water=64 << 10))
    client = await http2(server, settings=WIDE, window=1 << 30)
    await client.ping()
    client.writer.transport.pause_reading()
    requested = 0
    while server.statistics().open_streams < 50 and requested < 20_000:
        client.request()
        requested += 1
        if requested % 20 == 0:
            await client.writer.drain()
            await asyncio.sleep(0)
    assert server.statistics().open_streams >= 50
    client.writer.transport.resume_reading()
    streams = range(1, 2 * requested, 2)
    answers = await client.answers(*streams, credit=False)
    refused = [answer for answer in answers.values() if answer.reset == ErrorCode.REFUSED_STREAM]
    assert all(answer.body == b"x" * 8000 for answer in answers.values() if answer not in refused)


async def test_a_client_reset_cancels_the_handler_and_ends_a_pushed_body(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()
    body = Pushed()

    async def handler(request: Request) -> Response:
        if request.path == "/watch":
            return Response(200, [], body)
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return Response(200)

    server = await serve(handler)
    client = await http2(server)
    streams = [client.request(), client.request("GET", "/watch")]
    await asyncio.wait_for(started.wait(), 5)
    await asyncio.wait_for(body.opened.wait(), 5)
    for stream in streams:
        client.writer.write(frames.rst_stream(stream, ErrorCode.CANCEL))
    await asyncio.wait_for(cancelled.wait(), 5)
    await asyncio.wait_for(body.over.wait(), 5)
    await client.ping()
    assert server.statistics().open_streams == 0
    assert server.statistics().running == 0


async def test_a_disconnect_cancels_handlers_iterators_and_bodies(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    ended: asyncio.Queue[str] = asyncio.Queue()
    body = Pushed()

    async def pieces() -> AsyncIterator[bytes]:
        try:
            yield b"x"
            await asyncio.Event().wait()
        finally:
            ended.put_nowait("iterator")

    async def handler(request: Request) -> Response:
        if request.path == "/pushed":
            return Response(200, [], body)
        if request.path == "/iterator":
            return Response(200, [], pieces())
        try:
            await request.body.read(100)
        except (asyncio.CancelledError, BodyAborted):
            ended.put_nowait("handler")
            raise
        return Response(200)

    client = await http2(await serve(handler))
    client.request("GET", "/pushed")
    client.request("GET", "/iterator")
    client.request("POST", "/", end=False)
    await client.until(frames.DATA)
    client.close()
    assert {await asyncio.wait_for(ended.get(), 5) for _ in range(2)} == {"handler", "iterator"}
    await asyncio.wait_for(body.over.wait(), 5)


async def test_expect_continue_is_answered_when_the_handler_reads(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    client = await http2(await serve(echo))
    stream = client.request("PUT", "/", ("expect", "100-continue"), end=False)
    frame = await client.until(frames.HEADERS)
    assert dict(client.decoder.decode(frame.payload))[":status"] == "100"
    client.data(stream, b"abc", end=True)
    answer = await client.answer(stream)
    assert answer.status == 200
    assert answer.body.endswith(b"|abc")


async def test_an_answer_before_the_body_is_complete_stops_the_client(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    async def handler(request: Request) -> Response:
        try:
            await request.body.read(10)
        except BodyTooLarge:
            return Response(413, [], b"too large")
        return Response(200)

    client = await http2(await serve(handler))
    stream = client.request("POST", "/", ("content-length", "50000"), end=False)
    assert (await client.answer(stream)).status == 413
    assert await client.reset(stream) == ErrorCode.NO_ERROR
    client.data(stream, b"x" * 10_000)  # on its way when the reset came
    client.data(stream, b"", end=True)
    assert (await client.answer(client.request())).status == 200


@pytest.mark.parametrize("trailers", [False, True])
async def test_an_answer_before_the_body_needs_no_reset_if_the_rest_comes_soon(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]], trailers: bool
) -> None:
    async def handler(request: Request) -> Response:
        return Response(400, [], b"refused")

    client = await http2(await serve(handler))
    early = client.request("POST", "/", end=False)
    assert (await client.answer(early)).status == 400
    if trailers:
        client.writer.write(frames.headers(early, client.encoder.encode([("x", "y")]), frames.END_STREAM, 16384))
    else:
        client.data(early, b"on its way", end=True)
    later = client.request("POST", "/", end=False)
    reset = await client.until(frames.RST_STREAM)  # those of both would come at the same time
    assert (reset.stream_id, int.from_bytes(reset.payload)) == (later, ErrorCode.NO_ERROR)


async def test_head_and_bodiless_statuses_have_no_data(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    async def handler(request: Request) -> Response:
        return Response(int(request.path[1:]), [], b"body")

    client = await http2(await serve(handler))
    head = await client.answer(client.request("HEAD", "/200"))
    assert (head.status, head.body, dict(head.headers)["content-length"]) == (200, b"", "4")
    for status in ("204", "304"):
        answer = await client.answer(client.request("GET", f"/{status}"))
        assert (answer.status, answer.body) == (int(status), b"")
        assert "content-length" not in dict(answer.headers)


async def test_trailers_are_tolerated(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    client = await http2(await serve(echo))
    stream = client.request("POST", "/", end=False)
    client.data(stream, b"abc")
    trailers = client.encoder.encode([("x-trailer", "1")])
    client.writer.write(frames.headers(stream, trailers, frames.END_STREAM, 16384))
    assert (await client.answer(stream)).body.endswith(b"|abc")


async def test_a_failing_handler_is_500_and_a_failing_iterator_a_reset(
    serve: Callable[..., Awaitable[ListeningServer]],
    http2: Callable[..., Awaitable[Any]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"x"
        raise RuntimeError("broken iterator")

    async def handler(request: Request) -> Response:
        if request.path == "/iterator":
            return Response(200, [], pieces())
        raise RuntimeError("broken handler")

    client = await http2(await serve(handler))
    with caplog.at_level(logging.ERROR):
        answer = await client.answer(client.request())
        assert (answer.status, answer.body) == (500, b"Internal Server Error")
        answer = await client.answer(client.request("GET", "/iterator"))
        assert (answer.body, answer.reset) == (b"x", ErrorCode.INTERNAL_ERROR)
    assert "broken handler" in caplog.text
    assert "broken iterator" in caplog.text


async def test_a_head_longer_than_a_frame_is_continued_both_ways(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, [("x-long", request.headers["x-long"])])

    client = await http2(await serve(handler))
    value = "".join(chr(33 + n % 90) for n in range(40_000))
    client.request("GET", "/", ("x-long", value))
    frame = await client.until(frames.HEADERS)
    assert not frame.flags & frames.END_HEADERS
    block = frame.payload
    while not frame.flags & frames.END_HEADERS:
        frame = await client.until(frames.CONTINUATION)
        block += frame.payload
    assert ("x-long", value) in client.decoder.decode(block)


async def test_response_close_announces_the_end_and_finishes_other_streams(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    gate = asyncio.Event()

    async def handler(request: Request) -> Response:
        if request.path == "/slow":
            await gate.wait()
        return Response(200, [], b"x", close=request.path == "/close")

    client = await http2(await serve(handler, limits=Limits(linger=0.05)))
    slow = client.request("GET", "/slow")
    client.request("GET", "/close")
    frame = await client.until(frames.GOAWAY)
    assert frame.payload == (3).to_bytes(4) + (0).to_bytes(4)
    client.request("GET", "/ignored")
    gate.set()
    assert (await client.answer(slow)).body == b"x"
    await client.ended()


async def test_a_client_that_limits_the_header_table_is_told_that_it_is_unused(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    client = await http2(await serve(echo), settings={Setting.HEADER_TABLE_SIZE: 0})
    client.request()
    frame = await client.until(frames.HEADERS)
    assert frame.payload[0] == 0x20
    client.decoder.max_allowed_table_size = 0
    assert dict(client.decoder.decode(frame.payload))[":status"] == "200"


@pytest.mark.parametrize("eager", [True, False])
async def test_counts_are_told(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]], eager: bool
) -> None:
    server = await serve(echo, eager=eager)
    client = await http2(server)
    await client.answer(client.request())
    statistics = server.statistics()
    assert (statistics.open_http2, statistics.open_http1, statistics.open_streams) == (1, 0, 0)
    assert (statistics.requests, statistics.accepted, statistics.running) == (1, 1, 0)


async def test_the_h2_library_agrees(
    serve: Callable[..., Awaitable[ListeningServer]], client_context: Callable[..., ssl.SSLContext]
) -> None:
    """A whole conversation with an independent implementation, which checks every frame."""
    import h2.config
    import h2.connection
    import h2.events

    server = await serve(echo, tls=True)
    reader, writer = await asyncio.open_connection(*server.address, ssl=client_context("h2"))
    peer = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
    peer.initiate_connection()
    for n in range(20):
        stream = peer.get_next_available_stream_id()
        fields = [(":method", "POST"), (":scheme", "https"), (":authority", "h"), (":path", f"/{n}"), ("x-n", str(n))]
        peer.send_headers(stream, fields)
        peer.send_data(stream, b"d" * 2000, end_stream=True)
    ended, size = 0, 0
    while ended < 20:
        writer.write(peer.data_to_send())
        received: list[Any] = peer.receive_data(await asyncio.wait_for(reader.read(65536), 5))
        for event in received:
            if isinstance(event, h2.events.DataReceived):
                size += len(event.data)
                peer.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.ResponseReceived):
                fields_of: list[Any] = list(event.headers)
                assert (":status", "200") in fields_of
            elif isinstance(event, h2.events.StreamEnded):
                ended += 1
    writer.close()
    assert size > 20 * 2000


async def test_bodies_that_nobody_reads_yet_leave_the_window_to_those_that_are_read(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    one_at_a_time = asyncio.Semaphore(1)

    async def handler(request: Request) -> Response:
        async with one_at_a_time:
            return Response(200, [], b"%d" % len(await request.body.read(1 << 20)))

    limits = Limits(stream_window=60_000, first_window=5_000, connection_window=150_000)
    client = await http2(await serve(handler, limits=limits))
    streams = [client.request("POST", end=False) for _ in range(12)]
    left = dict.fromkeys(streams, 100_000)
    windows = dict.fromkeys(streams, 5_000)
    windows[0] = frames.DEFAULT_WINDOW
    answered: set[int] = set()
    while len(answered) < len(streams):
        for stream in streams:
            while (size := min(left[stream], windows[stream], windows[0], 10_000)) > 0:
                left[stream] -= size
                windows[stream] -= size
                windows[0] -= size
                client.data(stream, bytes(size), end=not left[stream])
        frame = await client.frame()
        assert frame is not None
        if frame.kind == frames.WINDOW_UPDATE:
            windows[frame.stream_id] += int.from_bytes(frame.payload)
        elif frame.kind == frames.DATA and frame.payload:
            assert frame.payload == b"100000"
            answered.add(frame.stream_id)
