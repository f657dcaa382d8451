"""Connections through HTTP CONNECT proxies, over TLS and over Unix sockets."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from steersman.net.client.dial import DialError
from steersman.net.client.http_connect import HTTPConnect, SocketProxy, TLSProxy, direct
from steersman.net.client.transport import Address, Transport, bounded
from steersman.net.tls import Certificate
from tests.net.client.origin import Gateway, Origin
from tests.net.client.tunnel_events import Events

Contexts = Callable[..., ssl.SSLContext]


def _server_context(certificate: Certificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.cert_file, certificate.key_file)
    return context


async def test_tls_goes_through_tls(origin: Origin, certificate: Certificate, client_context: Contexts) -> None:
    gateway, events, context = Gateway(origin), Events(), client_context()
    async with gateway.serving(_server_context(certificate)):
        proxy = TLSProxy("127.0.0.1", gateway.port, f"127.0.0.1:{gateway.port}", client_context(), "localhost")
        transport = Transport(lambda _: context, "localhost", leave=HTTPConnect(proxy, events))
        for _ in range(3):
            answer = await transport.send(Address("no.such.host", 8443), "GET", "/", [("Host", "localhost")])
            assert await bounded(answer, 100, 20) == b"ok"
        transport.close()
    assert gateway.heads == [b"CONNECT no.such.host:8443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"]
    assert events.told == ["started", "made"]
    assert origin.connections == 1


async def test_what_was_judged_is_what_is_asked_for(origin: Origin, client_context: Contexts, tmp_path: Path) -> None:
    gateway, events, context = Gateway(origin), Events(), client_context()
    async with gateway.serving_at(tmp_path / "s"):
        leave = HTTPConnect(SocketProxy(str(tmp_path / "s")), events)
        transport = Transport(lambda _: context, "localhost", leave=leave)
        place = Address("pod.example.org", 443, addresses=("2001:db8::1",))
        answer = await transport.send(place, "GET", "/", [("Host", "localhost")])
        assert await bounded(answer, 100, 20) == b"ok"
        transport.close()
    assert gateway.heads == [b"CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"]


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (
            b"HTTP/1.1 403 Forbidden\r\n\r\n",
            "proxy error from {0} while dialing 192.0.2.1:1, code 403: 403 Forbidden",
        ),
        (b"", "reading HTTP response from CONNECT to 192.0.2.1:1 via proxy {0} failed: unexpected EOF"),
        (
            b"HTTP/1.1 200 OK\r\n\r\nmore",
            "reading HTTP response from CONNECT to 192.0.2.1:1 via proxy {0} failed: malformed answer of the proxy to "
            "CONNECT",
        ),
    ],
)
async def test_a_proxy_that_does_not_lead_on_is_told_of(
    origin: Origin, client_context: Contexts, tmp_path: Path, said: bytes, text: str
) -> None:
    gateway, events = Gateway(origin), Events()
    gateway.answer = said
    path = str(tmp_path / "s")
    async with gateway.serving_at(tmp_path / "s"):
        with pytest.raises(DialError) as caught:
            await HTTPConnect(SocketProxy(path), events)("192.0.2.1", 1, client_context(), "localhost")
    assert str(caught.value) == text.format(path)
    assert events.told == ["started", "failed at proxy"]


async def test_a_proxy_that_cannot_be_reached_is_told_of(client_context: Contexts, tmp_path: Path) -> None:
    events = Events()
    with pytest.raises(DialError, match=r"^dial unix .*/none: connect: no such file or directory$"):
        await HTTPConnect(SocketProxy(str(tmp_path / "none")), events)("192.0.2.1", 1, None, "")
    proxy = TLSProxy("127.0.0.1", 1, "127.0.0.1:1", client_context(), "localhost")
    with pytest.raises(DialError, match=r"^dial tcp 127\.0\.0\.1:1: connect: connection refused$"):
        await HTTPConnect(proxy, events)("192.0.2.1", 1, None, "")
    assert events.told == ["started", "failed at connect"] * 2


async def test_a_proxy_must_show_its_certificate(
    origin: Origin, certificate: Certificate, client_context: Contexts
) -> None:
    gateway, events = Gateway(origin), Events()
    async with gateway.serving(_server_context(certificate)):
        proxy = TLSProxy("127.0.0.1", gateway.port, "p", client_context(), "other.example.org")
        with pytest.raises(DialError, match=r"x509: certificate is not valid for other\.example\.org"):
            await HTTPConnect(proxy, events)("192.0.2.1", 1, None, "")
    assert gateway.heads == []
    assert events.told == ["started", "failed at connect"]


async def test_directly_is_as_usual(origin: Origin, client_context: Contexts) -> None:
    context = client_context()
    transport = Transport(lambda _: context, "localhost", leave=direct)
    answer = await transport.send(Address("127.0.0.1", origin.port), "GET", "/", [("Host", "localhost")])
    assert await bounded(answer, 100, 20) == b"ok"
    transport.close()
