"""A server for client requests, and a proxy in front of it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from steersman.net.tls import Certificate

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Origin:
    """A server that gives the same answer to each request, and counts requests."""

    def __init__(self, certificate: Certificate) -> None:
        self.answer = OK
        self.requests: list[bytes] = []
        self.connections = 0
        self.open: set[asyncio.StreamWriter] = set()
        self.port = 0
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate.cert_file, certificate.key_file)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield
            for each in list(self.open):
                each.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open.add(writer)
        try:
            while True:
                self.requests.append(await reader.readuntil(b"\r\n\r\n"))
                writer.write(self.answer)
                await writer.drain()
                if not self.answer or b"close" in self.answer:
                    break
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            return
        finally:
            writer.close()
            self.open.discard(writer)


class Gateway:
    """A proxy that connects to the origin for every requested address."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self.heads: list[bytes] = []
        self.answer = b"HTTP/1.1 200 Connection established\r\n\r\n"
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def serving(self, context: ssl.SSLContext | None = None) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield
            await asyncio.gather(*self._tasks, return_exceptions=True)

    @asynccontextmanager
    async def serving_at(self, path: Path) -> AsyncIterator[None]:
        """Serve at a Unix socket."""
        async with await asyncio.start_unix_server(self._serve, path):
            yield
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(self.answer)
        if b" 200 " in self.answer:
            there, back = await asyncio.open_connection("127.0.0.1", self._origin.port)
            await asyncio.gather(_copy(reader, back), _copy(there, writer), return_exceptions=True)
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(1 << 16):
        sink.write(data)
    sink.close()
    await sink.wait_closed()
