"""An HTTP client on asyncio that streams answers: HTTP/1.1, or many streams on one connection of HTTP/2.

A reader that takes its time holds up the server, as it should: over HTTP/1.1 by the socket, over HTTP/2 by the window
of its stream alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

READ_SIZE = 1 << 16
STREAM_WINDOW = 1 << 18
CONNECTION_WINDOW = (1 << 30) - (1 << 16)

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class ConnectionLost(Exception):
    """There is no connection, or it ended before the answer did."""


@dataclass
class Endpoint:
    """Address of the server and the headers of every request. `address` is called for each connection."""

    address: Callable[[], tuple[str, int]]
    context: Callable[[tuple[str, ...]], ssl.SSLContext]
    """TLS for these protocols."""
    headers: Mapping[str, str] = field(default_factory=dict)

    async def connect(self, protocol: str) -> Pair:
        """A fresh connection that speaks `protocol`. Raises ConnectionLost."""
        host, port = self.address()
        try:
            reader, writer = await asyncio.open_connection(
                host, port, ssl=self.context((protocol,)), limit=READ_SIZE, ssl_handshake_timeout=10
            )
        except (OSError, TimeoutError) as error:
            raise ConnectionLost(f"cannot connect: {error}") from error
        agreed = writer.get_extra_info("ssl_object").selected_alpn_protocol()
        if agreed != protocol:
            writer.transport.abort()
            raise ConnectionLost(f"the server speaks {agreed}, not {protocol}")
        return reader, writer


class Response(Protocol):
    """An answer whose body is read as it comes."""

    status: int

    def chunks(self) -> AsyncIterator[bytes]:
        """The body in pieces. Raises ConnectionLost if it is cut off."""
        ...

    def close(self) -> None:
        """Leaves the rest of the body unread."""
        ...


class Client(Protocol):
    """Something that sends requests."""

    async def request(self, method: str, target: str, body: bytes = b"", **headers: str) -> Response:
        """The answer as soon as it begins; `content_type` in `headers` is Content-Type. Raises ConnectionLost."""
        ...

    async def close(self) -> None:
        """Ends its connections, whatever they are at."""
        ...


class InTurn:
    """Sends each request to the next of several servers: a list is of one, and the watch that follows of another."""

    def __init__(self, clients: Sequence[Client]) -> None:
        self._clients = clients
        self._turns = itertools.cycle(clients)

    async def request(self, method: str, target: str, body: bytes = b"", **headers: str) -> Response:
        """See Client."""
        return await next(self._turns).request(method, target, body, **headers)

    async def close(self) -> None:
        """See Client."""
        for each in self._clients:
            await each.close()


async def read(response: Response) -> bytes:
    """The whole body."""
    return b"".join([chunk async for chunk in response.chunks()])


async def _closed(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def _fields(endpoint: Endpoint, headers: Mapping[str, str]) -> dict[str, str]:
    header_fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return {"accept": "application/json", **endpoint.headers, **header_fields}


class Http1Client:
    """Keeps one connection; a request while another one's answer is open takes a further one."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._idle: Pair | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def request(self, method: str, target: str, body: bytes = b"", **headers: str) -> Http1Response:
        kept, self._idle = self._idle, None
        if kept is not None and kept[0].at_eof():
            self.drop(kept[1])
            kept = None
        reader, writer = kept or await self._endpoint.connect("http/1.1")
        self._open.add(writer)
        host, port = self._endpoint.address()
        fields = {"host": f"{host}:{port}", "content-length": str(len(body)), **_fields(self._endpoint, headers)}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        try:
            writer.write(f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode() + body)
            raw = await reader.readuntil(b"\r\n\r\n")
        except (OSError, asyncio.IncompleteReadError) as error:
            self.drop(writer)
            raise ConnectionLost(f"no answer: {error!r}") from error
        except BaseException:
            self.drop(writer)
            raise
        return Http1Response(self, (reader, writer), raw)

    def keep(self, pair: Pair) -> None:
        """The connection is free again."""
        if self._idle is not None or pair[1].is_closing():
            self.drop(pair[1])
        else:
            self._idle = pair

    def drop(self, writer: asyncio.StreamWriter) -> None:
        """The connection is of no use any more."""
        self._open.discard(writer)
        writer.transport.abort()

    async def close(self) -> None:
        self._idle = None
        for writer in list(self._open):
            self.drop(writer)
            await _closed(writer)


