"""SPDY/3.1 (draft-mbelshe-httpbis-spdy-00), both sides of a session, as far as byte streams need it.

As in Kubernetes, there is no flow control per stream: an unread stream holds up the session.
"""

from __future__ import annotations

import asyncio
import struct
import time
import zlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from steersman.net.ascii import lower
from steersman.net.message import Upgraded
from steersman.net.time_slices import SLICE
from steersman.work.yielding import next_slice

PROTOCOL: Final = "SPDY/3.1"

SYN_STREAM: Final = 1
SYN_REPLY: Final = 2
RST_STREAM: Final = 3
SETTINGS: Final = 4
PING: Final = 6
GOAWAY: Final = 7
HEADERS: Final = 8
WINDOW_UPDATE: Final = 9

_CONTROL: Final = 0x80030000
_FIN: Final = 1
_REFUSED_STREAM: Final = 3
_CANCEL: Final = 5
_STREAM_ID: Final = 0x7FFFFFFF
_MAX_CONTROL_BYTES: Final = 64 << 10
_MAX_FIELD_BYTES: Final = 64 << 10
"""Limit of one decompressed header block, in bytes."""
_MAX_FIELDS: Final = 256
_MAX_DATA_FRAME: Final = 32 << 10
_MAX_UNREAD: Final = 256 << 10
"""Unread bytes of one stream above which the session stops reading."""
_PIECE_ITSELF: Final = 64
"""Bytes that each piece of unread data takes in addition to its contents."""
_MAX_UNREAD_IN_ALL: Final = 4 << 20
"""Unread bytes of all streams of a session above which the session stops reading."""
_MAX_STREAMS: Final = 1000

_WORDS: Final = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status 200|OK version HTTP/1.1 url public set-cookie "
    "keep-alive origin"
)
_REST: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug "
    "Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
    "application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdch"
    "charset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _dictionary() -> bytes:
    """Return the initial dictionary of both sides' compression (section 2.6.10.1): words with their lengths, then
    text.
    """
    words = [word.replace("|", " ").encode() for word in _WORDS.split()]
    return b"".join(struct.pack(">I", len(word)) + word for word in words) + _REST.encode()


DICTIONARY: Final = _dictionary()


class SpdyError(Exception):
    """The other side violates the protocol, or is gone."""


class Stream:
    """A byte stream in both directions within a session. `fields` are the header fields that opened it."""

    def __init__(self, session: Session, number: int, fields: Mapping[str, str]) -> None:
        self.number = number
        self.fields = fields
        self._session = session
        self._pieces: deque[bytes] = deque()
        self._unread = 0
        self._is_counted = True
        """True while unread bytes count for the session."""
        self._over = False
        self._reset = False
        self._ignored = False
        self._sent_all = False
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self.replied: asyncio.Future[None] = session.loop.create_future()

    async def read(self) -> bytes:
        """Return the next bytes, b"" at the end. Raises SpdyError if the stream was reset or the session broke."""
        while not self._pieces:
            if self._reset:
                raise SpdyError("stream reset")
            if self._over:
                return b""
            self._changed.clear()
            await self._changed.wait()
        piece = self._pieces.popleft()
        self._has_taken(len(piece) + _PIECE_ITSELF)
        return piece

    def _has_taken(self, size: int) -> None:
        """Subtract bytes that have been read from the unread ones."""
        self._unread -= size
        if self._is_counted:
            self._session.has_taken(size)
        if self._unread <= _MAX_UNREAD:
            self._room.set()

    async def read_all(self, limit: int) -> bytes:
        """Return the bytes up to the end. Raises SpdyError, also over `limit` bytes."""
        taken = bytearray()
        while piece := await self.read():
            taken += piece
            if len(taken) > limit:
                raise SpdyError(f"more than {limit} bytes")
        return bytes(taken)

    async def write(self, data: bytes) -> None:
        """Send bytes, waiting while the peer is slow. Raises SpdyError if nothing more can be sent."""
        for at in range(0, len(data), _MAX_DATA_FRAME):
            if self._sent_all or self._reset:
                raise SpdyError("write on closed stream")
            await self._session.send_data(self.number, data[at : at + _MAX_DATA_FRAME], 0)

    async def end(self) -> None:
        """End the sending direction. Does nothing the second time."""
        if not self._sent_all and not self._reset:
            self._sent_all = True
            await self._session.send_data(self.number, b"", _FIN)
            self._session.forget_if_done(self)

    async def reset(self) -> None:
        """End both directions at once."""
        if not self._reset:
            self.break_off()
            await self._session.send_control(RST_STREAM, struct.pack(">II", self.number, _CANCEL))
            self._session.forget_if_done(self)

    def ignore(self) -> None:
        """Discard received bytes from now on, as the caller does not want them."""
        self._ignored = True
        self._pieces.clear()
        self._has_taken(self._unread)

    @property
    def is_done(self) -> bool:
        """True if both directions have ended."""
        return self._reset or (self._over and self._sent_all)

    # Calls of the session

    async def feed(self, data: bytes) -> None:
        """Add received bytes; return when the session may read more."""
        if self._ignored or self._over:
            return
        size = len(data) + _PIECE_ITSELF
        self._pieces.append(data)
        self._unread += size
        if self._is_counted:
            self._session.has_come(size)
        self._changed.set()
        if self._unread > _MAX_UNREAD:
            self._room.clear()
            await self._room.wait()
        await self._session.has_room()

    def uncount(self) -> None:
        """Stop counting unread bytes for the session."""
        if self._is_counted:
            self._is_counted = False
            self._session.has_taken(self._unread)

    def finish(self) -> None:
        """Mark the end of the receiving direction."""
        self._over = True
        self._changed.set()

    def break_off(self) -> None:
        """Mark both directions as ended."""
        self.uncount()
        self._reset = True
        self._changed.set()
        self._room.set()
        if not self.replied.done():
            self.replied.cancel()


