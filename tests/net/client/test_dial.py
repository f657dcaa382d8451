"""TLS connections to other servers."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from steersman.net.client.dial import DialError, dial
from steersman.net.tls import Certificate

SIZE = 3_000_000


@asynccontextmanager
async def serving(serve: Callable[[socket.socket], None]) -> AsyncIterator[int]:
    """Yield the port of a server that runs `serve` in a thread, with the single connection that it accepts."""

    def run() -> None:
        connection, _ = listener.accept()
        connection.settimeout(20)
        with connection:
            serve(connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            await asyncio.to_thread(thread.join, 30)
    assert not thread.is_alive()


def server_context(certificate: Certificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.cert_file, certificate.key_file)
    return context


@pytest.mark.parametrize("says_the_end", [True, False])
async def test_nothing_is_lost_if_the_other_side_ends_while_much_is_unread(
    certificate: Certificate, client_context: Callable[..., ssl.SSLContext], *, says_the_end: bool
) -> None:
    def serve(connection: socket.socket) -> None:
        with server_context(certificate).wrap_socket(connection, server_side=True) as secured:
            secured.sendall(b"x" * SIZE)
            if says_the_end:
                try:
                    secured.unwrap()
                except OSError:
                    return  # the client closes without a word of its own
            else:
                secured.shutdown(socket.SHUT_WR)

    async with serving(serve) as port:
        connection = await dial("127.0.0.1", port, client_context(), addresses=["127.0.0.1"])
        seen = 0
        while data := await connection.read():
            seen += len(data)
            for _ in range(5):  # the reader is slower than the network
                await asyncio.sleep(0)
        connection.close()
    assert seen == SIZE


async def test_a_connection_closed_while_much_is_unread_ends_soon(
    certificate: Certificate, client_context: Callable[..., ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steersman.net.client.dial.TLS_SHUTDOWN_TIMEOUT", 0.1)
    ended = threading.Event()

    def serve(connection: socket.socket) -> None:
        with server_context(certificate).wrap_socket(connection, server_side=True) as secured:
            try:
                for _ in range(1000):
                    secured.sendall(b"x" * SIZE)
                ended.set()  # all of it was taken, to be thrown away
            except OSError as error:
                if not isinstance(error, TimeoutError):
                    ended.set()

    async with serving(serve) as port:
        connection = await dial("127.0.0.1", port, client_context())
        for _ in range(5000):
            await asyncio.sleep(0)
        connection.close()
        await asyncio.to_thread(ended.wait, 15)
    assert ended.is_set()


async def test_what_is_said_before_tls_is_not_taken_for_decrypted(
    client_context: Callable[..., ssl.SSLContext],
) -> None:
    def serve(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nforged")
        with suppress(ConnectionResetError):
            connection.recv(1)

    async with serving(serve) as port:
        with pytest.raises(DialError, match="tls: "):
            await dial("127.0.0.1", port, client_context())


async def test_who_hangs_up_waits_for_no_word_of_the_other_side(
    certificate: Certificate, client_context: Callable[..., ssl.SSLContext]
) -> None:
    heard: list[bytes] = []
    hung_up = threading.Event()

    def serve(connection: socket.socket) -> None:
        with server_context(certificate).wrap_socket(connection, server_side=True) as secured:
            secured.sendall(b"hello")
            assert hung_up.wait(20)
            heard.append(secured.recv(10))  # TLS has ended, and in order

    async with serving(serve) as port:
        connection = await dial("127.0.0.1", port, client_context(), addresses=["127.0.0.1"])
        assert await connection.read() == b"hello"
        connection.hang_up()
        connection.hang_up()
        for _ in range(3):  # of the loop: nothing of it is left open when the loop ends
            await asyncio.sleep(0)
        with pytest.raises(ConnectionResetError):
            await connection.write(b"more")
        hung_up.set()
    assert heard == [b""]
