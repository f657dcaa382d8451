"""The order in which TLS handshakes begin, and clients that never send anything."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from steersman.net.acceptor import Acceptor, PendingConnection
from steersman.net.connection import Core
from steersman.net.fields import FieldCache
from steersman.net.http1 import exchange as http1_exchange
from steersman.net.http2 import hpack
from steersman.net.limits import Limits
from steersman.net.message import Request, Response

PENDING = 50


class Door:
    """An Acceptor whose "handshake" records the client's first bytes."""

    def __init__(self, **limits: Any) -> None:
        self.core = Core(
            self._never,
            Limits(**limits),
            asyncio.get_running_loop(),
            eager=True,
            h1_fields=FieldCache(http1_exchange.field),
            h2_fields=FieldCache(hpack.field),
        )
        self.begun: list[int] = []
        self.fails = False
        self._listener = socket.socket()
        self._listener.setblocking(False)
        self._listener.bind(("127.0.0.1", 0))
        self.address = self._listener.getsockname()
        self.acceptor = Acceptor(self.core, self._listener, self._shake_hands)
        self._clients = contextlib.ExitStack()

    async def _never(self, request: Request) -> Response:
        raise AssertionError("nobody asks anything")

    async def _shake_hands(self, pending: PendingConnection, sock: socket.socket) -> None:
        with sock:
            self.begun.append(int.from_bytes(sock.recv(2)))
        if self.fails:
            raise ConnectionResetError

    def knock(self, number: int | None = None) -> socket.socket:
        """Return a client that sends its number, or nothing."""
        client = self._clients.enter_context(socket.create_connection(self.address))
        if number is not None:
            client.sendall(number.to_bytes(2))
        return client

    def close(self) -> None:
        self.acceptor.close()
        for each in list(self.core.connections):
            each.abort()
        self._clients.close()


@contextlib.contextmanager
def opened(**limits: Any) -> Iterator[Door]:
    with contextlib.closing(Door(**limits)) as door:
        yield door


async def test_a_probe_does_not_wait_behind_those_who_came_before_it(
    eventually: Callable[[Callable[[], bool]], Awaitable[None]],
) -> None:
    with opened() as door:
        for number in range(PENDING):
            door.knock(number)
        await eventually(lambda: len(door.core.connections) + len(door.begun) == PENDING)
        already = len(door.begun)
        door.knock(1_000)
        await eventually(lambda: 1_000 in door.begun)
        assert door.begun.index(1_000) <= already + 10


async def test_the_oldest_are_not_forgotten_over_the_newest(
    eventually: Callable[[Callable[[], bool]], Awaitable[None]],
) -> None:
    with opened() as door:
        for number in range(PENDING):
            door.knock(number)
        await eventually(lambda: len(door.begun) == PENDING)
        assert sorted(door.begun) == list(range(PENDING))
        assert {0, 1, 2} <= set(door.begun[:12])
        assert not door.core.connections


async def test_who_says_nothing_keeps_nobody_waiting_and_is_closed(
    eventually: Callable[[Callable[[], bool]], Awaitable[None]],
) -> None:
    with opened(header_timeout=0.01) as door:
        silent = door.knock()
        door.knock(7)
        await eventually(lambda: door.begun == [7])
        (pending,) = door.core.connections
        await asyncio.sleep(0.02)
        pending.check(door.core.loop.time())
        assert not door.core.connections
        silent.settimeout(5)
        assert silent.recv(1) == b""


async def test_who_speaks_late_is_heard(eventually: Callable[[Callable[[], bool]], Awaitable[None]]) -> None:
    with opened() as door:
        client = door.knock()
        await eventually(lambda: len(door.core.connections) == 1)
        client.sendall((3).to_bytes(2))
        await eventually(lambda: door.begun == [3])


async def test_a_handshake_that_fails_is_counted(eventually: Callable[[Callable[[], bool]], Awaitable[None]]) -> None:
    with opened() as door:
        door.fails = True
        door.knock(1)
        await eventually(lambda: door.core.counters.tls_handshake_errors == 1)
        assert not door.core.connections


async def test_those_who_wait_count_as_connections(eventually: Callable[[Callable[[], bool]], Awaitable[None]]) -> None:
    with opened(max_connections=2) as door:
        door.knock()
        door.knock()
        refused = door.knock()
        await eventually(lambda: door.core.counters.refused == 1)
        refused.settimeout(5)
        assert refused.recv(1) == b""
        assert len(door.core.connections) == 2


async def test_those_who_wait_are_let_go_of_at_the_end(
    eventually: Callable[[Callable[[], bool]], Awaitable[None]],
) -> None:
    with opened() as door:
        silent = door.knock()
        await eventually(lambda: len(door.core.connections) == 1)
        for each in list(door.core.connections):
            each.shut_down()
        assert not door.core.connections
        silent.settimeout(5)
        assert silent.recv(1) == b""


async def test_without_descriptors_it_rests_and_goes_on(
    eventually: Callable[[Callable[[], bool]], Awaitable[None]], caplog: pytest.LogCaptureFixture
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with opened() as door:
        client = socket.socket()
        resource.setrlimit(resource.RLIMIT_NOFILE, (client.fileno() + 1, hard))
        held = []
        try:
            with contextlib.suppress(OSError):  # what lies below is in use
                while True:
                    held.append(socket.socket())
            client.setblocking(False)
            await asyncio.get_running_loop().sock_connect(client, door.address)
            await eventually(lambda: "accepting connections failed" in caplog.text)
        finally:
            for each in held:
                each.close()
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        client.sendall((9).to_bytes(2))
        await eventually(lambda: door.begun == [9])
        client.close()
