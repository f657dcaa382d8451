"""Starting and stopping servers, and many connections."""

from __future__ import annotations

import asyncio
import resource
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from steersman.net.http1 import connection as http1_module
from steersman.net.http2 import frames
from steersman.net.http2.frames import ErrorCode
from steersman.net.limits import Limits
from steersman.net.message import Request, Response
from steersman.net.server import HttpServer

GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


class Gate:
    """A handler that answers once it is opened."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.entered = asyncio.Event()

    async def __call__(self, request: Request) -> Response:
        self.entered.set()
        await self.open.wait()
        return Response(200, [], b"done")


async def test_drain_lets_requests_finish_on_both_protocols(
    serve: Callable[..., Awaitable[Any]],
    http1: Callable[..., Awaitable[Any]],
    http2: Callable[..., Awaitable[Any]],
) -> None:
    gate = Gate()
    server = await serve(gate, limits=Limits(linger=0.05))
    one, two, idle = await http1(server), await http2(server), await http1(server)
    one.send(GET)
    stream = two.request()
    await two.ping()
    draining = asyncio.ensure_future(server.drain(5))
    assert int.from_bytes((await two.until(frames.GOAWAY)).payload[4:8]) == ErrorCode.NO_ERROR
    assert await idle.rest() == b""
    with pytest.raises(ConnectionError):
        await asyncio.open_connection(*server.address)
    gate.open.set()
    status, headers, body = await one.response()
    assert (status, headers["connection"], body) == (200, "close", b"done")
    assert (await two.answer(stream)).body == b"done"
    await asyncio.wait_for(draining, 2)
    assert server.statistics().open_http2 == 0


async def test_drain_closes_a_connection_when_its_client_has_read_what_was_sent(
    serve: Callable[..., Awaitable[Any]], http2: Callable[..., Awaitable[Any]]
) -> None:
    gate = Gate()
    server = await serve(gate, limits=Limits(linger=3600.0))
    idle, busy = await http2(server), await http2(server)
    stream = busy.request()
    await asyncio.gather(idle.ping(), busy.ping(), gate.entered.wait())
    draining = asyncio.ensure_future(server.drain(3600))
    gate.open.set()
    assert (await busy.answer(stream)).body == b"done"
    for client in (idle, busy):
        asked = await client.until(frames.PING)
        assert not asked.flags & frames.ACK
        client.writer.write(frames.frame(frames.PING, frames.ACK, 0, bytes(8)))  # the answer to another one
        client.writer.write(frames.frame(frames.PING, frames.ACK, 0, asked.payload))
        await client.ended()
    await asyncio.wait_for(draining, 10)


async def test_drain_does_not_wait_for_the_goodbye_of_a_client_that_keeps_its_connection_for_later(
    serve: Callable[..., Awaitable[Any]], client_context: Callable[..., ssl.SSLContext]
) -> None:
    """A blocking client between two requests reads nothing, so it never answers TLS's close_notify."""

    async def ok(_: Request) -> Response:
        return Response(200, [], b"ok")

    server = await serve(ok, limits=Limits(tls_shutdown_timeout=3600.0), tls=True)
    context, address = client_context("http/1.1"), server.address

    def connected() -> ssl.SSLSocket:
        made = context.wrap_socket(socket.create_connection(address), server_hostname="localhost")
        made.sendall(GET)
        while b"\r\n\r\n" not in (answer := made.recv(65536)):
            assert answer
        return made

    client = await asyncio.to_thread(connected)
    await asyncio.wait_for(server.drain(3600), 10)
    assert client.recv(1) == b""
    client.close()


async def test_drain_closes_a_connection_whose_response_began_before_it(
    serve: Callable[..., Awaitable[Any]], http1: Callable[..., Awaitable[Any]]
) -> None:
    more = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b"first"
        await more.wait()
        yield b"last"

    async def handler(request: Request) -> Response:
        return Response(200, [], body())

    server = await serve(handler)
    client = await http1(server)
    client.send(GET)
    status, headers = await client.head()
    assert (status, headers.get("connection")) == (200, None)
    draining = asyncio.ensure_future(server.drain(30))
    await asyncio.sleep(0)
    more.set()
    assert (await client.rest()).endswith(b"4\r\nlast\r\n0\r\n\r\n")
    await asyncio.wait_for(draining, 5)


async def test_drain_cancels_what_does_not_finish_in_time(
    serve: Callable[..., Awaitable[Any]], http1: Callable[..., Awaitable[Any]]
) -> None:
    gate = Gate()
    server = await serve(gate)
    client = await http1(server)
    client.send(GET)
    await asyncio.wait_for(gate.entered.wait(), 5)
    await asyncio.wait_for(server.drain(0.05), 3)
    assert server.statistics().running == 0
    assert await client.rest() == b""


