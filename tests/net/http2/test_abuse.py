"""Malicious HTTP/2 clients, within the rules or against them: answers follow RFC 9113, and costs are bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from steersman.net.http2 import frames
from steersman.net.http2.frames import ErrorCode, Setting
from steersman.net.limits import Limits
from steersman.net.message import Request, Response
from tests.net.listening import ListeningServer

QUICK = Limits(linger=0.05, max_streams=10)


async def ok(request: Request) -> Response:
    """Read the body and answer without one."""
    await request.body.read(1 << 20)
    return Response(200)


async def hang(request: Request) -> Response:
    """Never answer."""
    await asyncio.Event().wait()
    return Response(200)


F = frames.frame
CONNECTION_FAULTS = {
    "frame too large": (F(frames.DATA, 0, 1, bytes(16385)), ErrorCode.FRAME_SIZE_ERROR),
    "data on stream 0": (F(frames.DATA, 0, 0, b"x"), ErrorCode.PROTOCOL_ERROR),
    "data on an idle stream": (F(frames.DATA, 0, 5, b"x"), ErrorCode.PROTOCOL_ERROR),
    "headers on stream 0": (F(frames.HEADERS, 4, 0, b"\x82"), ErrorCode.PROTOCOL_ERROR),
    "headers on an even stream": (F(frames.HEADERS, 4, 2, b"\x82"), ErrorCode.PROTOCOL_ERROR),
    "padding longer than the frame": (F(frames.HEADERS, 0xC, 1, b"\x05\x82"), ErrorCode.PROTOCOL_ERROR),
    "priority cut off": (F(frames.HEADERS, 0x24, 1, b"\x82"), ErrorCode.FRAME_SIZE_ERROR),
    "headers depend on themselves": (F(frames.HEADERS, 0x24, 1, b"\0\0\0\x01\0\x82"), ErrorCode.PROTOCOL_ERROR),
    "priority on stream 0": (F(frames.PRIORITY, 0, 0, bytes(5)), ErrorCode.PROTOCOL_ERROR),
    "reset on an idle stream": (F(frames.RST_STREAM, 0, 5, bytes(4)), ErrorCode.PROTOCOL_ERROR),
    "reset of wrong length": (F(frames.RST_STREAM, 0, 1, bytes(3)), ErrorCode.FRAME_SIZE_ERROR),
    "settings on a stream": (F(frames.SETTINGS, 0, 1), ErrorCode.PROTOCOL_ERROR),
    "settings of wrong length": (F(frames.SETTINGS, 0, 0, bytes(5)), ErrorCode.FRAME_SIZE_ERROR),
    "settings ack with payload": (F(frames.SETTINGS, 1, 0, bytes(6)), ErrorCode.FRAME_SIZE_ERROR),
    "window setting too large": (frames.settings({Setting.INITIAL_WINDOW_SIZE: 1 << 31}), ErrorCode.FLOW_CONTROL_ERROR),
    "frame size too small": (frames.settings({Setting.MAX_FRAME_SIZE: 16383}), ErrorCode.PROTOCOL_ERROR),
    "push neither on nor off": (frames.settings({Setting.ENABLE_PUSH: 2}), ErrorCode.PROTOCOL_ERROR),
    "push promise": (F(frames.PUSH_PROMISE, 4, 1, bytes(5)), ErrorCode.PROTOCOL_ERROR),
    "ping on a stream": (F(frames.PING, 0, 1, bytes(8)), ErrorCode.PROTOCOL_ERROR),
    "ping of wrong length": (F(frames.PING, 0, 0, bytes(7)), ErrorCode.FRAME_SIZE_ERROR),
    "goaway on a stream": (F(frames.GOAWAY, 0, 1, bytes(8)), ErrorCode.PROTOCOL_ERROR),
    "window update of 0": (frames.window_update(0, 0), ErrorCode.PROTOCOL_ERROR),
    "window update of wrong length": (F(frames.WINDOW_UPDATE, 0, 0, bytes(3)), ErrorCode.FRAME_SIZE_ERROR),
    "window update on an idle stream": (frames.window_update(5, 1), ErrorCode.PROTOCOL_ERROR),
    "connection window overflow": (frames.window_update(0, (1 << 31) - 1), ErrorCode.FLOW_CONTROL_ERROR),
    "continuation of nothing": (F(frames.CONTINUATION, 4, 1, b"\x82"), ErrorCode.PROTOCOL_ERROR),
    "headers interrupted": (
        F(frames.HEADERS, 0, 1, b"\x82") + F(frames.PING, 0, 0, bytes(8)),
        ErrorCode.PROTOCOL_ERROR,
    ),
    "continuation of another stream": (
        F(frames.HEADERS, 0, 1, b"\x82") + F(frames.CONTINUATION, 4, 3, b"\x84"),
        ErrorCode.PROTOCOL_ERROR,
    ),
    "block that cannot be decoded": (F(frames.HEADERS, 5, 1, b"\xff\xff\xff\xff\xff\xff"), ErrorCode.COMPRESSION_ERROR),
    "literal without a value": (F(frames.HEADERS, 5, 1, b"\x0f\x0d"), ErrorCode.COMPRESSION_ERROR),
    "literal without a name": (F(frames.HEADERS, 5, 1, b"\x40"), ErrorCode.COMPRESSION_ERROR),
    "string longer than the block": (F(frames.HEADERS, 5, 1, b"\x04\x7f\xff\xff\xff\x0f"), ErrorCode.COMPRESSION_ERROR),
    "index that is not in the table": (F(frames.HEADERS, 5, 1, b"\xbe"), ErrorCode.COMPRESSION_ERROR),
}


@pytest.mark.parametrize("name", CONNECTION_FAULTS)
async def test_a_broken_rule_of_the_connection_ends_it(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]], name: Any
) -> None:
    data, code = CONNECTION_FAULTS[name]
    server = await serve(ok, limits=QUICK)
    client = await http2(server)
    client.writer.write(data)
    assert await client.goaway() == code
    await client.ended()


async def test_a_wrong_preface_ends_the_connection(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    client = await http2(await serve(ok, limits=QUICK), hello=False)
    client.writer.write(frames.PREFACE[:20] + b"XXXX" + frames.settings({}))
    assert await client.goaway() == ErrorCode.PROTOCOL_ERROR


async def test_a_preface_in_small_pieces_is_taken(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    client = await http2(await serve(ok), hello=False)
    for byte in frames.PREFACE + frames.settings({}):
        client.writer.write(bytes((byte,)))
        await client.writer.drain()
        await asyncio.sleep(0)
    assert (await client.answer(client.request())).status == 200


async def test_the_first_frame_must_be_settings(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    client = await http2(await serve(ok, limits=QUICK), hello=False)
    client.writer.write(frames.PREFACE + F(frames.PING, 0, 0, bytes(8)))
    assert await client.goaway() == ErrorCode.PROTOCOL_ERROR


MALFORMED = {
    "upper case name": [("X-A", "b")],
    "connection field": [("connection", "close")],
    "transfer-encoding": [("transfer-encoding", "chunked")],
    "te": [("te", "gzip")],
    "unknown pseudo field": [(":status", "200")],
    "pseudo field repeated": [(":path", "/b")],
    "pseudo field late": [("a", "b"), (":authority", "c")],
    "line feed in a value": [("a", "b\nc")],
    "zero in a value": [("a", "b\0c")],
    "empty name": [("", "b")],
    "space in a name": [("a b", "c")],
    "content-length no number": [("content-length", "+1")],
    "content-length without body": [("content-length", "1")],
}


@pytest.mark.parametrize("name", MALFORMED)
async def test_a_malformed_request_is_reset_and_the_connection_lives(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]], name: Any
) -> None:
    client = await http2(await serve(ok))
    fields = [(":method", "GET"), (":scheme", "https"), (":path", "/"), *MALFORMED[name]]
    client.writer.write(frames.headers(1, client.encoder.encode(fields), frames.END_STREAM, 16384))
    assert await client.reset(1) == ErrorCode.PROTOCOL_ERROR
    client.next_id = 3
    assert (await client.answer(client.request())).status == 200


@pytest.mark.parametrize(
    "fields",
    [
        [(":method", "GET"), (":scheme", "https")],
        [(":method", "GET"), (":path", "/")],
        [(":scheme", "https"), (":path", "/")],
        [(":method", "GET"), (":scheme", "https"), (":path", "")],
        [(":method", "GET"), (":scheme", "https"), (":path", "x")],
        [(":method", "GET"), (":scheme", "ftp"), (":path", "/")],
        [(":method", "G T"), (":scheme", "https"), (":path", "/")],
        [(":method", "CONNECT"), (":scheme", "https"), (":path", "/"), (":authority", "a")],
    ],
)
async def test_incomplete_pseudo_fields_are_malformed(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]], fields: list[Any]
) -> None:
    client = await http2(await serve(ok))
    client.writer.write(frames.headers(1, client.encoder.encode(fields), frames.END_STREAM, 16384))
    assert await client.reset(1) == ErrorCode.PROTOCOL_ERROR


@pytest.mark.parametrize(("length", "data"), [("5", b"abc"), ("2", b"abc")])
async def test_a_body_that_is_not_as_long_as_announced_is_reset(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]], length: str, data: bytes
) -> None:
    client = await http2(await serve(ok))
    stream = client.request("POST", "/", ("content-length", length), end=False)
    client.data(stream, data, end=True)
    assert await client.reset(stream) == ErrorCode.PROTOCOL_ERROR


async def test_more_data_than_the_stream_window_is_a_flow_control_error(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    client = await http2(await serve(hang, limits=Limits(stream_window=20_000)))
    stream = client.request("POST", "/", end=False)
    client.data(stream, bytes(16_000))
    client.data(stream, bytes(16_000))
    assert await client.reset(stream) == ErrorCode.FLOW_CONTROL_ERROR


async def test_more_data_than_the_connection_window_ends_the_connection(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    limits = Limits(stream_window=60_000, connection_window=70_000, linger=0.05)
    client = await http2(await serve(hang, limits=limits))
    for _ in range(3):
        stream = client.request("POST", "/", end=False)
        client.data(stream, bytes(16_000))
        client.data(stream, bytes(16_000))
    assert await client.goaway() == ErrorCode.FLOW_CONTROL_ERROR


async def test_a_stream_window_overflow_resets_the_stream(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    client = await http2(await serve(hang))
    stream = client.request()
    client.writer.write(frames.window_update(stream, (1 << 31) - 1))
    assert await client.reset(stream) == ErrorCode.FLOW_CONTROL_ERROR


async def test_window_updates_and_resets_of_closed_streams_are_no_error(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    client = await http2(await serve(ok))
    stream = client.request()
    await client.answer(stream)
    client.writer.write(frames.window_update(stream, 100) + frames.rst_stream(stream, ErrorCode.CANCEL))
    client.writer.write(F(0x42, 0, 0, b"unknown") + F(frames.SETTINGS, 0, 0, b"\0\x63\0\0\0\1"))
    assert (await client.answer(client.request())).status == 200


async def test_data_after_the_end_of_a_request_resets_the_stream(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    client = await http2(await serve(hang))
    stream = client.request()
    client.data(stream, b"more")
    assert await client.reset(stream) == ErrorCode.STREAM_CLOSED


async def test_a_stream_used_again_ends_the_connection(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    client = await http2(await serve(ok, limits=QUICK))
    await client.answer(client.request())
    client.next_id = 1
    client.request()
    assert await client.goaway() == ErrorCode.STREAM_CLOSED


async def test_streams_over_the_limit_are_refused_and_served_later(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    gate = asyncio.Event()

    async def handler(request: Request) -> Response:
        await gate.wait()
        return Response(200)

    client = await http2(await serve(handler, limits=QUICK))
    streams = [client.request() for _ in range(11)]
    assert await client.reset(streams[-1]) == ErrorCode.REFUSED_STREAM
    gate.set()
    answers = await client.answers(*streams[:-1])
    assert {answer.status for answer in answers.values()} == {200}
    assert (await client.answer(client.request())).status == 200


async def test_rapid_resets_end_the_connection_and_leave_no_handler(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    server = await serve(hang, limits=QUICK)
    client = await http2(server)
    for _ in range(3000):
        stream = client.request()
        client.writer.write(frames.rst_stream(stream, ErrorCode.CANCEL))
    assert await client.goaway() == ErrorCode.ENHANCE_YOUR_CALM
    await client.ended()
    assert server.statistics().running == 0


async def test_provoked_resets_end_the_connection_too(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    client = await http2(await serve(hang, limits=QUICK))
    for _ in range(3000):
        stream = client.request()
        client.writer.write(frames.window_update(stream, 0))
    assert await client.goaway() == ErrorCode.ENHANCE_YOUR_CALM


FLOODS = {
    "pings": F(frames.PING, 0, 0, bytes(8)),
    "settings": frames.settings({Setting.INITIAL_WINDOW_SIZE: 1000}),
    "priorities": F(frames.PRIORITY, 0, 1, bytes(5)),
    "empty data": F(frames.DATA, 0, 1),
    "unknown frames": F(0x99, 0, 0),
}


@pytest.mark.parametrize("name", FLOODS)
async def test_floods_of_frames_that_carry_nothing_end_the_connection(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]], name: Any
) -> None:
    client = await http2(await serve(hang, limits=QUICK))
    client.request("POST", "/", end=False)
    client.writer.write(FLOODS[name] * 5000)
    assert await client.goaway() == ErrorCode.ENHANCE_YOUR_CALM


async def test_endless_continuations_end_the_connection(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    client = await http2(await serve(ok, limits=Limits(max_header_list_bytes=100_000, linger=0.05)))
    client.writer.write(F(frames.HEADERS, 0, 1, b"\x82"))
    for _ in range(20):
        client.writer.write(F(frames.CONTINUATION, 0, 1, bytes(16384)))
    assert await client.goaway() == ErrorCode.ENHANCE_YOUR_CALM


async def test_empty_continuations_end_the_connection(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    client = await http2(await serve(ok, limits=QUICK))
    client.writer.write(F(frames.HEADERS, 0, 1, b"\x82") + F(frames.CONTINUATION, 0, 1) * 5000)
    assert await client.goaway() == ErrorCode.ENHANCE_YOUR_CALM


async def test_a_header_bomb_is_answered_with_431_and_ends_the_connection(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    client = await http2(await serve(ok, limits=Limits(max_header_list_bytes=50_000, linger=0.05)))
    block = client.block("GET", "/", ("x-bomb", "b" * 3000))
    bomb = block + b"\xbe" * 5000
    client.writer.write(frames.headers(1, bomb, frames.END_STREAM, 16384))
    frame = await client.until(frames.HEADERS)
    assert dict(client.decoder.decode(frame.payload))[":status"] == "431"
    assert await client.goaway() == ErrorCode.ENHANCE_YOUR_CALM


async def test_a_head_that_is_never_completed_is_closed_in_time(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    client = await http2(await serve(ok, limits=Limits(header_timeout=0.1, linger=0.05)))
    client.writer.write(F(frames.HEADERS, 0, 1, b"\x82"))
    assert await client.goaway() == ErrorCode.ENHANCE_YOUR_CALM


async def test_a_connection_without_requests_is_closed_in_time(
    serve: Callable[..., Awaitable[ListeningServer]], http2: Callable[..., Awaitable[Any]]
) -> None:
    client = await http2(await serve(ok, limits=Limits(idle_timeout=0.1, linger=0.05)))
    assert (await client.answer(client.request())).status == 200
    assert await client.goaway() == ErrorCode.NO_ERROR
    await client.ended()
