"""Connections taken over after a 101 response: raw bytes both ways."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from steersman.net.connection import CLOSED
from steersman.work.shielding import shielded

_MAX_BUFFERED: Final = 256 << 10


def hang_up(transport: asyncio.Transport, source: asyncio.Transport) -> None:
    """As `UpgradedConnection.hang_up`; `source` is the transport below one of TLS, or the same."""
    if transport.is_closing():
        return
    transport.close()
    if source is not transport and not (transport.get_write_buffer_size() or source.get_write_buffer_size()):
        transport.abort()


class UpgradedConnection:
    """Implements `message.Upgraded` on a transport whose protocol passes its events on."""

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
        """Goes on over TLS, spoken on the transport so far, which alone is read no further while much is unread.

        A transport of TLS that is paused itself throws away what it has not decrypted when the connection ends.
        """
        self._transport = transport

    @property
    def transport(self) -> asyncio.Transport:
        """The transport below, also after it was handed over."""
        return self._transport

    @property
    def protocol(self) -> str:
        """What both sides have agreed on to speak (ALPN), "" for nothing."""
        tls = self._transport.get_extra_info("ssl_object")
        return "" if tls is None else tls.selected_alpn_protocol() or ""

    @property
    def peer_certificate(self) -> bytes:
        """The other side's certificate as DER, b"" without TLS."""
        tls = self._transport.get_extra_info("ssl_object")
        return b"" if tls is None else tls.getpeercert(True) or b""

    def hand_over(self, protocol: asyncio.BaseProtocol) -> tuple[asyncio.Transport, asyncio.Transport, list[bytes]]:
        """Has another protocol told of what happens from now on; the transport, the one below it that TLS is spoken on
        (or the same), and what has come so far.

        Raises ConnectionResetError if it has ended.
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
        """Whether it is open both ways, and nothing has come that is yet to be read."""
        return not (self._closed or self._eof or self._pieces)

    async def read(self) -> bytes:
        """The next bytes, b"" at the end."""
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
        """Sends `data`, waiting while the peer is slow. Raises ConnectionResetError when it has gone."""
        while self._writing_paused and not self._closed:
            waiter = self._loop.create_future()
            self._writers.append(waiter)
            await waiter
        if self._closed:
            raise ConnectionResetError("the connection is closed")
        self._transport.write(data)

    def close(self) -> None:
        """Closes the connection; what has been written still leaves."""
        if not self._closed:
            if self._paused and self._source is not self._transport:
                self._transport.abort()  # TLS would go on reading until the other side says that it has ended
                return
            self._transport.close()

    def hang_up(self) -> None:
        """Closes the connection when nothing is wanted of the other side any more, as Go's transport does: TLS tells it
        so and does not wait for it to say the same, unless something that was written is yet to leave."""
        if not self._closed:
            hang_up(self._transport, self._source)

    # What the protocol passes on

    def feed(self, data: bytes) -> None:
        """Bytes have come."""
        self._pieces.append(data)
        self._buffered += len(data)
        if self._buffered > _MAX_BUFFERED and not self._paused:
            self._paused = True
            self._source.pause_reading()
        self._wake_reader()

    def eof(self) -> None:
        """No more bytes will come."""
        self._eof = True
        self._wake_reader()

    def lost(self) -> None:
        """The connection is gone; what has come can still be read."""
        self._closed = True
        self._transport = self._source = CLOSED
        self.eof()
        self.resume()

    def pause(self) -> None:
        """The transport has enough."""
        self._writing_paused = True

    def resume(self) -> None:
        """The transport takes more."""
        self._writing_paused = False
        writers, self._writers = self._writers, []
        for waiter in writers:
            if not waiter.done():
                waiter.set_result(None)

    def _wake_reader(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