async def test_close_waits_for_cancelled_handlers_to_clean_up(
    serve: Callable[..., Awaitable[Any]], http1: Callable[..., Awaitable[Any]]
) -> None:
    entered, cleaned = asyncio.Event(), asyncio.Event()

    async def handler(request: Request) -> Response:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.02)
            cleaned.set()
        return Response(200)

    server = await serve(handler)
    client = await http1(server)
    client.send(GET)
    await asyncio.wait_for(entered.wait(), 5)
    await server.close()
    assert cleaned.is_set()


async def test_a_server_starts_once(serve: Callable[..., Awaitable[Any]]) -> None:
    server = await serve(Gate())
    with pytest.raises(RuntimeError):
        await server.start("127.0.0.1", 0)


async def test_one_connection_too_many_is_closed(
    serve: Callable[..., Awaitable[Any]], http1: Callable[..., Awaitable[Any]]
) -> None:
    gate = Gate()
    gate.open.set()
    server = await serve(gate, limits=Limits(max_connections=2))
    clients = [await http1(server) for _ in range(2)]
    for client in clients:
        client.send(GET)
        assert (await client.response())[0] == 200
    extra = await http1(server)
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await extra.head()
    assert server.statistics().refused == 1


async def test_a_server_that_was_never_started_can_be_closed() -> None:
    server = HttpServer(Gate())
    await server.drain(1)
    await server.close()
    assert server.statistics().accepted == 0


@pytest.mark.slow
async def test_two_thousand_idle_connections_cost_little_and_answer(
    serve: Callable[..., Awaitable[Any]], http1: Callable[..., Awaitable[Any]]
) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 5000:
        pytest.skip("too few file descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (5000, hard))
    gate = Gate()
    gate.open.set()
    server = await serve(gate)
    clients = [await http1(server) for _ in range(2000)]
    for client in clients:
        client.send(GET)
    for client in clients:
        assert (await client.response())[0] == 200
    assert server.statistics().open_http1 == 2000


async def test_a_head_that_never_ends_does_not_keep_the_server(
    serve: Callable[..., Awaitable[Any]],
    http1: Callable[..., Awaitable[Any]],
    monkeypatch: pytest.MonkeyPatch,
    eventually: Callable[[Callable[[], bool]], Awaitable[None]],
) -> None:
    monkeypatch.setattr(http1_module, "LONGEST_AT_THE_END", 0.05)
    server = await serve(Gate(), limits=Limits(idle_timeout=0.2, linger=0.01))
    client = await http1(server)
    client.send(b"GET / HT")
    await eventually(lambda: server.statistics().open_http1 == 1)
    draining = asyncio.create_task(server.drain(60))
    assert await client.rest() == b""
    await asyncio.wait_for(draining, 10)


async def _told(address: tuple[str, int]) -> bytes:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    answer = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    return answer.partition(b"\r\n\r\n")[2]


async def _places(request: Request) -> Response:
    return Response(200, [], f"{request.peer.host} {request.peer.reached[0]}".encode())


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::"])
async def test_all_addresses_are_those_of_both_families(host: str) -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has one family only")
    server = HttpServer(_places)
    try:
        _, port = await server.start(host, 0)
        assert await _told(("127.0.0.1", port)) == b"127.0.0.1 127.0.0.1"
        assert await _told(("::1", port)) == b"::1 ::1"
    finally:
        await server.close()


async def test_an_address_is_listened_on_alone() -> None:
    server = HttpServer(_places)
    try:
        _, port = await server.start("::1", 0)
        assert await _told(("::1", port)) == b"::1 ::1"
        with pytest.raises(ConnectionRefusedError):
            await _told(("127.0.0.1", port))
    finally:
        await server.close()


async def test_a_port_is_shared_only_by_those_who_say_so() -> None:
    first, second, third = HttpServer(_places), HttpServer(_places), HttpServer(_places)
    try:
        _, port = await first.start("127.0.0.1", 0, shares_port=True)
        await second.start("127.0.0.1", port, shares_port=True)
        with pytest.raises(OSError, match="in use"):
            await third.start("127.0.0.1", port)
    finally:
        await first.close()
        await second.close()


async def test_kept_connections_are_answered_until_they_know_that_others_are_to_be_made(
    serve: Callable[..., Awaitable[Any]],
    http1: Callable[..., Awaitable[Any]],
    http2: Callable[..., Awaitable[Any]],
) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, [], b"here")

    server = await serve(handler)
    kept, multiplexed = await http1(server), await http2(server)
    kept.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert (await kept.response())[2] == b"here"
    leaving = asyncio.ensure_future(server.send_elsewhere(10))
    await multiplexed.until(frames.GOAWAY)
    kept.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    status, headers, body = await kept.response()
    assert (status, headers["connection"], body) == (200, "close", b"here")
    multiplexed.close()
    await asyncio.wait_for(leaving, 5)
