"""Closed connections leave nothing in memory, without the help of the garbage collector."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from steersman.net.body import IncomingBody
from steersman.net.message import Response


async def upgraded(request: Any) -> Any:
    async def take_over(connection: Any) -> None:
        await connection.write(b"taken")
        await connection.read()

    if request.headers.get("upgrade"):
        return Response(101, [("connection", "upgrade"), ("upgrade", "x")], upgrade=take_over)
    return Response(200, [], b"ok")


async def _http1(server: Any, http1: Any, http2: Any, *, tls: Any) -> Any:
    client = await http1(server, tls=tls)
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    await client.response()
    return client


async def _http2(server: Any, http1: Any, http2: Any, *, tls: Any) -> Any:
    client = await http2(server, tls=tls)
    await client.answer(client.request())
    return client


async def _silent(server: Any, http1: Any, http2: Any, *, tls: Any) -> Any:
    return await http1(server, tls=tls)


async def _upgrade(server: Any, http1: Any, http2: Any, *, tls: Any) -> Any:
    client = await http1(server, tls=tls)
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
    await client.head()
    await client.reader.readexactly(5)
    return client


async def _waiting(server: Any, http1: Any, http2: Any, *, tls: Any) -> Any:
    client = await http1(server, tls=tls)
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nab")
    return client


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("use", [_http1, _http2, _silent, _upgrade, _waiting], ids=lambda each: each.__name__)
async def test_a_connection_that_has_ended_is_forgotten_at_once(
    serve: Callable[..., Awaitable[Any]],
    http1: Callable[..., Awaitable[Any]],
    http2: Callable[..., Awaitable[Any]],
    eventually: Callable[[Callable[[], bool]], Awaitable[None]],
    use: Any,
    tls: bool,
) -> None:
    server = await serve(upgraded, tls=tls)
    gc.collect()
    gc.disable()
    try:
        client = await use(server, http1, http2, tls=tls)
        await eventually(lambda: len(server.core.connections) == 1)
        (known,) = map(weakref.ref, server.core.connections)
        client.writer.transport.abort()
        await eventually(lambda: not server.core.connections and not server.statistics().running)
        await asyncio.sleep(0)
        await eventually(lambda: known() is None)
    finally:
        gc.enable()


def _bodies() -> int:
    return sum(isinstance(each, IncomingBody) for each in gc.get_objects())


async def test_a_request_that_is_answered_is_forgotten_with_its_body(
    serve: Callable[..., Awaitable[Any]],
    http1: Callable[..., Awaitable[Any]],
    http2: Callable[..., Awaitable[Any]],
) -> None:
    async def handler(request: Any) -> Any:
        await request.body.read(100)
        return Response(200)

    server = await serve(handler)
    first, second = await http1(server), await http2(server)
    gc.collect()
    gc.disable()
    try:
        before = _bodies()
        for _ in range(20):
            first.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab")
            await first.response()
            stream = second.request("POST", end=False)
            await second.ping()
            second.data(stream, b"ab", end=True)
            await second.answer(stream)
        assert _bodies() - before <= 1
    finally:
        gc.enable()
