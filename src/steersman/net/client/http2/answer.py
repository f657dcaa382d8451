"""One request over HTTP/2 and its answer: a stream of a connection."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Final, Protocol

from steersman.net.ascii import is_digits
from steersman.net.client.answer import Answer, BadAnswer
from steersman.net.http2.frames import ErrorCode, StreamFault
from steersman.net.http2.request import CONTROL, LONGEST_KNOWN_NAME, NAME, Fields, text_of
from steersman.net.message import BodyAborted
from steersman.work.yielding import next_slice

WINDOW: Final = 1 << 20
"""Bytes of a body that the other side may send before somebody reads them."""
_BODILESS: Final = frozenset({204, 304})
_OF_ONE_CONNECTION: Final = frozenset({"connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade"})
_STEPS_IN_SLICE: Final = 8
_SLICES: Final = 4
"""Slices in a turn of the loop, of all bodies together."""
_JOINED: Final = 16 << 10
"""Small pieces that nobody has read yet are joined up to so many bytes."""
_STATUS_DIGITS: Final = 3


class NotProcessed(BadAnswer):
    """The other side has done nothing for the request, which may be sent again; `begun` says whether a body that can be
    read once only has been begun."""

    begun = False


class Carrier(Protocol):
    """What an answer asks of its connection."""

    def consumed(self, answer: Http2Answer, size: int) -> None:
        """So many bytes of its body have been read."""

    def abandon(self, answer: Http2Answer) -> None:
        """Nobody waits for the rest."""


class Http2Answer(Answer):
    """A stream: what is to be sent waits for its window, what has come for who reads it."""

    def __init__(self, connection: Carrier, stream_id: int, window: int, *, head_only: bool) -> None:
        super().__init__()
        self.id = stream_id
        self.window = window
        """Bytes that may be sent."""
        self.recv_window = WINDOW
        self.unacknowledged = 0
        self.is_sent = False
        """Whether END_STREAM has been sent."""
        self.is_received = False
        """Whether END_STREAM has come."""
        self.is_forgotten = False
        """Whether the connection knows it no more."""
        self.interim = 0
        self.sending: asyncio.Task[None] | None = None
        self.room: asyncio.Future[None] | None = None
        """What is to be sent waits for this."""
        self._connection = connection
        self._head_only = head_only
        self._has_head = False
        self._has_no_body = False
        self._error: BadAnswer | None = None
        self._pieces: deque[bytes | bytearray] = deque()
        self._received = 0
        self._waiter: asyncio.Future[None] | None = None

    async def begun(self) -> None:
        """Waits for the head. Raises BadAnswer."""
        while not self._has_head:
            if self._error is not None:
                raise self._error
            await self._wait()

    # What the connection passes on

    def take_head(self, fields: Fields, *, ends: bool) -> None:
        """A head has come, the last one unless it is interim (1xx). Raises StreamFault."""
        status, headers = _head(self.id, fields)
        if 100 <= status < 200:
            if ends:
                raise _malformed(self.id, "1xx informational response with END_STREAM flag")
            self.interim += 1
            return
        self.status, self.headers = status, headers
        lengths = [value for name, value in headers if name == "content-length"]
        if len(lengths) == 1 and is_digits(lengths[0]) and len(lengths[0]) < 19:
            self.length = int(lengths[0])
        self._has_no_body = self._head_only or status in _BODILESS
        self._has_head = True
        if ends:
            self.take_end()
        self._wake()

    @property
    def has_head(self) -> bool:
        """Whether what comes now is of the body, or follows it."""
        return self._has_head

    def take_data(self, data: bytes) -> None:
        """A piece of the body has come. Raises StreamFault."""
        if not self._has_head:
            raise StreamFault(self.id, ErrorCode.PROTOCOL_ERROR, "protocol error: received DATA before a HEADERS frame")
        if self._has_no_body:
            raise StreamFault(self.id, ErrorCode.PROTOCOL_ERROR, "protocol error: received DATA on a HEAD request")
        self._received += len(data)
        pieces = self._pieces
        if pieces and len(pieces[-1]) + len(data) < _JOINED:
            if type(pieces[-1]) is not bytearray:
                pieces[-1] = bytearray(pieces[-1])
            pieces[-1] += data
        else:
            pieces.append(data)
        self._wake()

    def take_trailers(self, fields: Fields) -> None:
        """What follows a body has come; nobody asks for that of HTTP."""

    def take_end(self) -> None:
        """Nothing more will come."""
        self.is_received = True
        self._wake()

    def fail(self, error: BadAnswer) -> None:
        """Nothing more will come, as it should."""
        if self._error is None and not self.is_received:
            self._error = error
        self.stop_sending()
        self._wake()

    def stop_sending(self) -> None:
        """Nobody takes what is still to be sent."""
        if self.sending is not None:
            self.sending.cancel()

    def may_send(self) -> None:
        """There is room for what waits to be sent."""
        if self.room is not None and not self.room.done():
            self.room.set_result(None)

    # What the reader of the answer calls

    def whole(self) -> bytes | None:
        if not self.is_received or self.length is None or self._has_no_body or self.length != self._received:
            return None
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._connection.consumed(self, len(data))
        return data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self.length
        steps = 0
        while not self._has_no_body:
            while self._pieces:
                piece = bytes(self._pieces.popleft())
                self._connection.consumed(self, len(piece))
                if left is not None and len(piece) > left:
                    yield piece[:left]
                    raise BodyAborted("net/http: server replied with more than declared Content-Length; truncated")
                left = None if left is None else left - len(piece)
                yield piece
                steps += 1
                if not steps % _STEPS_IN_SLICE:
                    await next_slice(_SLICES)  # pieces that are there already would be taken without a wait
            if self.is_received:
                if left:
                    raise BodyAborted("unexpected EOF")
                return
            if self._error is not None:
                raise BodyAborted(str(self._error))
            await self._wait()

    def cut_off(self) -> None:
        self.fail(BadAnswer("http2: response body closed"))
        self._connection.abandon(self)

    async def close(self) -> None:
        self._connection.abandon(self)
        sending, self.sending = self.sending, None
        if sending is not None and not sending.done():
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _malformed(stream_id: int, why: str) -> StreamFault:
    return StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR, why)


def _head(stream_id: int, fields: Fields) -> tuple[int, list[tuple[str, str]]]:
    """Status and fields of a head. Raises StreamFault."""
    status = b""
    headers: list[tuple[str, str]] = []
    for raw, raw_value, _ in fields:
        if raw[:1] == b":":
            if raw != b":status" or status or headers:
                raise _malformed(stream_id, "malformed response from server: invalid pseudo header")
            status = raw_value
            continue
        name = _name(raw) if len(raw) <= LONGEST_KNOWN_NAME else _checked_name(raw)
        value = text_of(raw_value)
        if name is None or (not value.isprintable() and CONTROL.search(value)):
            raise _malformed(stream_id, "invalid header field")
        if name not in _OF_ONE_CONNECTION:
            headers.append((name, value.strip(" \t")))
    if not status:
        raise _malformed(stream_id, "malformed response from server: missing status pseudo header")
    if not status.isdigit() or len(status) > _STATUS_DIGITS:
        raise _malformed(stream_id, "malformed response from server: malformed non-numeric status pseudo header")
    return int(status), headers


def _checked_name(raw: bytes) -> str | None:
    return raw.decode("ascii") if NAME.fullmatch(raw) else None


_name = lru_cache(maxsize=1024)(_checked_name)
