"""Raw HTTP client and WebSocket client of a front, and API servers that misbehave."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, NamedTuple

from websockets.asyncio.client import ClientConnection, connect

from steersman.client.over_tls import TLSTransport
from steersman.client.transport import Fields, Transport
from steersman.inspector.front import Front, Info
from steersman.inspector.guard import HEADER

SCRIPT: Mapping[str, str] = {HEADER: "1", "sec-fetch-site": "same-origin"}
"""Fields of requests of the page's scripts."""


def plain_transport(folder: Path, port: int) -> TLSTransport:
    """Return a transport to a server without TLS on 127.0.0.1, by a kubeconfig in `folder`."""
    content = {
        "clusters": [{"name": "a", "cluster": {"server": f"http://127.0.0.1:{port}/prefix"}}],
        "users": [{"name": "a", "user": {}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    }
    (folder / "config").write_text(json.dumps(content))
    return TLSTransport.from_kubeconfig(folder / "config")


class Answer(NamedTuple):
    """An answer of the front."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str:
        """Return all values of a field, "" without any."""
        return ", ".join(value for key, value in self.headers if key.lower() == name)

    def json(self) -> Any:
        """Return the body's JSON."""
        return json.loads(self.body)


def _is_whole(received: bytes) -> bool:
    """Return True if an answer with a known length has arrived; others end with the connection."""
    head, _, body = received.partition(b"\r\n\r\n")
    length = re.search(rb"\r\nContent-Length: ([0-9]+)", head)
    return length is not None and len(body) >= int(length[1])


class _Received:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, _: str) -> io.BytesIO:
        """Return the received bytes as HTTPResponse reads them."""
        return io.BytesIO(self._data)


class Visitor:
    """A program that sends requests to a front, with a session after `enter`."""

    def __init__(self, transport: Transport, info: Info | None = None) -> None:
        self.addresses: list[str] = []
        self.front = Front(transport, info or Info("https://example", "somewhere"), self.addresses.append)
        self.port = 0
        self.cookie = ""
        self._pages: list[Page] = []

    async def start(self) -> None:
        """Start the front."""
        self.port = await self.front.start()

    @property
    def host(self) -> str:
        """Return the address of the front."""
        return f"127.0.0.1:{self.port}"

    @property
    def token(self) -> str:
        """Return the token that opens the next session."""
        return self.addresses[-1].partition("token=")[2]

    async def enter(self) -> Answer:
        """Open a session with the current token."""
        answer = await self.send("GET", f"/?token={self.token}", host=self.host, headers={})
        self.cookie = answer.header("set-cookie").partition(";")[0]
        return answer

    async def send(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str] = SCRIPT,
        host: str | None = None,
        body: bytes = b"",
        version: str = "1.1",
    ) -> Answer:
        """Send a request as written and return the answer. `host` is the Host field, "" for none."""
        host = self.host if host is None else host
        fields = [*([("host", host)] if host else []), ("connection", "close"), *headers.items()]
        if self.cookie and "cookie" not in headers:
            fields.append(("cookie", self.cookie))
        if body:
            fields.append(("content-length", str(len(body))))
        head = f"{method} {target} HTTP/{version}\r\n" + "".join(f"{k}: {v}\r\n" for k, v in fields) + "\r\n"
        return await self.send_raw(head.encode() + body, method)

    async def send_raw(self, data: bytes, method: str = "GET") -> Answer:
        """Send bytes and return the answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(data)
            received = b""
            while not _is_whole(received) and (piece := await reader.read(1 << 20)):
                received += piece
        finally:
            writer.close()
        parsed = HTTPResponse(_Received(received), method=method)  # type: ignore[arg-type]
        parsed.begin()
        return Answer(parsed.status, parsed.getheaders(), parsed.read())

    async def channel(self, **options: Any) -> Page:
        """Open the channel."""
        headers = {"cookie": self.cookie, **options.pop("headers", {})}
        options.setdefault("origin", f"http://{self.host}")
        url = f"ws://{self.host}/channel"
        page = Page(await connect(url, additional_headers=headers, max_size=None, proxy=None, **options))
        self._pages.append(page)
        return page

    async def leave(self) -> None:
        """Stop the front and close all channels."""
        await self.front.stop()
        for each in self._pages:
            each.socket.transport.abort()
            await each.socket.wait_closed()


Visit = Callable[[Transport], Awaitable[Visitor]]
"""Function that starts a front for an API server, and opens a session of it."""


class Page:
    """The page's side of a channel."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def open(self, number: int, path: str = "", **order: str) -> None:
        """Open a stream."""
        await self.socket.send(json.dumps({"op": "open", "id": number, "path": path, **order}))

    async def close(self, number: int) -> None:
        """End a stream."""
        await self.socket.send(json.dumps({"op": "close", "id": number}))

    async def next(self) -> dict[str, Any]:
        """Return the next message."""
        async with asyncio.timeout(10):
            document: dict[str, Any] = json.loads(await self.socket.recv())
        return document

    async def end_of(self, number: int) -> dict[str, Any]:
        """Skip messages up to the end of a stream and return it."""
        while True:
            message = await self.next()
            if message["id"] == number and "end" in message:
                end: dict[str, Any] = message["end"]
                return end

    async def lines(self, number: int) -> list[Any]:
        """Return the next lines of a stream."""
        while True:
            message = await self.next()
            if message["id"] == number:
                assert "lines" in message, message
                found: list[Any] = message["lines"]
                return found


class ScriptedAnswer:
    """An answer of a ScriptedServer."""

    def __init__(
        self, status: int = 200, headers: Mapping[str, str] | None = None, pieces: Sequence[bytes | Exception] = ()
    ) -> None:
        self.status = status
        self.headers = dict(headers or {"content-type": "application/json"})
        self.script = pieces
        self.taken = 0
        self.closed = False

    def header(self, name: str) -> str:
        """Return a field."""
        return self.headers.get(name, "")

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the pieces of the script; raise its exceptions."""
        for piece in self.script:
            if isinstance(piece, Exception):
                raise piece
            self.taken += 1
            yield piece

    async def read(self) -> bytes:
        """Return all pieces."""
        return b"".join([piece async for piece in self.pieces()])

    async def aclose(self) -> None:
        """Note that the answer was closed."""
        self.closed = True


class ScriptedServer:
    """Transport to a server that gives one answer to everything, or raises an exception."""

    def __init__(self, answer: ScriptedAnswer | Exception) -> None:
        self.answer = answer
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []

    async def send(self, method: str, target: str, fields: Fields, body: bytes) -> ScriptedAnswer:
        """Note the request and return the answer."""
        self.requests.append((method, target, dict(fields), body))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def aclose(self) -> None:
        """Do nothing."""
