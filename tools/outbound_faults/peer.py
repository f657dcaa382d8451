"""The server that fails, over HTTP/1.1 or HTTP/2: the last part of a request's path says how."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hpack import Decoder, Encoder

from steersman.net.http2 import frames
from steersman.net.http2.frames import ErrorCode

_PIECE: Final = 16384
_WINDOW: Final = 1 << 20
"""Bytes that a client takes of an answer before it has read any."""


@dataclass(slots=True)
class Asked:
    """A request."""

    path: str
    body: bytes

    @property
    def fault(self) -> str:
        """Return the fault of the answer."""
        return self.path.partition("?")[0].rpartition("/")[2]


@dataclass(slots=True)
class Said:
    """A whole answer; `location` for a redirect."""

    status: int
    body: bytes = b""
    location: str = ""


Answer = Callable[[Asked], Said | None]
"""From a request to what is said; None where nobody fails on purpose and nothing is there (404)."""


class Peer:
    """Listens from `start` to `stop`; `protocol` is "h2" or "http/1.1"."""

    def __init__(self, protocol: str, certificate: Path, key: Path, answer: Answer, host: str = "127.0.0.1") -> None:
        self.port = 0
        self.asked = 0
        self.was_asked = asyncio.Condition()
        self._protocol = protocol
        self._answer = answer
        self._host = host
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._context.set_alpn_protocols([protocol])
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        """Begins to listen, on the port of before if there was one."""
        serve = self._http2 if self._protocol == "h2" else self._http1
        self._server = await asyncio.start_server(self._kept(serve), self._host, self.port, ssl=self._context)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Dies: no connection is closed in order."""
        assert self._server is not None
        self._server.close()
        self._server = None
        for each in list(self._open):
            each.transport.abort()

    async def was_asked_more(self, count: int) -> None:
        """Returns once it was asked so often."""
        async with self.was_asked:
            await self.was_asked.wait_for(lambda: self.asked >= count)

    async def _count(self) -> None:
        async with self.was_asked:
            self.asked += 1
            self.was_asked.notify_all()

    @property
    def url(self) -> str:
        """Return the URL of the peer."""
        return f"https://{self._host}:{self.port}"

    def _kept(
        self, serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
    ) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._open.add(writer)
            if self._server is None:
                writer.transport.abort()
            try:
                await serve(reader, writer)
            except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ssl.SSLError):
                pass  # whoever asked has gone
            finally:
                self._open.discard(writer)
                writer.close()

        return run

    # HTTP/1.1

    async def _http1(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, *fields = head.strip().split("\r\n")
            found = {name.lower(): value for name, _, value in (each.partition(": ") for each in fields)}
            asked = Asked(line.split(" ")[1], await reader.readexactly(int(found.get("content-length", 0))))
            await self._count()
            said = self._answer(asked)
            if said is not None:
                writer.write(_http1_head(said))
                for at in range(0, len(said.body), _PIECE):
                    writer.write(said.body[at : at + _PIECE])
                    await writer.drain()
            elif not await self._fails_by_http1(asked.fault, reader, writer):
                return

    async def _fails_by_http1(self, fault: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Fails; whether the connection goes on."""
        if fault == "hang":
            await reader.read()  # until the other side gives up
        elif fault == "trickle":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
            await reader.read()
        elif fault == "reset":
            writer.transport.abort()
        elif fault == "half":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        elif fault == "garbage":
            writer.write(b"\x00\x01garbage\r\n\r\n")
        elif fault == "endless-head":
            writer.write(b"HTTP/1.1 200 OK\r\n")
            for _ in range(400):
                writer.write(b"X-More: %b\r\n" % (b"x" * 8000))
                await writer.drain()
        elif fault == "interim":
            for _ in range(2000):
                writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")
                await writer.drain()
        elif fault == "goodbye":
            writer.write(b"HTTP/1.1 503 Gone\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        elif fault != "close":
            writer.write(_http1_head(Said(404)))
            return True
        return False

    # HTTP/2

    async def _http2(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(frames.PREFACE))
        writer.write(frames.settings({frames.Setting.INITIAL_WINDOW_SIZE: 1 << 20}) + frames.window_update(0, 1 << 30))
        decoder, encoder = Decoder(), Encoder()
        paths: dict[int, str] = {}
        bodies: dict[int, bytes] = {}
        left: dict[int, bytes] = {}
        """Bytes that wait for the windows of streams."""
        while True:
            length, flags, stream_id = frames.unpack_head(await reader.readexactly(9), 0)
            payload = await reader.readexactly(length >> 8)
            kind = length & 0xFF
            if kind in (frames.SETTINGS, frames.PING) and not flags & frames.ACK:
                writer.write(frames.frame(kind, frames.ACK, 0, payload if kind == frames.PING else b""))
            elif kind == frames.HEADERS:
                paths[stream_id] = dict(decoder.decode(payload, raw=True))[b":path"].decode()
                bodies[stream_id] = b""
            elif kind == frames.WINDOW_UPDATE and stream_id in left:
                room = int.from_bytes(payload)
                left[stream_id] = _send_data(writer, stream_id, left[stream_id], room)
            elif kind == frames.RST_STREAM:
                left.pop(stream_id, None)
            elif kind == frames.DATA:
                bodies[stream_id] += payload
            if kind in (frames.HEADERS, frames.DATA) and flags & frames.END_STREAM:
                await self._count()
                asked = Asked(paths.pop(stream_id), bodies.pop(stream_id))
                said = self._answer(asked)
                if said is not None:
                    left[stream_id] = _say_by_http2(writer, encoder, stream_id, said)
                    await writer.drain()
                elif not await _fails_by_http2(asked.fault, writer, encoder, stream_id):
                    return


def _http1_head(said: Said) -> bytes:
    head = [f"HTTP/1.1 {said.status} X", "Content-Type: application/json", f"Content-Length: {len(said.body)}"]
    if said.location:
        head.append(f"Location: {said.location}")
    return "\r\n".join(head).encode() + b"\r\n\r\n"


def _head(encoder: Encoder, stream_id: int, *fields: tuple[str, str], end: bool = False) -> bytes:
    block = encoder.encode(list(fields))
    return frames.headers(stream_id, block, frames.END_STREAM if end else 0, frames.DEFAULT_FRAME_SIZE)


def _say_by_http2(writer: asyncio.StreamWriter, encoder: Encoder, stream_id: int, said: Said) -> bytes:
    """Says it as far as it may; the rest of the body."""
    fields = [(":status", str(said.status)), ("content-type", "application/json")]
    if said.location:
        fields.append(("location", said.location))
    writer.write(_head(encoder, stream_id, *fields))
    return _send_data(writer, stream_id, said.body, _WINDOW)


def _send_data(writer: asyncio.StreamWriter, stream_id: int, data: bytes, room: int) -> bytes:
    """Sends what there is room for; the rest."""
    for at in range(0, min(room, len(data)), _PIECE):
        writer.write(frames.frame(frames.DATA, 0, stream_id, data[at : min(at + _PIECE, room)]))
    if len(data) <= room:
        writer.write(frames.frame(frames.DATA, frames.END_STREAM, stream_id))
    return data[room:]


async def _fails_by_http2(fault: str, writer: asyncio.StreamWriter, encoder: Encoder, stream_id: int) -> bool:
    """Fails; whether the connection goes on."""
    head = _head(encoder, stream_id, (":status", "200"))
    if fault == "hang":
        return True
    if fault == "trickle":
        writer.write(head + frames.frame(frames.DATA, 0, stream_id, b"{"))
        return True
    if fault in ("reset", "interim", "half"):
        code = ErrorCode.REFUSED_STREAM if fault == "interim" else ErrorCode.INTERNAL_ERROR
        begun = head + frames.frame(frames.DATA, 0, stream_id, b"{") if fault == "half" else b""
        writer.write(begun + frames.rst_stream(stream_id, code))
        return True
    if fault == "goodbye":
        writer.write(frames.goaway(stream_id - 2 if stream_id > 1 else 0, ErrorCode.ENHANCE_YOUR_CALM, "tired"))
    elif fault == "garbage":
        writer.write(frames.frame(frames.DATA, 0, stream_id, b"x" * (frames.DEFAULT_FRAME_SIZE + 1)))
    elif fault == "endless-head":
        writer.write(frames.frame(frames.HEADERS, 0, stream_id, b"\x88"))
        for _ in range(200):
            writer.write(frames.frame(frames.CONTINUATION, 0, stream_id, b"\x00\x01a\x7f\x81\x7d" + b"x" * 16000))
            await writer.drain()
    elif fault != "close":
        writer.write(_head(encoder, stream_id, (":status", "404"), end=True))
        return True
    return False


def as_json(value: Any) -> bytes:
    """A value as a body."""
    return json.dumps(value).encode()
