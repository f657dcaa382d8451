"""A webhook that answers requests when it is told to, and so keeps them in their seats."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from steersman.server.certificates import ensure_certificates

EXTRA: Final = "load"
"""Key of the extra user information that distinguishes the requests."""
_NO: Final = {"allowed": False, "status": {"code": 403, "message": "released"}}


class Gate:
    """Serves from `start` to `close`. `came` is called with the name of a request."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="differential-")
        files = ensure_certificates(Path(self._folder.name), ["127.0.0.1"])
        self.ca_bundle: Final = base64.b64encode(files.ca.read_bytes()).decode()
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(files.server, files.server_key)
        self._held: dict[str, asyncio.Future[None]] = {}
        self.came: Callable[[str], None] = lambda name: None
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.url = ""

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self._tls)
        self.url = f"https://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._folder.cleanup()

    def release(self, name: str) -> None:
        """Answers the request."""
        held = self._held.pop(name, None)
        if held is not None and not held.done():
            held.set_result(None)

    def release_all(self) -> None:
        """Answers all there are."""
        for name in list(self._held):
            self.release(name)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
                )
                review = json.loads(await reader.readexactly(length))
                [name] = review["request"]["userInfo"]["extra"][EXTRA]
                held = self._held[name] = asyncio.get_running_loop().create_future()
                self.came(name)
                await held
                answer = {
                    "kind": review["kind"],
                    "apiVersion": review["apiVersion"],
                    "response": {"uid": review["request"]["uid"], **_NO},
                }
                data = json.dumps(answer).encode()
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                    b"Content-Length: %d\r\n\r\n" % len(data) + data
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            pass  # the server has closed its connection
        finally:
            writer.close()
