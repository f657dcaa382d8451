"""Requests over pooled connections, directly and through a proxy."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

import pytest

from steersman.net.client import transport as transports
from steersman.net.client.answer import BadAnswer
from steersman.net.client.dial import DialError
from steersman.net.client.proxy_environment import ProxyEnvironment
from steersman.net.client.tls import Protocols
from steersman.net.client.transport import Address, Transport, bounded
from steersman.net.message import BodyAborted
from tests.net.client.origin import OK, Gateway, Origin

DIRECT = ProxyEnvironment({})


@pytest.fixture
def transport(client_context: Callable[..., ssl.SSLContext]) -> Transport:
    context = client_context()
    return Transport(lambda _: context, "localhost", DIRECT)


async def get(transport: Transport, origin: Origin, method: str = "GET") -> bytes | None:
    answer = await transport.send(Address("127.0.0.1", origin.port), method, "/", [("Host", "localhost")])
    return await bounded(answer, 100, 20)


async def test_a_connection_carries_many_requests(transport: Transport, origin: Origin) -> None:
    for _ in range(10):
        assert await get(transport, origin) == b"ok"
    assert (origin.connections, len(origin.requests)) == (1, 10)
    transport.close()


@pytest.mark.slow
async def test_a_thousand_calls_leave_few_connections(transport: Transport, origin: Origin) -> None:
    for _ in range(10):
        await asyncio.gather(*(get(transport, origin) for _ in range(100)))
    assert len(origin.requests) == 1_000
    assert len(origin.open) <= 25
    transport.close()


async def test_one_that_says_that_it_closes_is_left(transport: Transport, origin: Origin) -> None:
    origin.answer = OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    for _ in range(3):
        assert await get(transport, origin) == b"ok"
    assert origin.connections == 3


async def test_a_request_without_a_body_is_sent_again_if_the_connection_was_old(
    transport: Transport, origin: Origin
) -> None:
    await get(transport, origin)
    for each in list(origin.open):
        each.transport.abort()  # without a word of TLS
    assert await get(transport, origin) == b"ok"
    assert origin.connections == 2


async def test_what_may_have_been_done_is_not_sent_again(transport: Transport, origin: Origin) -> None:
    origin.answer = b""
    with pytest.raises(BadAnswer, match="EOF"):
        await get(transport, origin, "DELETE")
    assert len(origin.requests) == 1


async def test_other_certificates_take_other_connections(
    origin: Origin, client_context: Callable[..., ssl.SSLContext]
) -> None:
    contexts = [client_context(), client_context()]
    transport = Transport(lambda _: contexts[0], "localhost", DIRECT)
    await get(transport, origin)
    contexts.reverse()
    await get(transport, origin)
    assert origin.connections == 2
    transport.close()


async def test_few_addresses_are_remembered(
    transport: Transport, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transports, "MOST_ADDRESSES", 2)
    for host in ("127.0.0.1", "127.0.0.2", "127.0.0.3"):
        transport._connections(Address(host, origin.port))
    assert list(transport._pools) == [Address(f"127.0.0.{last}", origin.port) for last in (2, 3)]


async def test_a_long_answer_is_none(transport: Transport, origin: Origin) -> None:
    origin.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n" + b"x" * 200
    assert await get(transport, origin) is None
    origin.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nX: close\r\n\r\nx"
    with pytest.raises(BodyAborted):
        await get(transport, origin)


async def test_requests_go_through_a_proxy(origin: Origin, client_context: Callable[..., ssl.SSLContext]) -> None:
    gateway = Gateway(origin)
    async with gateway.serving():
        proxies = ProxyEnvironment({"HTTPS_PROXY": f"http://me:secret@127.0.0.1:{gateway.port}"})
        context = client_context()
        transport = Transport(lambda _: context, "localhost", proxies)
        for _ in range(3):
            answer = await transport.send(Address("192.0.2.1", 8443), "GET", "/", [("Host", "localhost")])
            assert await bounded(answer, 100, 20) == b"ok"
        assert gateway.heads == [
            b"CONNECT 192.0.2.1:8443 HTTP/1.1\r\nHost: 192.0.2.1:8443\r\n"
            b"Proxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\n"
        ]
        transport.close()


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "Proxy Authentication Required"),
        (b"HTTP/1.1 500\r\n\r\n", "unknown status code 500"),
        (b"", "EOF"),
        (b"HTTP/1.1 200 OK\r\n\r\nmore", "malformed answer of the proxy to CONNECT"),
    ],
)
async def test_a_proxy_that_refuses_is_told_of(
    origin: Origin, client_context: Callable[..., ssl.SSLContext], said: bytes, text: str
) -> None:
    gateway = Gateway(origin)
    gateway.answer = said
    async with gateway.serving():
        proxies = ProxyEnvironment({"HTTPS_PROXY": f"http://127.0.0.1:{gateway.port}"})
        context = client_context()
        transport = Transport(lambda _: context, "localhost", proxies)
        with pytest.raises(DialError, match=text):
            await transport.send(Address("192.0.2.1", 8443), "GET", "/", [("Host", "localhost")])


async def test_a_proxy_that_is_not_there_is_told_of(client_context: Callable[..., ssl.SSLContext]) -> None:
    context = client_context()
    transport = Transport(lambda _: context, "localhost", ProxyEnvironment({"HTTPS_PROXY": "http://127.0.0.1:1"}))
    with pytest.raises(DialError, match=r"proxyconnect tcp: dial tcp 127\.0\.0\.1:1: connect: connection refused"):
        await transport.send(Address("192.0.2.1", 8443), "GET", "/", [("Host", "localhost")])


def untouched(_: Protocols) -> ssl.SSLContext:
    raise AssertionError("there is no TLS")


async def test_a_plain_request_tells_a_proxy_its_url() -> None:
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(OK)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        proxies = ProxyEnvironment({"HTTP_PROXY": f"http://me:secret@127.0.0.1:{port}"})
        transport = Transport(untouched, "", proxies)
        answer = await transport.send(Address("192.0.2.1", 80, secure=False), "GET", "/x?y", [("Host", "192.0.2.1")])
        assert await bounded(answer, 100, 20) == b"ok"
    assert heads == [
        b"GET http://192.0.2.1:80/x?y HTTP/1.1\r\nHost: 192.0.2.1\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\n"
    ]


async def test_a_place_is_found_for_each_connection(
    origin: Origin, client_context: Callable[..., ssl.SSLContext]
) -> None:
    context = client_context()
    asked: list[Address] = []

    async def locate(address: Address) -> Address:
        asked.append(address)
        return Address("127.0.0.1", origin.port)

    transport = Transport(lambda _: context, "localhost", DIRECT, locate=locate)
    for _ in range(2):
        answer = await transport.send(Address("hook.ns.svc", 443), "GET", "/", [("Host", "localhost")])
        assert await bounded(answer, 100, 20) == b"ok"
    assert (asked, origin.connections) == ([Address("hook.ns.svc", 443)], 1)
    transport.close()


async def test_what_is_asked_for_after_the_end_keeps_nothing(transport: Transport, origin: Origin) -> None:
    transport.close()
    for _ in range(2):
        assert await get(transport, origin) == b"ok"
    assert origin.connections == 2
