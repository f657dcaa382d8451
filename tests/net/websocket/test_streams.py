"""WebSockets with an independent client: handshake, messages, and all kinds of endings."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosedError, ConnectionClosedOK, InvalidStatus
from websockets.protocol import Protocol, Side

from steersman.net.message import BodyAborted, BodyWriter, Headers, Request, Response, Upgraded
from steersman.net.websocket.streams import handshake, is_websocket_request, serve_stream
from tests.net.listening import ListeningServer

HELLO = {
    "upgrade": "websocket",
    "connection": "keep-alive, Upgrade",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    "origin": "https://example.com",
}


class Told:
    """A stream that the test writes."""

    def __init__(self) -> None:
        self.writer: asyncio.Future[BodyWriter] = asyncio.get_running_loop().create_future()
        self.ended = asyncio.Event()

    def start(self, writer: BodyWriter) -> None:
        self.writer.set_result(writer)

    def closed(self) -> None:
        self.ended.set()


async def opened(
    serve: Any, told: Told, binary: Callable[[bytes], bytes] | None = None, **options: Any
) -> tuple[ListeningServer, ClientConnection]:
    """Return a server that sends `told` to its client, and the client."""

    async def handler(request: Request) -> Response:
        assert is_websocket_request(request.headers)
        response = handshake(request.headers)

        async def take_over(connection: Upgraded) -> None:
            await serve_stream(connection, told, binary)

        if response.status == 101:
            response.upgrade = take_over
        return response

    server = await serve(handler)
    host, port = server.address
    options.setdefault("origin", "https://example.com")
    return server, await connect(f"ws://{host}:{port}/", **options)


async def test_each_write_is_a_message_and_the_end_is_orderly(serve: Callable[..., Awaitable[ListeningServer]]) -> None:
    told = Told()
    _, client = await opened(serve, told)
    writer = await told.writer
    writer.write(b"one\n")
    writer.write("zwei ü".encode())
    writer.end()
    writer.write(b"too late")
    assert [message async for message in client] == ["one\n", "zwei ü"]
    assert client.close_code == 1000
    await asyncio.wait_for(told.ended.wait(), 5)


async def test_bytes_are_binary_messages(serve: Callable[..., Awaitable[ListeningServer]]) -> None:
    told = Told()
    _, client = await opened(serve, told, lambda data: data[4:])
    (await told.writer).write(b"\0\0\0\2\xff\xfe")
    assert await client.recv() == b"\xff\xfe"
    await client.close()


@pytest.mark.parametrize("size", [125, 126, 65535, 65536, 200_000])
async def test_messages_of_any_length(serve: Callable[..., Awaitable[ListeningServer]], size: int) -> None:
    told = Told()
    _, client = await opened(serve, told)
    (await told.writer).write(b"x" * size)
    assert await client.recv() == "x" * size
    await client.close()


async def test_what_waits_for_clients_that_do_not_read_is_shared_by_them() -> None:
    """Each connection holds references to the pieces, and one write of its own."""
    shared, written = b"x" * (1 << 20), []

    class Full:
        async def write(self, data: bytes) -> None:
            written.append(len(data))
            await asyncio.Event().wait()

        async def read(self) -> bytes:
            await asyncio.Event().wait()
            return b""

        def close(self) -> None: ...

    told = Told()
    serving = asyncio.ensure_future(serve_stream(Full(), told))
    writer = await told.writer
    before = sys.getrefcount(shared)
    for _ in range(4):
        writer.write(shared)
    while not written:  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert written[0] <= 64 << 10
    assert sys.getrefcount(shared) - before == 4
    assert writer.buffered > 3 << 20
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


async def test_the_client_may_close_and_ping_and_talk(serve: Callable[..., Awaitable[ListeningServer]]) -> None:
    told = Told()
    _, client = await opened(serve, told)
    await asyncio.wait_for(await client.ping(), 5)
    await client.send("is anybody there?")
    (await told.writer).write(b"yes")
    assert await client.recv() == "yes"
    await client.close()
    assert client.close_code == 1000
    await asyncio.wait_for(told.ended.wait(), 5)


async def test_a_client_that_goes_away_ends_the_stream(serve: Callable[..., Awaitable[ListeningServer]]) -> None:
    told = Told()
    _, client = await opened(serve, told)
    await told.writer
    client.transport.abort()
    await asyncio.wait_for(told.ended.wait(), 5)
    with pytest.raises(BodyAborted):
        await (await told.writer).drain()


async def test_a_message_that_is_too_long_ends_the_connection(serve: Callable[..., Awaitable[ListeningServer]]) -> None:
    told = Told()
    _, client = await opened(serve, told)
    with contextlib.suppress(ConnectionClosedError):
        await client.send("x" * (2 << 20))
    with pytest.raises(ConnectionClosedError):
        await client.recv()
    assert client.close_code == 1009
    await asyncio.wait_for(told.ended.wait(), 5)


async def test_an_aborted_stream_is_cut_off(serve: Callable[..., Awaitable[ListeningServer]]) -> None:
    told = Told()
    _, client = await opened(serve, told)
    (await told.writer).abort()
    with pytest.raises(ConnectionClosedError):
        await client.recv()
    await asyncio.wait_for(told.ended.wait(), 5)


async def test_a_slow_reader_is_waited_for(serve: Callable[..., Awaitable[ListeningServer]]) -> None:
    told = Told()
    _, client = await opened(serve, told, max_queue=1)
    writer = await told.writer
    piece = b"x" * 65536
    for _ in range(300):
        writer.write(piece)
    assert writer.buffered > 1 << 20
    waiting = asyncio.create_task(writer.drain())
    await asyncio.sleep(0)
    assert not waiting.done()
    for _ in range(300):
        assert len(await client.recv()) == len(piece)
    await asyncio.wait_for(waiting, 5)
    assert writer.buffered == 0
    await client.close()


async def test_one_protocol_is_accepted_as_offered(serve: Callable[..., Awaitable[ListeningServer]]) -> None:
    told = Told()
    _, client = await opened(serve, told, subprotocols=["v4.channel.k8s.io"])
    assert client.subprotocol == "v4.channel.k8s.io"
    (await told.writer).end()
    with pytest.raises(ConnectionClosedOK):
        await client.recv()


async def test_a_client_without_an_origin_is_refused(serve: Callable[..., Awaitable[ListeningServer]]) -> None:
    with pytest.raises(InvalidStatus) as caught:
        await opened(serve, Told(), origin=None)
    assert caught.value.response.status_code == 403


@pytest.mark.parametrize(
    ("change", "status", "body"),
    [
        ({}, 101, b""),
        ({"sec-websocket-key": ""}, 400, b"mismatch challenge/response"),
        ({"sec-websocket-version": "8"}, 400, b"missing or bad WebSocket Version"),
        ({"origin": "null"}, 403, b""),
        ({"origin": "https://a/%zz"}, 403, b""),
        ({"origin": "/path"}, 101, b""),
        ({"sec-websocket-protocol": "a, b"}, 400, b""),
        ({"sec-websocket-protocol": "a"}, 101, b""),
    ],
)
def test_handshakes(change: dict[str, str], status: int, body: bytes) -> None:
    answer = handshake(Headers.from_pairs({**HELLO, **change}.items()))
    assert (answer.status, answer.body) == (status, body)
    accept = [value for name, value in answer.headers if name == "sec-websocket-accept"]
    assert accept == (["s3pPLMBiTxaQ9kYGzzhZRbK+xOo="] if status == 101 else [])


@pytest.mark.parametrize(
    ("upgrade", "connection", "expected"),
    [
        ("websocket", "Upgrade", True),
        ("WebSocket", "keep-alive, upgrade", True),
        ("websocket", "keep-alive", False),
        ("SPDY/3.1", "Upgrade", False),
        ("", "", False),
    ],
)
def test_who_asks_for_a_websocket(upgrade: str, connection: str, expected: bool) -> None:
    assert is_websocket_request(Headers.from_pairs([("upgrade", upgrade), ("connection", connection)])) is expected


async def test_a_websocket_that_is_over_leaves_no_circle(serve: Callable[..., Awaitable[ListeningServer]]) -> None:
    """Reference cycles stay in memory until a full garbage collection, which may never happen."""

    def left() -> int:
        return sum(isinstance(each, Protocol) and each.side is Side.SERVER for each in gc.get_objects())

    gc.collect()
    before = left()
    gc.disable()
    try:
        told = Told()
        _, client = await opened(serve, told)
        (await told.writer).end()
        assert left() == before + 1
        assert [message async for message in client] == []
        await asyncio.wait_for(told.ended.wait(), 5)
        told.writer.cancel()
        told.writer = asyncio.get_running_loop().create_future()  # the other one has the writer
        async with asyncio.timeout(5):
            while left() > before:  # noqa: ASYNC110 - nothing tells that it is gone
                await asyncio.sleep(0.01)
    finally:
        gc.enable()


def test_of_several_connection_fields_the_first_asks_for_the_upgrade() -> None:
    fields = [*((name, value) for name, value in HELLO.items() if name != "connection")]
    later = Headers.from_pairs([("connection", "keep-alive"), ("connection", "Upgrade"), *fields])
    assert is_websocket_request(later)
    assert (handshake(later).status, handshake(later).body) == (400, b"not websocket protocol")
    assert (
        handshake(Headers.from_pairs([("connection", "Upgrade"), ("connection", "keep-alive"), *fields])).status == 101
    )
