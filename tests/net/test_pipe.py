"""Connections within this process."""

from __future__ import annotations

import asyncio

import pytest

from steersman.net.client.dial import connected
from steersman.net.message import Request, Response, Upgraded
from steersman.net.server import HttpServer


class _Echo(asyncio.Protocol):
    """A protocol that echoes data and records its callbacks."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.told: list[str] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        assert self.transport is not None
        self.transport.write(data.upper())

    def eof_received(self) -> bool:
        self.told.append("eof")
        return False

    def pause_writing(self) -> None:
        self.told.append("pause")

    def resume_writing(self) -> None:
        self.told.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.told.append("lost")


async def test_bytes_go_both_ways_and_each_side_knows_where_it_is() -> None:
    echo = _Echo()
    connection = connected(lambda: echo, ("172.16.0.2", 10250))
    await connection.write(b"hello")
    assert await connection.read() == b"HELLO"
    assert echo.transport is not None
    assert echo.transport.get_extra_info("sockname") == ("172.16.0.2", 10250)


async def test_what_was_written_before_the_end_is_read() -> None:
    echo = _Echo()
    connection = connected(lambda: echo, ("a", 1))
    assert echo.transport is not None
    echo.transport.write(b"last words")
    echo.transport.close()
    assert await connection.read() == b"last words"
    assert await connection.read() == b""
    assert echo.told == ["lost"]


async def test_the_other_side_is_told_of_the_end() -> None:
    echo = _Echo()
    connection = connected(lambda: echo, ("a", 1))
    connection.close()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert echo.told[0] == "eof"
    await asyncio.sleep(0)
    assert echo.told == ["eof", "lost"]
    with pytest.raises(ConnectionResetError):
        await connection.write(b"x")


async def test_who_writes_more_than_is_read_has_to_wait() -> None:
    echo = _Echo()
    connection = connected(lambda: echo, ("a", 1))
    assert echo.transport is not None
    for _ in range(20):
        echo.transport.write(bytes(64 << 10))
        await asyncio.sleep(0)
    assert echo.told == ["pause"]
    taken = 0
    while taken < 20 * (64 << 10):
        taken += len(await connection.read())
    await asyncio.sleep(0)
    assert echo.told == ["pause", "resume"]


async def test_a_server_takes_connections_without_listening() -> None:
    async def handler(request: Request) -> Response:
        async def take_over(connection: Upgraded) -> None:
            await connection.write(await connection.read())
            connection.close()

        if request.headers.get("upgrade"):
            return Response(101, [("connection", "Upgrade"), ("upgrade", "x")], upgrade=take_over)
        return Response(200, [], repr(request.peer.reached).encode())

    server = HttpServer(handler)
    server.begin()
    connection = connected(server.accept, ("10.128.0.2", 80))
    await connection.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (await connection.read()).endswith(b"('10.128.0.2', 80)")
    await connection.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
    assert b"101 Switching" in await connection.read()
    await connection.write(b"raw")
    assert await connection.read() == b"raw"
    assert await connection.read() == b""
    await server.close()
    with pytest.raises(RuntimeError):
        server.accept()
