"""Connections taken over after a 101 response: raw bytes both ways."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from steersman.net.connection import CLOSED
from steersman.work.shielding import shielded

_MAX_BUFFERED: Final = 256 << 10


def hang_up(transport: asyncio.Transport, source: asyncio.Transport) -> None:
    """Close a transport as `UpgradedConnection.hang_up` does; `source` is the transport below TLS, or the same one."""
    if transport.is_closing():
        return
    transport.close()
    if source is not transport and not (transport.get_write_buffer_size() or source.get_write_buffer_size()):
        transport.abort()


class UpgradedConnection:
    """Implementation of `message.Upgraded` on a transport whose protocol passes its events on."""

    __slots__ = (
        "_buffered",
        "_closed",
        "_eof",
        "_loop",
        "_paused",
        "_pieces",
        "_reader",
        "_source",
        "_transport",
        "_writers",
        "_writing_paused",
    )

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, writing_paused: bool) -> None:
        self._transport = transport
        self._source = transport
        self._loop = loop
        self._pieces: deque[bytes] = deque()
        self._buffered = 0
        self._eof = False
        self._closed = False
        self._paused = False
        self._writing_paused = writing_paused
        self._reader: asyncio.Future[None] | None = None
        self._writers: list[asyncio.Future[None]] = []

    def secured(self, transport: asyncio.Transport) -> None:
        """Continue over TLS on the same socket. Backpressure keeps pausing the transport below TLS.

        A TLS transport that is paused itself discards encrypted input when the connection ends.
        """
        self._transport = transport

    @property
    def transport(self) -> asyncio.Transport:
        """The transport of the connection, also after it was handed over."""
        return self._transport

    @property
    def protocol(self) -> str:
        """The protocol negotiated by ALPN, "" without one."""
        tls = self._transport.get_extra_info("ssl_object")
        return "" if tls is None else tls.selected_alpn_protocol() or ""

    @property
    def peer_certificate(self) -> bytes:
        """The other side's certificate (DER), b"" without TLS."""
        tls = self._transport.get_extra_info("ssl_object")
        return b"" if tls is None else tls.getpeercert(True) or b""

    def hand_over(self, protocol: asyncio.BaseProtocol) -> tuple[asyncio.Transport, asyncio.Transport, list[bytes]]:
        """Pass all further events to `protocol`, and release the connection.

        Returns the transport, the one below TLS (or the same one), and the unread bytes. Raises ConnectionResetError if
        the connection has ended.
        """
        if self._closed or self._eof:
            raise ConnectionResetError("the connection is closed")
        transport, source, pieces = self._transport, self._source, list(self._pieces)
        transport.set_protocol(protocol)
        self._pieces.clear()
        if self._paused:
            self._source.resume_reading()
        self._closed = True
        return transport, source, pieces

    @property
    def is_idle(self) -> bool:
        """True if the connection is open in both directions and has no unread bytes."""
        return not (self._closed or self._eof or self._pieces)

    async def read(self) -> bytes:
        """Return the next bytes, b"" at the end."""
        while not self._pieces:
            if self._eof:
                return b""
            if self._reader is None or self._reader.done():
                self._reader = self._loop.create_future()
            await shielded(self._reader)
        piece = self._pieces.popleft()
        self._buffered -= len(piece)
        if self._paused and self._buffered <= _MAX_BUFFERED // 2 and not self._closed:
            self._paused = False
            self._source.resume_reading()
        return piece

    async def write(self, data: bytes) -> None:
        """Send `data`, waiting while the peer is slow. Raises ConnectionResetError when the peer is gone."""
        while self._writing_paused and not self._closed:
            waiter = self._loop.create_future()
            self._writers.append(waiter)
            await waiter
        if self._closed:
            raise ConnectionResetError("the connection is closed")
        self._transport.write(data)

    def close(self) -> None:
        """Close the connection; written bytes are still sent."""
        if not self._closed:
            if self._paused and self._source is not self._transport:
                self._transport.abort()  # TLS would go on reading until the other side closes too
                return
            self._transport.close()

    def hang_up(self) -> None:
        """Close the connection when nothing more is expected from the other side, as Go's transport does.

        TLS sends close_notify without waiting for the other side's, unless written bytes are still unsent.
        """
        if not self._closed:
            hang_up(self._transport, self._source)

    # Events from the protocol

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        self._pieces.append(data)
        self._buffered += len(data)
        if self._buffered > _MAX_BUFFERED and not self._paused:
            self._paused = True
            self._source.pause_reading()
        self._wake_reader()

    def eof(self) -> None:
        """Mark the end of input."""
        self._eof = True
        self._wake_reader()

    def lost(self) -> None:
        """Mark the connection as lost; received bytes can still be read."""
        self._closed = True
        self._transport = self._source = CLOSED
        self.eof()
        self.resume()

    def pause(self) -> None:
        """Make writers wait: the transport's buffer is full."""
        self._writing_paused = True

    def resume(self) -> None:
        """Wake writers: the transport's buffer has drained."""
        self._writing_paused = False
        writers, self._writers = self._writers, []
        for waiter in writers:
            if not waiter.done():
                waiter.set_result(None)

    def _wake_reader(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
