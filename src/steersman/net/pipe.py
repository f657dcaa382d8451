"""Connections within this process: a pair of asyncio transports without a socket."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Final

_HIGH_WATER: Final = 64 << 10
"""Unread bytes above which the writing protocol is paused."""


def join(
    loop: asyncio.AbstractEventLoop,
    client: asyncio.BaseProtocol,
    server: asyncio.BaseProtocol,
    *,
    at: tuple[str, int],
    peer: tuple[str, int] = ("127.0.0.1", 0),
) -> None:
    """Connect two protocols; `at` is the server's nominal address, `peer` the client's."""
    near = _End(loop, client, {"sockname": peer, "peername": at})
    far = _End(loop, server, {"sockname": at, "peername": peer})
    near.other, far.other = far, near
    server.connection_made(far)
    client.connection_made(near)


class _End(asyncio.Transport):
    """One side of a pipe. Written bytes belong to the other side at once, so that closing loses nothing."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, protocol: asyncio.BaseProtocol, extra: Mapping[str, object]
    ) -> None:
        super().__init__(dict(extra))
        self.other: _End
        self._loop = loop
        self._protocol = protocol
        self._coming: deque[bytes] = deque()
        self._unread = 0
        self._paused = False
        self._over = False
        """True once the other side has closed."""
        self._eof_delivered = False
        self._closing = False
        self._lost = False
        self._is_paused = False
        """True while the protocol is paused from writing."""
        self._high = _HIGH_WATER
        self._scheduled = False

    # Reading

    def _schedule(self) -> None:
        if not self._scheduled and not self._lost:
            self._scheduled = True
            self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        self._scheduled = False
        while self._coming and not (self._paused or self._lost):
            piece = self._coming.popleft()
            self._unread -= len(piece)
            _give(self._protocol, piece)
        self.other.go_on(self._unread)
        if self._over and not (self._coming or self._eof_delivered or self._lost or self._paused):
            self._eof_delivered = True
            assert isinstance(self._protocol, asyncio.Protocol | asyncio.BufferedProtocol)
            if not self._protocol.eof_received():
                self.close()

    def deliver(self, data: bytes) -> int:
        """Queue bytes that the other side has written; return the number of unread bytes."""
        self._coming.append(data)
        self._unread += len(data)
        self._schedule()
        return self._unread

    def end(self) -> None:
        """Queue the end of input: the other side writes no more."""
        self._over = True
        self._schedule()

    def pause_reading(self) -> None:
        """Stop passing bytes to the protocol until `resume_reading`."""
        self._paused = True

    def resume_reading(self) -> None:
        """Pass the waiting bytes to the protocol."""
        self._paused = False
        self._schedule()

    def is_reading(self) -> bool:
        """Return True if bytes are passed to the protocol."""
        return not (self._paused or self._lost)

    # Writing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Pass bytes to the other side; if that side has gone, this side loses its connection."""
        if self._closing or self._lost or not data:
            return
        if self.other.is_lost:
            self._closing = True
            self._loop.call_soon(self._lose)
            return
        if self.other.deliver(bytes(data)) > self._high and not self._is_paused:
            self._is_paused = True
            self._protocol.pause_writing()

    def go_on(self, unread: int) -> None:
        """Resume the protocol's writing if few bytes (`unread`) are left unread."""
        if self._is_paused and unread <= self._high // 4 and not self._lost:
            self._is_paused = False
            self._protocol.resume_writing()

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that the other side has not read."""
        return self.other._unread

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the number of unread bytes above which the protocol is paused."""
        self._high = _HIGH_WATER if high is None else high

    def can_write_eof(self) -> bool:
        """Return False: both directions are closed together."""
        return False

    # The end

    @property
    def is_lost(self) -> bool:
        """True once the protocol has been told that the connection is gone."""
        return self._lost

    def is_closing(self) -> bool:
        """Return True if the connection is closed or closing."""
        return self._closing

    def close(self) -> None:
        """Close the connection; written bytes reach the other side."""
        if not self._closing:
            self._closing = True
            self.other.end()
            self._loop.call_soon(self._lose)

    def abort(self) -> None:
        """Close the connection; nothing waits to be sent."""
        self.close()

    def _lose(self) -> None:
        if self._lost:
            return
        self._lost = True
        self._coming.clear()
        self._unread = 0
        self.other.go_on(0)
        self._protocol.connection_lost(None)

    # Methods of every transport

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Replace the protocol."""
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return the protocol."""
        return self._protocol


def _give(protocol: asyncio.BaseProtocol, data: bytes) -> None:
    if isinstance(protocol, asyncio.Protocol):
        protocol.data_received(data)
        return
    assert isinstance(protocol, asyncio.BufferedProtocol)
    at = 0
    while at < len(data):
        room = memoryview(protocol.get_buffer(len(data) - at))
        size = min(len(room), len(data) - at)
        room[:size] = data[at : at + size]
        protocol.buffer_updated(size)
        at += size