class Http1Response:
    """See Response."""

    def __init__(self, client: Http1Client, pair: Pair, head: bytes) -> None:
        self._client = client
        self._pair: Pair | None = pair
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        self.status = int(first.split(" ", 2)[1])
        self._headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}

    async def chunks(self) -> AsyncIterator[bytes]:
        if self._pair is None:
            return
        pieces = self._chunked if self._headers.get("transfer-encoding") == "chunked" else self._sized
        try:
            async for piece in pieces(self._pair[0]):
                yield piece
        except (OSError, asyncio.IncompleteReadError) as error:
            self.close()
            raise ConnectionLost(f"cut off: {error!r}") from error
        except BaseException:
            self.close()
            raise
        if self._pair is not None:
            pair, self._pair = self._pair, None
            if self._headers.get("connection", "").lower() == "close":
                self._client.drop(pair[1])
            else:
                self._client.keep(pair)

    async def _chunked(self, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
        while size := int(await reader.readuntil(b"\r\n"), 16):
            while size:
                piece = await reader.read(min(size, READ_SIZE))
                if not piece:
                    raise asyncio.IncompleteReadError(b"", size)
                size -= len(piece)
                yield piece
            await reader.readexactly(2)
        await reader.readexactly(2)

    async def _sized(self, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
        size = int(self._headers.get("content-length", "0"))
        if size:
            yield await reader.readexactly(size)

    def close(self) -> None:
        if self._pair is not None:
            self._client.drop(self._pair[1])
            self._pair = None


class Http2Client:
    """All requests on one connection, which is made anew when it has ended."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._connection: _Http2Connection | None = None
        self._connecting = asyncio.Lock()

    async def request(self, method: str, target: str, body: bytes = b"", **headers: str) -> Http2Response:
        async with self._connecting:
            if self._connection is None or not self._connection.usable:
                self._connection = _Http2Connection(*await self._endpoint.connect("h2"))
            connection = self._connection
        host, port = self._endpoint.address()
        fields = {
            ":method": method,
            ":scheme": "https",
            ":authority": f"{host}:{port}",
            ":path": target,
            **_fields(self._endpoint, headers),
        }
        response = connection.send(fields, body)
        try:
            await response.begun()
        except BaseException:
            response.close()
            raise
        return response

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.lose("closed")
            await _closed(self._connection.writer)


class _Http2Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self._h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self._h2.local_settings = h2.settings.Settings(
            client=True,
            initial_values={
                h2.settings.SettingCodes.ENABLE_PUSH: 0,
                h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
                h2.settings.SettingCodes.MAX_HEADER_LIST_SIZE: 1 << 16,
            },
        )
        self._h2.initiate_connection()
        # A stream that is read slowly must not stop the others: the connection's window is never the narrow one.
        self._h2.increment_flow_control_window(CONNECTION_WINDOW)
        self._responses: dict[int, Http2Response] = {}
        self.usable = True
        self._flush()
        self._following = asyncio.get_running_loop().create_task(self._follow())

    def send(self, fields: Mapping[str, str], body: bytes) -> Http2Response:
        try:
            stream_id = self._h2.get_next_available_stream_id()
            self._h2.send_headers(stream_id, list(fields.items()), end_stream=not body)
        except h2.exceptions.ProtocolError as error:
            self.usable = False
            raise ConnectionLost(f"no further stream: {error!r}") from error
        response = self._responses[stream_id] = Http2Response(self, stream_id)
        response.unsent = body
        self._send_body(response)
        self._flush()
        return response

    def _send_body(self, response: Http2Response) -> None:
        """Sends what the server's windows let through."""
        while response.unsent:
            room = min(self._h2.local_flow_control_window(response.stream_id), self._h2.max_outbound_frame_size)
            if room <= 0:
                return
            piece, response.unsent = response.unsent[:room], response.unsent[room:]
            self._h2.send_data(response.stream_id, piece, end_stream=not response.unsent)

    def _flush(self) -> None:
        if data := self._h2.data_to_send():
            self.writer.write(data)

    async def _follow(self) -> None:
        why = "the server closed the connection"
        try:
            while data := await self._reader.read(READ_SIZE):
                for event in self._h2.receive_data(data):
                    self._take(event)
                self._flush()
        except (OSError, h2.exceptions.ProtocolError) as error:
            why = repr(error)
        self.lose(why)

    def _take(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.ConnectionTerminated):
            self.usable = False  # the streams that are open go on
        elif isinstance(event, h2.events.WindowUpdated | h2.events.RemoteSettingsChanged):
            for response in self._responses.values():
                self._send_body(response)
        concerned = self._responses.get(getattr(event, "stream_id", None) or 0)
        if concerned is None:
            return
        if isinstance(event, h2.events.ResponseReceived):
            concerned.begin(next(int(value) for name, value in event.headers if name in (":status", b":status")))
        elif isinstance(event, h2.events.DataReceived):
            concerned.add(event.data, event.flow_controlled_length)
        elif isinstance(event, h2.events.StreamEnded):
            concerned.end()
            del self._responses[concerned.stream_id]
        elif isinstance(event, h2.events.StreamReset):
            concerned.end(f"reset: {event.error_code!r}")
            del self._responses[concerned.stream_id]

    def taken(self, stream_id: int, size: int) -> None:
        """Give the server more window: `size` bytes of a stream were read."""
        if size and not self.writer.is_closing():
            self._h2.acknowledge_received_data(size, stream_id)
            self._flush()

    def reset(self, stream_id: int) -> None:
        """Ends a stream early."""
        if self._responses.pop(stream_id, None) is not None and not self.writer.is_closing():
            with contextlib.suppress(h2.exceptions.ProtocolError):
                self._h2.reset_stream(stream_id, h2.errors.ErrorCodes.CANCEL)
            self._flush()

    def lose(self, why: str) -> None:
        """Ends the connection, and everything on it."""
        self.usable = False
        for response in self._responses.values():
            response.end(why)
        self._responses.clear()
        self.writer.transport.abort()
        self._following.cancel()


class Http2Response:
    """See Response."""

    def __init__(self, connection: _Http2Connection, stream_id: int) -> None:
        self.stream_id = stream_id
        self.status = 0
        self.unsent = b""
        self._connection = connection
        self._received: deque[tuple[bytes, int]] = deque()
        self._ended = False
        self._failure = ""
        self._news = asyncio.Event()

    def begin(self, status: int) -> None:
        self.status = status
        self._news.set()

    def add(self, data: bytes, size: int) -> None:
        self._received.append((data, size))
        self._news.set()

    def end(self, failure: str = "") -> None:
        self._ended = True
        self._failure = failure
        self._news.set()

    async def begun(self) -> None:
        await self._until(lambda: self.status != 0)
        if not self.status:
            raise ConnectionLost(f"no answer: {self._failure}")

    async def _until(self, enough: Callable[[], bool]) -> None:
        while not enough() and not self._ended:
            self._news.clear()
            await self._news.wait()

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            while True:
                await self._until(lambda: bool(self._received))
                if not self._received:
                    break
                data, size = self._received.popleft()
                self._connection.taken(self.stream_id, size)
                yield data
        finally:
            self.close()
        if self._failure:
            raise ConnectionLost(f"cut off: {self._failure}")

    def close(self) -> None:
        self._connection.taken(self.stream_id, sum(size for _, size in self._received))
        self._received.clear()
        self._connection.reset(self.stream_id)
