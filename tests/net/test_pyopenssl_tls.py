"""TLS that requests client certificates and accepts any."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from steersman.net.message import Request, Response
from steersman.net.tls import Certificate, ServerTLS
from tests.net.tls_client import ask, der, who

LARGE = 3 << 20


@pytest.fixture
def asking(authority: Any, certificate: Certificate) -> ServerTLS:
    return ServerTLS([certificate], client_ca_files=[str(authority.file)], defers_verification=True)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_any_certificate_comes_to_the_handler(
    serve: Callable[..., Awaitable[Any]],
    client_context: Callable[..., ssl.SSLContext],
    authority: Any,
    asking: ServerTLS,
    tmp_path: Path,
    version: ssl.TLSVersion,
) -> None:
    server = await serve(who, tls=asking)
    own = authority.issue("system:node:a", client=True)
    stranger = type(authority)(tmp_path, "stranger").issue("someone", client=True)
    for shown in (own, stranger):
        context = client_context(certificate=shown)
        context.maximum_version = version
        assert (await ask(server, context))[0] == der(shown)
    assert (await ask(server, client_context()))[0] == b"none"
    assert server.statistics().tls_handshake_errors == 0


async def test_only_the_key_exchanges_that_are_given_are_made(
    serve: Callable[..., Awaitable[Any]], client_context: Callable[..., ssl.SSLContext], certificate: Certificate
) -> None:
    server = await serve(who, tls=ServerTLS([certificate], defers_verification=True, curves=("P-521", "P-384")))
    for curve, is_known in (("secp384r1", True), ("secp521r1", True), ("prime256v1", False)):
        context = client_context()
        context.set_ecdh_curve(curve)
        if is_known:
            assert (await ask(server, context))[0] == b"none"
        else:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await ask(server, context)
    with pytest.raises(ssl.SSLError, match="does not have all of the key exchanges FOO"):
        ServerTLS([certificate], defers_verification=True, curves=("FOO",))
    ServerTLS(
        [certificate], defers_verification=True, curves=("X25519MLKEM768", "SecP256r1MLKEM768", "SecP384r1MLKEM1024")
    )


async def test_a_client_that_does_not_believe_the_server_is_counted_and_no_failure_of_the_server(
    serve: Callable[..., Awaitable[Any]], asking: ServerTLS, caplog: pytest.LogCaptureFixture
) -> None:
    server = await serve(who, tls=asking)

    def disbelieve() -> None:
        sock = socket.create_connection(server.address, timeout=10)
        client = ssl.create_default_context().wrap_socket(
            sock, server_hostname="localhost", do_handshake_on_connect=False
        )
        with pytest.raises(ssl.SSLCertVerificationError):  # which sends an alert, as asyncio's own client does not
            client.do_handshake()
        with socket.socket(fileno=client.detach()) as bare, contextlib.suppress(ConnectionError):
            bare.settimeout(10)
            while bare.recv(1024):  # until the server has ended the connection
                pass

    await asyncio.to_thread(disbelieve)
    assert server.statistics().tls_handshake_errors == 1
    assert not [each for each in caplog.records if each.name == "asyncio"]


async def test_large_bodies_go_both_ways(
    serve: Callable[..., Awaitable[Any]], client_context: Callable[..., ssl.SSLContext], asking: ServerTLS
) -> None:
    async def echo(request: Request) -> Response:
        return Response(200, [], await request.body.read(LARGE + 1))

    server = await serve(echo, tls=asking)
    reader, writer = await asyncio.open_connection(*server.address, ssl=client_context(), server_hostname="localhost")
    body = bytes(range(256)) * (LARGE // 256)
    writer.write(b"POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body))
    writer.write(body)
    answer = await asyncio.wait_for(reader.read(), 20)
    assert answer.partition(b"\r\n\r\n")[2] == body
    writer.close()


async def test_records_that_come_byte_by_byte(
    serve: Callable[..., Awaitable[Any]], client_context: Callable[..., ssl.SSLContext], asking: ServerTLS
) -> None:
    server = await serve(who, tls=asking)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    reader, writer = await asyncio.open_connection(*server.address)

    async def through(step: Any) -> Any:
        while True:
            try:
                done = step()
            except ssl.SSLWantReadError:
                done = None
            for each in outgoing.read():
                writer.write(bytes([each]))
                await writer.drain()
            if done is not None:
                return done
            data = await asyncio.wait_for(reader.read(65536), 5)
            assert data
            incoming.write(data)

    def shake() -> bool:
        client.do_handshake()
        return True

    await through(shake)
    await through(lambda: client.write(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"))
    answer = await through(lambda: client.read(65536))
    assert answer.startswith(b"HTTP/1.1 200 OK")
    writer.close()


async def test_http2_is_agreed_on(
    serve: Callable[..., Awaitable[Any]], client_context: Callable[..., ssl.SSLContext], asking: ServerTLS
) -> None:
    server = await serve(who, tls=asking)
    _, writer = await asyncio.open_connection(
        *server.address, ssl=client_context("h2", "http/1.1"), server_hostname="localhost"
    )
    assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "h2"
    writer.close()


async def test_plain_http_is_answered_in_plain(serve: Callable[..., Awaitable[Any]], asking: ServerTLS) -> None:
    server = await serve(who, tls=asking)
    reader, writer = await asyncio.open_connection(*server.address)
    writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    assert b"Client sent an HTTP request to an HTTPS server" in await asyncio.wait_for(reader.read(), 5)
    writer.close()


async def test_a_handshake_that_fails_is_counted(
    serve: Callable[..., Awaitable[Any]],
    client_context: Callable[..., ssl.SSLContext],
    asking: ServerTLS,
    eventually: Callable[[Callable[[], bool]], Awaitable[None]],
) -> None:
    server = await serve(who, tls=asking)
    context = ssl.create_default_context()  # which trusts others
    with pytest.raises(ssl.SSLError):
        await ask(server, context)
    await eventually(lambda: server.statistics().tls_handshake_errors == 1)


async def test_names_choose_certificates_and_files_may_change(
    serve: Callable[..., Awaitable[Any]],
    client_context: Callable[..., ssl.SSLContext],
    authority: Any,
    certificate: Certificate,
    tmp_path: Path,
) -> None:
    other = authority.issue("other.example.org")
    used = Certificate(str(tmp_path / "used.crt"), str(tmp_path / "used.key"))
    shutil.copy(certificate.cert_file, used.cert_file)
    shutil.copy(certificate.key_file, used.key_file)
    tls = ServerTLS([used, other], defers_verification=True)
    server = await serve(who, tls=tls)
    assert (await ask(server, client_context()))[1] == der(certificate)
    assert (await ask(server, client_context(), "other.example.org"))[1] == der(other)
    anew = authority.issue("localhost")
    shutil.copy(anew.cert_file, used.cert_file)
    shutil.copy(anew.key_file, used.key_file)
    tls.refresh(now=True)
    assert (await ask(server, client_context()))[1] == der(anew)


def test_files_that_cannot_be_used_are_told_of(tmp_path: Path, certificate: Certificate) -> None:
    (tmp_path / "a").write_text("damaged")
    with pytest.raises(ssl.SSLError):
        ServerTLS([Certificate(str(tmp_path / "a"), certificate.key_file)], defers_verification=True)
    with pytest.raises(OSError, match="No such file"):
        ServerTLS([Certificate(str(tmp_path / "none"), certificate.key_file)], defers_verification=True)
