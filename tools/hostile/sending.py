"""Messages to bytes and back: one connection for each message, written and read at once.

A server may answer, or close, long before all of a large message is written.
"""

from __future__ import annotations

import re
import select
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Final

import hpack

from .case import Bytes, Message, Request, Unread

_CHUNK: Final = 1 << 18
_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_MARK: Final = b"the end."
_STATUS: Final = re.compile(rb"HTTP/1\.1 (\d{3}) ")
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
_CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding: *chunked\r\n", re.IGNORECASE)
_FRAME: Final = 16_384
_QUIET: Final = 2.0
"""Seconds after which nothing more is expected of what is no proper request."""

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)


@dataclass(frozen=True)
class Answer:
    """Status codes in order of their coming; none if the connection was closed without one. `late` is a timeout."""

    codes: tuple[int, ...]
    body: bytes = b""
    late: bool = False


@dataclass(frozen=True)
class Endpoint:
    host: str
    port: int
    ca: str

    def connect(self, protocol: str, timeout: float, *, narrow: bool = False) -> ssl.SSLSocket:
        """A fresh connection, a `narrow` one with small buffers of its own. Raises OSError."""
        context = ssl.create_default_context(cafile=self.ca)
        context.set_alpn_protocols([protocol])
        plain = socket.socket()
        if narrow:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.settimeout(timeout)
        plain.connect((self.host, self.port))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return context.wrap_socket(plain, server_hostname=self.host)


def send(endpoint: Endpoint, message: Message, timeout: float) -> Answer:
    """Send a message and return the server's answer. Raises OSError if the server cannot be reached."""
    if isinstance(message, Unread):
        _leave_unread(endpoint, message, timeout)
        return Answer(())
    with endpoint.connect(message.protocol, timeout) as connection:
        if message.protocol == "h2":
            return _send_http2(connection, message, timeout)
        data = message.data if isinstance(message, Bytes) else http1_request(endpoint, message)
        complete = _answered if isinstance(message, Request) else _never
        idle = _QUIET if isinstance(message, Bytes) else timeout
        received, late = _exchange(connection, data, complete, timeout, idle)
        codes = tuple(int(each) for each in _STATUS.findall(received))
        return Answer(codes, bytes(received.partition(b"\r\n\r\n")[2]), late)


def _leave_unread(endpoint: Endpoint, message: Unread, timeout: float) -> None:
    """Writes what the server takes, and leaves the answers where they are."""
    data = message.data if message.protocol != "h2" else opening(window=0) + message.data
    with ExitStack() as stack:
        waiting = []
        for _ in range(message.connections):
            connection = stack.enter_context(endpoint.connect(message.protocol, timeout, narrow=True))
            connection.setblocking(False)
            waiting.append((connection, memoryview(data)))
        until = time.monotonic() + message.seconds
        while time.monotonic() < until:
            left = []
            for connection, view in waiting:
                with suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError, OSError):
                    view = view[connection.send(view[:_CHUNK]) :]
                if view:
                    left.append((connection, view))
            waiting = left
            time.sleep(0.01)


def _exchange(
    connection: ssl.SSLSocket, data: bytes, complete: Callable[[bytearray], bool], timeout: float, idle: float
) -> tuple[bytearray, bool]:
    """Writes all of `data` and reads until the answer is complete, the connection ends, or nothing moves for `idle`
    seconds; whether `timeout` ran out before."""
    connection.setblocking(False)
    received, view = bytearray(), memoryview(data)
    moved = time.monotonic()
    until = moved + timeout
    while (now := time.monotonic()) < until:
        if now > moved + idle:
            return received, False
        reading, writing = True, bool(view)
        try:
            if view:
                view = view[connection.send(view[:_CHUNK]) :]
                writing, moved = False, now
        except ssl.SSLWantReadError:
            writing = False
        except ssl.SSLWantWriteError:
            pass
        except OSError:
            view = view[:0]  # there may be an answer all the same
            writing = False
        try:
            while True:
                part = connection.recv(_CHUNK)
                if not part:
                    return received, False
                received += part
                moved = now
                if complete(received):
                    return received, False
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLWantWriteError:
            writing = True
        except OSError:
            return received, False
        if not view or writing:
            select.select([connection] if reading else [], [connection] if writing else [], [], 0.5)
    return received, True


def _never(_: bytearray) -> bool:
    return False


