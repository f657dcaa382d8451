"""WebSockets (RFC 6455) on connections taken over from HTTP/1.1: the handshake, and streams sent as messages.

The `websockets` package encodes and decodes frames. Refusals are those of golang.org/x/net/websocket, which
kube-apiserver uses.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import re
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from steersman.net.ascii import SPACE, lower
from steersman.net.connection import PIECE_OF_STREAM
from steersman.net.message import BodyAborted, Headers, Response, Stream, Upgraded
from steersman.net.time_slices import SLICE
from steersman.work.first_use import import_offloaded
from steersman.work.patterns import late_pattern
from steersman.work.yielding import IterationGate

if TYPE_CHECKING:
    from websockets.protocol import Protocol

_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_ASKS_FOR_UPGRADE: Final = late_pattern(r"(^|.*,\s*)upgrade($|\s*,)", re.IGNORECASE | re.ASCII)
_ORIGIN: Final = late_pattern(r"([A-Za-z][A-Za-z0-9+.-]*:|/)([^%\s]|%[0-9A-Fa-f]{2})*", re.ASCII)
_TEXT: Final = ("content-type", "text/plain; charset=utf-8")
_MAX_INCOMING: Final = 1 << 20
"""Limit of one message from the client, in bytes; such messages are read and discarded."""
_RECEIVED_AT_ONCE: Final = 1024
"""Bytes passed to the protocol at once: less than two hundred frames, which take some 2 ms."""
HIGH_WATER: Final = 1 << 20
_TEXT_FRAME: Final = 0x81
_BINARY_FRAME: Final = 0x82


def is_websocket_request(headers: Headers) -> bool:
    """Return True if the client requests a WebSocket instead of a plain answer."""
    return (
        lower(headers.get("upgrade", "")) == "websocket"
        and _ASKS_FOR_UPGRADE.match(headers.joined("connection")) is not None
    )


def handshake(headers: Headers, *, protocol: str | None = None) -> Response:
    """Return the answer to a client that requests a WebSocket: 101, to which the caller adds `upgrade`, or a refusal.

    `protocol` is the subprotocol chosen from the client's offers ("" for none); any Origin is then accepted. If
    `protocol` is None, the client may offer at most one subprotocol, and an Origin is required.
    """
    # the first of several fields counts, as in golang.org/x/net
    if "upgrade" not in lower(headers.get("connection", "")):
        return _refusal(400, b"not websocket protocol")
    key = headers.get("sec-websocket-key", "")
    if not key:
        return _refusal(400, b"mismatch challenge/response")
    if headers.get("sec-websocket-version") != "13":
        refusal = _refusal(400, b"missing or bad WebSocket Version")
        refusal.headers.append(("sec-websocket-version", "13"))
        return refusal
    if protocol is None and not _ORIGIN.fullmatch(headers.get("origin", "")):
        return _refusal(403, b"")
    protocols = requested_protocols(headers) if protocol is None else [protocol]
    if len(protocols) > 1:
        return _refusal(400, b"")
    accept = base64.b64encode(hashlib.sha1(key.encode() + _GUID, usedforsecurity=False).digest()).decode()
    answer = [("upgrade", "websocket"), ("connection", "Upgrade"), ("sec-websocket-accept", accept)]
    answer += [("sec-websocket-protocol", each) for each in protocols if each]
    return Response(101, answer)


def requested_protocols(headers: Headers) -> list[str]:
    """Return the subprotocols that a client offers, in order."""
    return [each.strip(SPACE) for each in headers.get("sec-websocket-protocol", "").split(",") if each.strip(SPACE)]


def _refusal(status: int, text: bytes) -> Response:
    return Response(status, [_TEXT], text, close=True)


async def serve_stream(
    connection: Upgraded, stream: Stream, binary: Callable[[bytes], bytes | memoryview] | None = None
) -> None:
    """Send each write of a stream as a text message, or as the binary message that `binary` makes of it.

    Returns when the stream ends (close code 1000), when the client closes, or violates the protocol. Messages from the
    client are answered as the protocol demands, and otherwise ignored.
    """
    protocol = await new_protocol(_MAX_INCOMING)
    writer = _MessageWriter(connection, protocol, binary)
    reader = asyncio.create_task(writer.receive())
    try:
        stream.start(writer)
        await writer.send()
    except ConnectionResetError:
        pass  # the client is gone
    finally:
        writer.over = True
        stream.closed()
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        writer.incoming.end()


_SILENT: Final = logging.Logger("steersman.net.websocket.streams", logging.CRITICAL + 1)
"""Disabled logger for the `websockets` package, which logs the content of each frame: terminal input, watch events."""


async def new_protocol(max_size: int) -> Protocol:
    """Return the server's side of an open WebSocket that accepts messages of `max_size` bytes."""
    module = await import_offloaded("websockets.protocol")
    protocol: Protocol = module.Protocol(module.Side.SERVER, state=module.State.OPEN, max_size=max_size, logger=_SILENT)
    return protocol


