"""TLS: server names, client certificates, changing files, and failing handshakes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import ssl
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from steersman.net.log_levels import NOTICE
from steersman.net.tls import Certificate, ServerTLS
from steersman.work import followed_files
from tests.net.listening import ListeningServer
from tests.net.tls_client import ask, der, who


async def test_a_verified_client_certificate_is_given_to_the_handler(
    serve: Callable[..., Awaitable[ListeningServer]],
    client_context: Callable[..., ssl.SSLContext],
    authority: Any,
    certificate: Certificate,
) -> None:
    tls = ServerTLS([certificate], client_ca_files=[str(authority.file)])
    server = await serve(who, tls=tls)
    user = authority.issue("system:node:a", client=True)
    assert (await ask(server, client_context(certificate=user)))[0] == der(user)
    assert (await ask(server, client_context()))[0] == b"none"


async def test_a_certificate_of_a_foreign_authority_fails_the_handshake_and_is_counted(
    serve: Callable[..., Awaitable[ListeningServer]],
    client_context: Callable[..., ssl.SSLContext],
    authority: Any,
    certificate: Certificate,
    tmp_path: Path,
    eventually: Callable[[Callable[[], bool]], Awaitable[None]],
) -> None:
    stranger = type(authority)(tmp_path, "stranger").issue("someone", client=True)
    tls = ServerTLS([certificate], client_ca_files=[str(authority.file)])
    server = await serve(who, tls=tls)
    # With TLS 1.3 the client learns of the refusal when it reads, and may see a plain end.
    with contextlib.suppress(ssl.SSLError, ConnectionError):
        assert (await ask(server, client_context(certificate=stranger)))[0] == b""
    await eventually(lambda: server.statistics().tls_handshake_errors == 1)
    assert server.statistics().open_http1 == 0


@pytest.mark.parametrize(
    "request_line", [b"GET /api HTTP/1.1", b"HEAD / HTTP/1.1", b"POST /api HTTP/1.1", b"PUT / HTTP/1.0"]
)
async def test_plain_http_is_answered_as_go_does_and_closed(
    serve: Callable[..., Awaitable[ListeningServer]],
    client_context: Callable[..., ssl.SSLContext],
    certificate: Certificate,
    request_line: bytes,
    eventually: Callable[[Callable[[], bool]], Awaitable[None]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = await serve(who, tls=ServerTLS([certificate]))
    reader, writer = await asyncio.open_connection(*server.address)
    writer.write(request_line + b"\r\nHost: h\r\n\r\n" + b"x" * 5000)
    answer = await asyncio.wait_for(reader.read(), 5)
    assert answer == b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
    writer.close()
    await eventually(lambda: server.statistics().tls_handshake_errors == 1)
    assert server.statistics().open_http1 == 0
    assert (await ask(server, client_context()))[0] == b"none"
    assert not caplog.records


async def test_what_is_neither_tls_nor_http_gets_no_answer(
    serve: Callable[..., Awaitable[ListeningServer]],
    certificate: Certificate,
    eventually: Callable[[Callable[[], bool]], Awaitable[None]],
) -> None:
    server = await serve(who, tls=ServerTLS([certificate]))
    reader, writer = await asyncio.open_connection(*server.address)
    writer.write(b"HELLO there, is anybody listening?\r\n\r\n")
    with contextlib.suppress(ConnectionError):
        assert await asyncio.wait_for(reader.read(), 5) == b""
    writer.close()
    await eventually(lambda: server.statistics().tls_handshake_errors == 1)


async def test_the_certificate_follows_the_name_asked_for(
    serve: Callable[..., Awaitable[ListeningServer]],
    client_context: Callable[..., ssl.SSLContext],
    authority: Any,
    certificate: Certificate,
) -> None:
    other = authority.issue("other.example.org")
    wild = authority.issue("wild.example.net")
    wild = Certificate(wild.cert_file, wild.key_file, ("*.example.net",))
    server = await serve(who, tls=ServerTLS([certificate, other, wild]))
    assert (await ask(server, client_context(), "other.example.org"))[1] == der(other)
    assert (await ask(server, client_context(), "wild.example.net"))[1] == der(wild)
    assert (await ask(server, client_context(), "127.0.0.1"))[1] == der(certificate)
    assert (await ask(server, client_context(), "localhost"))[1] == der(certificate)


async def test_names_that_are_given_count_before_those_in_certificates(
    serve: Callable[..., Awaitable[ListeningServer]],
    client_context: Callable[..., ssl.SSLContext],
    authority: Any,
    certificate: Certificate,
) -> None:
    first = authority.issue("a.example.org", file="named-1")
    second = authority.issue("a.example.org", file="named-2")
    third = authority.issue("b.example.org", file="named-3")
    given = Certificate(third.cert_file, third.key_file, ("a.example.org", "*.example.org", "127.0.0.1"))
    later = Certificate(second.cert_file, second.key_file, ("a.example.org",))
    tls = ServerTLS([certificate, first, given, later], address="127.0.0.1")
    server = await serve(who, tls=tls)
    any_name = client_context()
    any_name.check_hostname = False
    assert (await ask(server, any_name, "a.example.org"))[1] == der(third)
    assert (await ask(server, any_name, "c.example.org"))[1] == der(third)
    assert (await ask(server, any_name, "127.0.0.1"))[1] == der(third)  # asks for no name, at the address
    assert (await ask(server, any_name, "localhost"))[1] == der(certificate)
    server = await serve(who, tls=ServerTLS([certificate, later, first]))
    assert (await ask(server, any_name, "a.example.org"))[1] == der(second)


async def test_changed_files_are_used_and_broken_ones_are_not(
    serve: Callable[..., Awaitable[ListeningServer]],
    client_context: Callable[..., ssl.SSLContext],
    authority: Any,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, second = authority.issue("localhost", file="first"), authority.issue("localhost", file="second")
    used = Certificate(str(tmp_path / "tls.crt"), str(tmp_path / "tls.key"))

    def put(certificate: Certificate) -> None:
        shutil.copy(certificate.cert_file, used.cert_file)
        shutil.copy(certificate.key_file, used.key_file)

    caplog.set_level(NOTICE)  # as by default
    put(first)
    tls = ServerTLS([used])
    server = await serve(who, tls=tls)
    assert (await ask(server, client_context()))[1] == der(first)
    put(second)
    tls.refresh(now=True)
    assert (await ask(server, client_context()))[1] == der(second)
    shutil.copy(first.cert_file, used.cert_file)  # the key is still the other's
    tls.refresh(now=True)
    assert (await ask(server, client_context()))[1] == der(second)
    assert [each.getMessage()[:18] for each in caplog.records] == ["TLS files reloaded", "TLS files changed "]
    assert "cannot be used" in caplog.text
    shutil.copy(first.key_file, used.key_file)
    tls.refresh(now=True)
    assert (await ask(server, client_context()))[1] == der(first)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def _encrypted(path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    sealed = serialization.BestAvailableEncryption(b"secret")
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, sealed))


@pytest.mark.parametrize("put", [_pipe, Path.mkdir, _sparse, _encrypted, lambda path: path.symlink_to(path)])
@pytest.mark.parametrize("defers_verification", [False, True])
def test_what_is_no_usable_file_takes_no_time_and_is_told_once(
    authority: Any,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    put: Callable[[Path], None],
    defers_verification: bool,
) -> None:
    """OpenSSL would wait for a writer of a pipe, and for a password from a terminal."""
    issued = authority.issue("localhost", file="replaced")
    key = tmp_path / "tls.key"
    shutil.copy(issued.key_file, key)
    tls = ServerTLS([Certificate(issued.cert_file, str(key))], defers_verification=defers_verification)
    before = tls._contexts.value
    key.unlink()
    put(key)
    for _ in range(3):
        tls.refresh(now=True)
    assert tls._contexts.value is before
    assert len(caplog.records) == 1
    assert "keeping the ones loaded before" in caplog.text


async def test_files_are_looked_at_in_a_handshake_but_not_in_every_one(
    certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = ServerTLS([certificate])
    looks: list[object] = []
    monkeypatch.setattr(followed_files, "stamp", looks.append)
    tls.refresh()
    assert not looks
    now = time.monotonic()
    monkeypatch.setattr(followed_files, "monotonic", lambda: now + 2.5)
    tls.refresh()
    assert looks == [certificate.cert_file, certificate.key_file]


async def test_tls_1_2_is_served_and_1_1_is_not(
    serve: Callable[..., Awaitable[ListeningServer]], client_context: Callable[..., ssl.SSLContext]
) -> None:
    server = await serve(who, tls=True)
    context = client_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert (await ask(server, context))[2] == "TLSv1.2"
    old = client_context()
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await ask(server, old)


async def test_what_is_no_tls_is_counted_and_does_no_harm(
    serve: Callable[..., Awaitable[ListeningServer]],
    client_context: Callable[..., ssl.SSLContext],
    eventually: Callable[[Callable[[], bool]], Awaitable[None]],
) -> None:
    server = await serve(who, tls=True)
    reader, writer = await asyncio.open_connection(*server.address)
    writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    await asyncio.wait_for(reader.read(), 5)
    writer.close()
    await eventually(lambda: server.statistics().tls_handshake_errors == 1)
    assert (await ask(server, client_context()))[0] == b"none"


def test_missing_files_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        ServerTLS([Certificate(str(tmp_path / "a"), str(tmp_path / "b"))])