def _answered(received: bytearray) -> bool:
    """Return True if one whole HTTP/1.1 response has been received."""
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return False
    head = bytes(received[: end + 2])
    if head.startswith(b"HTTP/1.1 1"):
        return False
    if _CHUNKED.search(head):
        return received.endswith(b"\r\n0\r\n\r\n")
    length = _LENGTH.search(head)
    return length is not None and len(received) >= end + 4 + int(length[1])


def http1_request(endpoint: Endpoint, request: Request) -> bytes:
    head = [f"{request.method} {request.target} HTTP/1.1", f"Host: {endpoint.host}:{endpoint.port}"]
    if request.token and not any(name.lower() == "authorization" for name, _ in request.headers):
        head.append(f"Authorization: Bearer {request.token}")
    head += [f"{name}: {value}" for name, value in request.headers]
    if request.body:
        head.append(f"Content-Length: {len(request.body)}")
    return _raw("\r\n".join([*head, "\r\n"])) + request.body


def _raw(text: str) -> bytes:
    """The bytes of a text, in which surrogates stand for bytes that are no UTF-8."""
    return text.encode("utf-8", "surrogateescape")


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame of HTTP/2."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def header_frames(stream: int, block: bytes, *, end_stream: bool = True) -> bytes:
    """A header block as HEADERS and as many CONTINUATIONs as it takes."""
    parts = [block[at : at + _FRAME] for at in range(0, len(block), _FRAME)] or [b""]
    found = []
    for number, part in enumerate(parts):
        flags = (0x4 if number == len(parts) - 1 else 0) | (0x1 if end_stream and not number else 0)
        found.append(frame(CONTINUATION if number else HEADERS, flags, stream, part))
    return b"".join(found)


def opening(window: int = 2**31 - 1) -> bytes:
    """Return the first bytes of an HTTP/2 client; the windows of its streams are as large as possible by default."""
    settings = (4).to_bytes(2, "big") + window.to_bytes(4, "big")
    grown = (2**31 - 1 - 65_535).to_bytes(4, "big")
    return _PREFACE + frame(SETTINGS, 0, 0, settings) + frame(WINDOW_UPDATE, 0, 0, grown)


def _send_http2(connection: ssl.SSLSocket, message: Message, timeout: float) -> Answer:
    if isinstance(message, Bytes):
        data = opening() + message.data + frame(PING, 0, 0, _MARK)
        reader = _Frames(only=0)
    else:
        assert isinstance(message, Request), message
        pairs = [(":method", message.method), (":scheme", "https"), (":path", message.target), (":authority", "a")]
        if message.token and not any(name.lower() == "authorization" for name, _ in message.headers):
            pairs.append(("authorization", f"Bearer {message.token}"))
        pairs += [(name.lower(), value) for name, value in message.headers]
        fields = [(_raw(name), _raw(value)) for name, value in pairs]
        data = opening() + header_frames(1, hpack.Encoder().encode(fields, huffman=False))
        reader = _Frames(only=1)
    idle = _QUIET if isinstance(message, Bytes) else timeout
    _, late = _exchange(connection, data, reader.complete, timeout, idle)
    return Answer(tuple(reader.codes), late=late)


class _Frames:
    """Reads a server's frames as they come, until that one stream has ended, or the PING is answered."""

    def __init__(self, only: int) -> None:
        self._only = only
        self._at = 0
        self._decoder = hpack.Decoder(max_header_list_size=1 << 24)
        self._block = bytearray()
        self.codes: list[int] = []

    def complete(self, received: bytearray) -> bool:
        done = False
        while len(received) >= self._at + 9:
            length = int.from_bytes(received[self._at : self._at + 3], "big")
            if len(received) < self._at + 9 + length:
                break
            kind, flags = received[self._at + 3], received[self._at + 4]
            stream = int.from_bytes(received[self._at + 5 : self._at + 9], "big") & 0x7FFFFFFF
            payload = bytes(received[self._at + 9 : self._at + 9 + length])
            self._at += 9 + length
            done = self._frame(kind, flags, stream, payload) or done
        return done

    def _frame(self, kind: int, flags: int, stream: int, payload: bytes) -> bool:
        if kind in (HEADERS, CONTINUATION):
            self._block += payload
            if flags & 0x4:
                block, self._block = bytes(self._block), bytearray()
                self.codes += [
                    int(value) for name, value in self._decoder.decode(block, raw=True) if name == b":status"
                ]
        if self._only:
            return kind == RST_STREAM or (stream == self._only and kind in (DATA, HEADERS) and bool(flags & 0x1))
        return kind == PING and bool(flags & 0x1) and payload == _MARK
