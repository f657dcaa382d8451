"""Connections that are given back, which stay first in line."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable

from steersman.net.accept_loop import AcceptLoop


async def test_a_connection_that_is_given_back_is_offered_again(
    eventually: Callable[[Callable[[], bool]], Awaitable[None]],
) -> None:
    offered: list[int] = []
    taken: list[int] = []

    def take(sock: socket.socket) -> None:
        port = sock.getpeername()[1]
        offered.append(port)
        if len(offered) < 3:
            accepting.give_back(sock)
        else:
            taken.append(port)
            sock.close()

    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    with contextlib.ExitStack() as clients:
        accepting = AcceptLoop(asyncio.get_running_loop(), listener, take)
        clients.callback(accepting.close)
        accepting.start()
        first, second = (
            clients.enter_context(socket.create_connection(listener.getsockname())).getsockname()[1] for _ in range(2)
        )
        await eventually(lambda: len(taken) == 2)
    assert offered == [first, first, first, second]
    assert taken == [first, second]


async def test_closing_closes_the_connection_that_nobody_has_taken() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    given_back = asyncio.get_running_loop().create_future()

    def take(sock: socket.socket) -> None:
        accepting.give_back(sock)
        given_back.set_result(sock)

    accepting = AcceptLoop(asyncio.get_running_loop(), listener, take)
    accepting.start()
    with socket.create_connection(listener.getsockname()) as client:
        sock = await given_back
        accepting.close()
        assert sock.fileno() == listener.fileno() == -1
        assert client.recv(1) == b""
