"""Webhook for tests: a real HTTPS server."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from abc import ABC, abstractmethod
from typing import Any, Self

from steersman.server.certificates import CertificateFiles


class HttpsHook(ABC):
    """Webhook that answers posted requests over keep-alive connections. It runs in `async with`."""

    def __init__(self, files: CertificateFiles) -> None:
        self._files = files
        self.heads: list[str] = []
        """Heads of the requests received."""
        self.connections = 0
        self.held: asyncio.Event | None = None
        """Event until which no request is answered; None to answer at once."""
        self._came = asyncio.Condition()
        self.port = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @abstractmethod
    def answered(self, target: str, body: Any) -> bytes:
        """Return the whole response to a body that was posted to a path and query."""

    async def start(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._files.server, self._files.server_key)
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=context)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for each in list(self._open):
            each.close()

    async def asked(self, count: int) -> None:
        """Return once `count` requests have arrived."""
        async with self._came:
            await self._came.wait_for(lambda: len(self.heads) >= count)

    async def all_closed(self) -> None:
        """Return once the client has closed its connections."""
        async with asyncio.timeout(5), self._came:
            await self._came.wait_for(lambda: not self._open)

    @property
    def ca_bundle(self) -> str:
        return base64.b64encode(self._files.ca.read_bytes()).decode()

    @property
    def root(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._open.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                fields = dict(line.lower().split(": ", 1) for line in head.strip().split("\r\n")[1:])
                body = json.loads(await reader.readexactly(int(fields["content-length"])))
                async with self._came:
                    self.heads.append(head)
                    self._came.notify_all()
                if self.held is not None:
                    await self.held.wait()
                writer.write(self.answered(head.split(" ", 2)[1], body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()
        finally:
            self._open.discard(writer)
            async with self._came:
                self._came.notify_all()


def http_response(status: int, body: bytes, content_type: str = "text/plain") -> bytes:
    """Return a whole HTTP/1.1 response."""
    return f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
