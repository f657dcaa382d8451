"""Framed messages between processes of one server over a Unix socket: length, kind and number, then bytes."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, Final, cast

from steersman.work.shielding import shielded

log = logging.getLogger(__name__)

HEAD: Final = struct.Struct("<IBI")
LONGEST: Final = 256 << 20
"""Limit of a frame in bytes. The other side is no client: a longer frame is a fault of this program."""
_SLICE: Final = 0.003
"""Seconds of processing frames between two yields to the event loop."""
_MUCH: Final = 8 << 20
"""Bytes of waiting frames above which reading pauses."""

Receive = Callable[[int, int, bytes], None]
"""Callback on the event loop for a received frame: kind, number, bytes."""


def frame(kind: int, number: int, *parts: bytes) -> bytes:
    """Return an encoded frame of these bytes."""
    return b"".join((HEAD.pack(sum(map(len, parts)), kind, number), *parts))


class Link(asyncio.Protocol):
    """One end of a connection. `lost` is called once at its end."""

    def __init__(self, receive: Receive, lost: Callable[[], None]) -> None:
        self._receive = receive
        self._lost = lost
        self._transport: asyncio.Transport | None = None
        self._read = bytearray()
        self._wanted = HEAD.size
        self._waiting: deque[tuple[int, int, bytes]] = deque()
        self._bytes_waiting = 0
        self._working = False
        self._room: asyncio.Future[None] | None = None
        self._full = False
        self._posted: list[bytes] = []
        self._sent = 0

    @classmethod
    async def on(cls, sock: socket.socket, receive: Receive, lost: Callable[[], None]) -> Link:
        """Return a link over a connected socket, which the link then owns. Raises OSError."""
        loop = asyncio.get_running_loop()
        _, link = await loop.create_unix_connection(lambda: cls(receive, lost), sock=sock)
        return link

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._wake()
        self._lost()

    # Sending

    @property
    def unsent(self) -> int:
        """Bytes in the write buffer, which the system has not accepted yet."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    @property
    def flushed(self) -> int:
        """Bytes accepted by the system so far."""
        return self._sent - self.unsent

    def send(self, data: bytes) -> None:
        """Send whole frames at once; do nothing if the connection is over."""
        if self._transport is not None:
            self._sent += len(data)
            self._transport.write(data)

    def post(self, data: bytes) -> None:
        """Send frames together with all others posted in this iteration of the event loop, so that the other side wakes
        once.

        For callers that use no other method of sending.
        """
        if not self._posted:
            asyncio.get_running_loop().call_soon(self._send_posted)
        self._posted.append(data)

    def _send_posted(self) -> None:
        posted, self._posted = self._posted, []
        if posted:
            self.send(posted[0] if len(posted) == 1 else b"".join(posted))

    async def drain(self) -> None:
        """Wait until most of the written bytes are sent, or the connection is over."""
        while self._full and self._transport is not None:
            if self._room is None:
                self._room = asyncio.get_running_loop().create_future()
            await shielded(self._room)

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._wake()

    def _wake(self) -> None:
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)

    def close(self) -> None:
        """Send what is queued, and close."""
        if self._posted:
            self._send_posted()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    # Receiving

    def data_received(self, data: bytes) -> None:
        read = self._read
        read += data
        if len(read) < self._wanted:
            return
        at, end = 0, len(read)
        with memoryview(read) as view:
            while True:
                if end - at < HEAD.size:
                    self._wanted = HEAD.size
                    break
                size, kind, number = HEAD.unpack_from(view, at)
                if size > LONGEST:
                    log.error("closing a link between processes: received the head of a frame of %d bytes", size)
                    self.abort()
                    return
                start = at + HEAD.size
                if end - start < size:
                    self._wanted = HEAD.size + size
                    break
                at = start + size
                self._waiting.append((kind, number, bytes(view[start:at])))
                self._bytes_waiting += size
        del read[:at]
        if not self._working:
            self._work()

    def _work(self) -> None:
        """Pass received frames on, for at most one time slice."""
        loop = asyncio.get_running_loop()
        end = loop.time() + _SLICE
        waiting = self._waiting
        while waiting:
            kind, number, body = waiting.popleft()
            self._bytes_waiting -= len(body)
            try:
                self._receive(kind, number, body)
            except Exception:
                log.exception("processing a frame failed: closing the link, as a frame is lost")
                self.abort()
                return
            if waiting and loop.time() >= end:
                break
        self._working = bool(waiting)
        if waiting:
            loop.call_soon(self._work)
        transport: Any = self._transport
        if transport is not None:
            if self._bytes_waiting > _MUCH:
                transport.pause_reading()
            elif not transport.is_reading() and not transport.is_closing():
                transport.resume_reading()