Accept = Callable[[Stream], Awaitable[bool]]
"""Callback for a stream that the other side opens; returns True to accept it. It must not wait for the stream's
data.
"""


class Session:
    """One connection. `run()` reads it until the end; streams are opened and used concurrently."""

    def __init__(
        self, connection: Upgraded, *, server: bool = False, first: bytes = b"", accept: Accept | None = None
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self._connection = connection
        self._accept = accept
        self._buffer = bytearray(first)
        self._streams: dict[int, Stream] = {}
        self._next = 2 if server else 1
        self._next_ping = 2 if server else 1
        self._last_seen = 0
        self._parity = 1 if server else 0
        self._closed = False
        self._unread = 0
        self._room = asyncio.Event()
        self._room.set()
        self._order = asyncio.Lock()
        self._compressor = zlib.compressobj(zdict=DICTIONARY)
        self._decompressor = zlib.decompressobj(zdict=DICTIONARY)

    async def open(self, fields: Mapping[str, str], timeout: float) -> Stream:
        """Open a stream and return it once the other side has accepted it. Raises SpdyError."""
        if self._closed or len(self._streams) >= _MAX_STREAMS:
            raise SpdyError("no more streams can be opened")
        async with self._order:
            stream = Stream(self, self._next, fields)
            self._next += 2
            self._streams[stream.number] = stream
            head = struct.pack(">IIH", stream.number, 0, 0)
            await self._send(SYN_STREAM, 0, head + self._compressed(fields))
        try:
            async with asyncio.timeout(timeout):
                await asyncio.wait([stream.replied])
        except TimeoutError:
            raise SpdyError("timeout waiting for the acceptance of a stream") from None
        if stream.replied.cancelled():
            raise SpdyError("the stream was refused")
        return stream

    async def ping(self) -> None:
        """Send a PING, which keeps the connection alive. Raises SpdyError."""
        await self.send_control(PING, struct.pack(">I", self._next_ping))
        self._next_ping = self._next_ping + 2 & _STREAM_ID

    def close(self) -> None:
        """Close the connection and end all streams."""
        self._closed = True
        self._connection.close()
        self._break_streams()

    async def run(self) -> None:
        """Read the connection until it ends or is closed. Raises SpdyError if the other side violates the protocol."""
        end = 0.0
        try:
            while await self._fill(8):
                if time.monotonic() >= end:  # buffered frames would otherwise be processed without a wait
                    await next_slice()
                    end = time.monotonic() + SLICE
                first, second = struct.unpack(">II", self._take(8))
                flags, size = second >> 24, second & 0xFFFFFF
                if first & 0x80000000:
                    await self._control(first, flags, size)
                else:
                    await self._data(first, flags, size)
        except ConnectionResetError:
            raise SpdyError("the connection is closed") from None
        except (zlib.error, struct.error):
            raise SpdyError("malformed frame") from None
        finally:
            self._closed = True
            self._break_streams()

    def has_come(self, size: int) -> None:
        """Count unread bytes of a stream."""
        self._unread += size
        if self._unread > _MAX_UNREAD_IN_ALL:
            self._room.clear()

    def has_taken(self, size: int) -> None:
        """Subtract bytes of a stream that are no longer unread."""
        self._unread -= size
        if self._unread <= _MAX_UNREAD_IN_ALL:
            self._room.set()

    async def has_room(self) -> None:
        """Wait until more may be read."""
        await self._room.wait()

    def _break_streams(self) -> None:
        for stream in list(self._streams.values()):
            stream.break_off()
        self._streams.clear()

    def forget_if_done(self, stream: Stream) -> None:
        """Remove a stream if both its directions have ended."""
        if stream.is_done:
            self._streams.pop(stream.number, None)
            stream.uncount()

    # Reading

    async def _fill(self, size: int) -> bool:
        """Read until `size` bytes are buffered; return False at the end. Raises SpdyError in the middle of a frame."""
        while len(self._buffer) < size:
            data = await self._connection.read()
            if not data:
                if self._buffer and not self._closed:
                    raise SpdyError("unexpected end of the connection")
                return False
            self._buffer += data
        return True

    def _take(self, size: int) -> bytes:
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    async def _data(self, number: int, flags: int, size: int) -> None:
        stream = self._streams.get(number)
        left = size
        while left:
            if not await self._fill(1):
                raise SpdyError("unexpected end of the connection")
            piece = self._take(min(left, len(self._buffer)))
            left -= len(piece)
            if stream is not None:
                await stream.feed(piece)
        if stream is not None and flags & _FIN:
            stream.finish()
            self.forget_if_done(stream)

    async def _control(self, first: int, flags: int, size: int) -> None:
        if first >> 16 != _CONTROL >> 16:
            raise SpdyError("unsupported version")
        if size > _MAX_CONTROL_BYTES:
            raise SpdyError("a control frame is too large")
        if not await self._fill(size) and size:
            raise SpdyError("unexpected end of the connection")
        body = self._take(size)
        kind = first & 0xFFFF
        if kind == SYN_STREAM:
            await self._opened(body, flags)
        elif kind in (SYN_REPLY, HEADERS, RST_STREAM):
            self._reset_or_closed(kind, body, flags)
        elif kind == PING:
            (number,) = struct.unpack(">I", body)
            if number & 1 == self._parity:
                await self.send_control(PING, body)

    async def _opened(self, body: bytes, flags: int) -> None:
        number = struct.unpack(">I", body[:4])[0] & _STREAM_ID
        fields = self._decompressed(body[10:])
        if number & 1 != self._parity or number <= self._last_seen:
            raise SpdyError(f"stream {number} cannot be opened")
        self._last_seen = number
        stream = Stream(self, number, fields)
        stream.replied.set_result(None)
        if self._accept is None or len(self._streams) >= _MAX_STREAMS:
            await self.send_control(RST_STREAM, struct.pack(">II", number, _REFUSED_STREAM))
            return
        self._streams[number] = stream
        if flags & _FIN:
            stream.finish()
        if not await self._accept(stream):
            del self._streams[number]
            await self.send_control(RST_STREAM, struct.pack(">II", number, _REFUSED_STREAM))
            return
        async with self._order:
            await self._send(SYN_REPLY, 0, struct.pack(">I", number) + self._compressed({}))

    def _reset_or_closed(self, kind: int, body: bytes, flags: int) -> None:
        if kind != RST_STREAM:
            self._decompressed(body[4:])  # in every case: one compression context spans all blocks
        stream = self._streams.get(struct.unpack(">I", body[:4])[0] & _STREAM_ID)
        if stream is None:
            return
        if kind == RST_STREAM:
            stream.break_off()
        else:
            if kind == SYN_REPLY and not stream.replied.done():
                stream.replied.set_result(None)
            if flags & _FIN:
                stream.finish()
        self.forget_if_done(stream)

    def _decompressed(self, block: bytes) -> dict[str, str]:
        data = self._decompressor.decompress(block, _MAX_FIELD_BYTES)
        if self._decompressor.unconsumed_tail:
            raise SpdyError("a header block is too large")
        fields: dict[str, str] = {}
        (count,) = struct.unpack_from(">I", data)
        if count > _MAX_FIELDS:
            raise SpdyError("too many fields")
        at = 4
        for _ in range(count):
            name, at = _text(data, at)
            fields[name], at = _text(data, at)
        return fields

    # Writing

    def _compressed(self, fields: Mapping[str, str]) -> bytes:
        parts = [struct.pack(">I", len(fields))]
        for name, value in fields.items():
            for text in (lower(name).encode("latin-1"), value.encode("latin-1")):
                parts += (struct.pack(">I", len(text)), text)
        return self._compressor.compress(b"".join(parts)) + self._compressor.flush(zlib.Z_SYNC_FLUSH)

    async def send_control(self, kind: int, body: bytes) -> None:
        """Send a control frame without a header block. Raises SpdyError."""
        await self._send(kind, 0, body)

    async def send_data(self, number: int, data: bytes, flags: int) -> None:
        """Send a data frame. Raises SpdyError."""
        await self._write(struct.pack(">II", number, flags << 24 | len(data)) + data)

    async def _send(self, kind: int, flags: int, body: bytes) -> None:
        await self._write(struct.pack(">II", _CONTROL | kind, flags << 24 | len(body)) + body)

    async def _write(self, frame: bytes) -> None:
        try:
            await self._connection.write(frame)
        except ConnectionResetError:
            raise SpdyError("the connection is closed") from None


def _text(data: bytes, at: int) -> tuple[str, int]:
    (size,) = struct.unpack_from(">I", data, at)
    end = at + 4 + size
    if end > len(data):
        raise SpdyError("malformed header block")
    return data[at + 4 : end].decode("latin-1"), end