_gates: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, IterationGate]] = WeakKeyDictionary()
"""Semaphore of each event loop: one WebSocket at a time parses frames."""


class Incoming:
    """Received bytes of a WebSocket, passed to its protocol in pieces, as one read may hold tens of thousands of
    frames.

    Call `receive` until it returns False before adding more data.
    """

    def __init__(self, protocol: Protocol) -> None:
        loop = asyncio.get_running_loop()
        gate = _gates.get(loop)
        if gate is None:
            gate = _gates[loop] = IterationGate(1)
        self._gate = gate
        self._protocol = protocol
        self._data = b""
        self._at = 0
        self._is_over = False

    def end(self) -> None:
        """Stop receiving, and break the reference cycle between the protocol and its parser, which would otherwise wait
        for the garbage collector.
        """
        self._is_over, self._data, self._at = True, b"", 0
        self._protocol.parser.close()

    def add(self, data: bytes) -> None:
        """Store received bytes."""
        self._data, self._at = data, 0

    async def receive(self) -> bool:
        """Wait for a permit, then pass pieces to the protocol until they make frames; return False if no input is
        left.
        """
        data, protocol = self._data, self._protocol
        if self._at >= len(data):
            self._data = b""
            return False
        await self._gate.pass_through()
        if self._is_over:
            return False
        end = time.monotonic() + SLICE
        while True:
            protocol.receive_data(data[self._at : self._at + _RECEIVED_AT_ONCE])
            self._at += _RECEIVED_AT_ONCE
            if self._at >= len(data) or protocol.events or time.monotonic() >= end:
                return True


class _MessageWriter:
    """The BodyWriter of a stream whose pieces are messages.

    The waiting pieces are shared with other connections: a server's frames carry them unchanged.
    """

    def __init__(
        self, connection: Upgraded, protocol: Protocol, binary: Callable[[bytes], bytes | memoryview] | None
    ) -> None:
        self.over = False
        """True once nothing more is accepted; queued pieces are still sent."""
        self.incoming = Incoming(protocol)
        self._connection = connection
        self._protocol = protocol
        self._binary = binary
        self._pieces: deque[bytes | memoryview] = deque()
        self._size = 0
        self._changed = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()

    @property
    def buffered(self) -> int:
        return self._size

    def write(self, data: bytes) -> None:
        if self.over or self._protocol.close_expected():
            return
        payload = data if self._binary is None else self._binary(data)
        self._collect()
        self._add(_head(_TEXT_FRAME if self._binary is None else _BINARY_FRAME, len(payload)))
        self._add(payload)
        self._changed.set()

    def end(self) -> None:
        if not self.over:
            self._protocol.send_close(1000)
            self._collect()
            self._finish()

    def abort(self) -> None:
        self._pieces.clear()
        self._finish()
        self._connection.close()

    async def drain(self) -> None:
        await self._drained.wait()
        if self.over:
            raise BodyAborted("the WebSocket is closed")

    def _collect(self) -> None:
        if piece := b"".join(self._protocol.data_to_send()):
            self._add(piece)
        self._changed.set()

    def _add(self, piece: bytes | memoryview) -> None:
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size > HIGH_WATER:
            self._drained.clear()

    def _finish(self) -> None:
        self.over = True
        self._drained.set()
        self._changed.set()

    async def receive(self) -> None:
        """Process the client's messages until it closes."""
        incoming = self.incoming
        while not self._protocol.close_expected() and (data := await self._connection.read()):
            incoming.add(data)
            while not self._protocol.close_expected() and await incoming.receive():
                self._protocol.events_received()
                self._collect()
                await self._drained.wait()  # limits the answers to pings that the client does not read
        self._finish()

    async def send(self) -> None:
        """Send queued pieces, many messages in one write, until the end."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            while self._pieces:
                await self._connection.write(self._take())
                if self._size <= HIGH_WATER:
                    self._drained.set()
            if self.over:
                return

    def _take(self) -> bytes:
        batch: list[bytes | memoryview] = []
        room = PIECE_OF_STREAM
        while self._pieces and room:
            piece = self._pieces.popleft()
            if len(piece) > room:
                self._pieces.appendleft(memoryview(piece)[room:])
                piece = memoryview(piece)[:room]
            batch.append(piece)
            room -= len(piece)
        self._size -= PIECE_OF_STREAM - room
        return b"".join(batch)


def _head(opcode: int, size: int) -> bytes:
    """Return the header of a server's frame that holds a whole message."""
    if size < 126:
        return bytes((opcode, size))
    if size < 1 << 16:
        return bytes((opcode, 126)) + size.to_bytes(2, "big")
    return bytes((opcode, 127)) + size.to_bytes(8, "big")
