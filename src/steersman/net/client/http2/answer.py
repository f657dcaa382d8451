"""A client's HTTP/2 stream: one request and its answer."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Final, Protocol

from steersman.net.ascii import is_digits
from steersman.net.body import IncomingBody
from steersman.net.client.answer import Answer, BadAnswer
from steersman.net.http2.flow_control import ReceiveWindow
from steersman.net.http2.frames import ErrorCode, StreamFault
from steersman.net.http2.request import CONTROL, LONGEST_KNOWN_NAME, NAME, Fields, text_of
from steersman.net.message import BodyAborted
from steersman.work.yielding import next_slice

WINDOW: Final = 1 << 20
"""Receive window of a stream: bytes of a body that may arrive before they are read."""
_BODILESS: Final = frozenset({204, 304})
_OF_ONE_CONNECTION: Final = frozenset({"connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade"})
_STEPS_IN_SLICE: Final = 8
_SLICES: Final = 4
"""Time slices of all bodies together in one iteration of the event loop."""
_STATUS_DIGITS: Final = 3


class NotProcessed(BadAnswer):
    """The other side has not processed the request, so that it may be sent again.

    `begun` is True if sending has begun of a body that can be read only once. `reset` is the error code with which the
    other side has reset the stream.
    """

    begun = False
    reset: int | None = None


class StreamReset(BadAnswer):
    """The other side has reset the stream; `code` is its error code."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


class Carrier(Protocol):
    """The connection's interface for its streams."""

    def consumed(self, stream: ClientStream, size: int) -> None:
        """Return flow control credit for `size` bytes that were read from the stream's body."""

    def abandon(self, stream: ClientStream) -> None:
        """Reset the stream if it is not over."""


class ClientStream(ABC):
    """A stream as its connection sees it: sending waits for the window, received frames are passed in."""

    def __init__(self, connection: Carrier, stream_id: int, window: int) -> None:
        self.id = stream_id
        self.window = window
        """Bytes that may be sent."""
        self.recv = ReceiveWindow(WINDOW, WINDOW // 2)
        self.is_sent = False
        """True once END_STREAM has been sent."""
        self.remote_closed = False
        """True once END_STREAM has been received."""
        self.is_forgotten = False
        """True once the connection has removed the stream."""
        self.interim = 0
        """Number of interim heads (1xx) received."""
        self.has_head = False
        """True once the final head has been received: body or trailers follow."""
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        self.sending: asyncio.Task[None] | None = None
        self.room: asyncio.Future[None] | None = None
        """Future of a sender that waits for window."""
        self._connection = connection

    def on_head(self, fields: Fields, *, ends: bool) -> None:
        """Process a head, which is the final one unless its status is 1xx. Raises StreamFault."""
        status, headers = _head(self.id, fields)
        if 100 <= status < 200:
            if ends:
                raise _malformed(self.id, "1xx informational response with END_STREAM flag")
            self.interim += 1
            return
        self.status, self.headers = status, headers
        self.has_head = True
        if ends:
            self.on_end()

    @abstractmethod
    def on_data(self, data: bytes) -> None:
        """Process a piece of the body, after the head. Raises StreamFault."""

    @abstractmethod
    def on_trailers(self, fields: Fields) -> None:
        """Process the trailers."""

    def on_end(self) -> None:
        """Mark the end of the received half of the stream."""
        self.remote_closed = True

    def fail(self, error: BadAnswer) -> None:
        """End the stream with an error."""
        self._stop_sending()

    def _stop_sending(self) -> None:
        if self.sending is not None:
            self.sending.cancel()

    def may_send(self) -> None:
        """Wake the sender that waits for window."""
        if self.room is not None and not self.room.done():
            self.room.set_result(None)

    async def close(self) -> None:
        """End the stream; nobody waits for it any more."""
        self._connection.abandon(self)
        sending, self.sending = self.sending, None
        if sending is not None and not sending.done():
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)


class Http2Answer(ClientStream, Answer):
    """A stream whose body is read by a caller."""

    version = "2"

    def __init__(self, connection: Carrier, stream_id: int, window: int, *, head_only: bool) -> None:
        Answer.__init__(self)
        ClientStream.__init__(self, connection, stream_id, window)
        self._has_no_body = head_only
        self._begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._body = IncomingBody(lambda size: connection.consumed(self, size))

    async def begun(self) -> None:
        """Wait for the head. Raises BadAnswer."""
        await self._begun

    def on_head(self, fields: Fields, *, ends: bool) -> None:
        super().on_head(fields, ends=ends)
        if not self.has_head:
            return
        lengths = [value for name, value in self.headers if name == "content-length"]
        if len(lengths) == 1 and is_digits(lengths[0]) and len(lengths[0]) < 19:
            self.length = int(lengths[0])
        self._has_no_body = self._has_no_body or self.status in _BODILESS
        if not self._begun.done():
            self._begun.set_result(None)

    def on_data(self, data: bytes) -> None:
        if self._has_no_body:
            raise StreamFault(self.id, ErrorCode.PROTOCOL_ERROR, "protocol error: received DATA on a HEAD request")
        self._body.feed(data)

    def on_trailers(self, fields: Fields) -> None:
        """Ignore the trailers: no caller uses trailers of HTTP."""

    def on_end(self) -> None:
        super().on_end()
        self._body.finish()

    def fail(self, error: BadAnswer) -> None:
        super().fail(error)
        self._body.fail(str(error))
        if not self._begun.done():
            self._begun.set_exception(error)
            self._begun.exception()  # marks the exception as retrieved, as nobody may wait for the head any more

    # Reading

    def whole(self) -> bytes | None:
        if self._has_no_body or not self._body.complete or self._body.buffered != self.length:
            return None
        return self._body.rest()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self.length
        steps = 0
        while not self._has_no_body:
            piece = await self._body.next()
            if not piece:
                if left:
                    raise BodyAborted("unexpected EOF")
                return
            if left is not None and len(piece) > left:
                yield piece[:left]
                raise BodyAborted("net/http: server replied with more than declared Content-Length; truncated")
            left = None if left is None else left - len(piece)
            yield piece
            steps += 1
            if not steps % _STEPS_IN_SLICE:
                await next_slice(_SLICES)  # buffered pieces would otherwise be yielded without a wait

    def cut_off(self) -> None:
        self.fail(BadAnswer("http2: response body closed"))
        self._connection.abandon(self)

    async def close(self) -> None:
        self._body.close("http2: response body closed")
        await super().close()


def _malformed(stream_id: int, why: str) -> StreamFault:
    return StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR, why)


def _head(stream_id: int, fields: Fields) -> tuple[int, list[tuple[str, str]]]:
    """Return the status and the fields of a head. Raises StreamFault."""
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
