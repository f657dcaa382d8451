"""Tests of the proxy that simulates a failing network."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from tools.chaos.proxy import Proxy


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    """Yield a proxy in front of an echo server."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.CancelledError):
            while data := await reader.read(100):
                writer.write(data)
        writer.transport.abort()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    found = Proxy(server.sockets[0].getsockname()[1])
    await found.start()
    yield found
    await found.close()
    server.close()
    await asyncio.sleep(0.01)


async def said(proxy: Proxy, text: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(text)
    return reader, writer


async def comes(reader: asyncio.StreamReader, seconds: float = 0.2) -> bytes | None:
    """Return the bytes that arrive in time, None if none do."""
    try:
        async with asyncio.timeout(seconds):
            return await reader.read(100)
    except TimeoutError:
        return None


async def test_it_passes_on(proxy: Proxy) -> None:
    reader, writer = await said(proxy, b"hello")
    assert await comes(reader, 5) == b"hello"
    writer.close()


@pytest.mark.parametrize("answers_only", [False, True])
async def test_what_is_held_comes_when_it_is_healed(proxy: Proxy, answers_only: bool) -> None:
    reader, writer = await said(proxy, b"before")
    assert await comes(reader, 5) == b"before"
    proxy.hold(answers_only=answers_only)
    writer.write(b"held")
    late_reader, late_writer = await said(proxy, b"new")
    assert await comes(reader) is None
    assert await comes(late_reader) is None
    proxy.heal()
    assert await comes(reader, 5) == b"held"
    assert await comes(late_reader, 5) == b"new"
    writer.close()
    late_writer.close()


async def test_connections_that_are_cut_end_and_new_ones_too(proxy: Proxy) -> None:
    reader, writer = await said(proxy, b"a")
    assert await comes(reader, 5) == b"a"
    proxy.cut()
    with contextlib.suppress(ConnectionError):
        assert await comes(reader, 5) == b""
    late_reader, late_writer = await said(proxy, b"a")
    with contextlib.suppress(ConnectionError):
        assert await comes(late_reader, 5) == b""
    writer.close()
    late_writer.close()


async def test_members_that_are_shunned_are_told_by_their_first_request(proxy: Proxy) -> None:
    proxy.shun(frozenset({"ab12"}))
    held, writer = await said(proxy, b"GET / HTTP/1.1\r\nX-Server-From: ab12\r\n\r\n")
    passed, other = await said(proxy, b"GET / HTTP/1.1\r\nX-Server-From: cd34\r\n\r\n")
    assert b"cd34" in (await comes(passed, 5) or b"")
    assert await comes(held) is None
    writer.close()
    other.close()
