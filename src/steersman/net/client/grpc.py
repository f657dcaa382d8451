"""gRPC over this package's HTTP/2 connections (github.com/grpc/grpc, doc/PROTOCOL-HTTP2.md); messages are bytes.

Errors have grpc-go's texts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from enum import IntEnum
from math import ceil
from typing import Final
from urllib.parse import unquote_to_bytes

from steersman.net.ascii import is_digits, lower
from steersman.net.body import IncomingBody
from steersman.net.client.answer import BadAnswer
from steersman.net.client.http2.answer import ClientStream, NotProcessed, StreamReset
from steersman.net.client.http2.connection import Http2Connection
from steersman.net.http1.exchange import PHRASES
from steersman.net.http1.head import quoted
from steersman.net.http2 import frames, hpack
from steersman.net.http2.request import Fields, text_of
from steersman.net.message import BodyAborted
from steersman.work.yielding import TimeSlice

LARGEST_MESSAGE: Final = 512 << 20
"""Default limit of a received message, in bytes."""
_PREFIX: Final = 5
_NO_MESSAGE: Final = "cardinality violation: received no response message from non-server-streaming RPC"
_SECOND_MESSAGE: Final = (
    "cardinality violation: expected <EOF> for non server-streaming RPCs, but received another message"
)
_UNITS: Final = (("n", 1e9), ("u", 1e6), ("m", 1e3), ("S", 1.0))
_MOST_UNITS: Final = 100_000_000
_MAX_DETAILS: Final = 1024
"""Limit of the error text that the other side sends, in characters."""
_POST: Final = b"\x83"
_SCHEMES: Final = {False: b"\x86", True: b"\x87"}
_MEDIA_TYPE: Final = "application/grpc"
_MOST_STATUS: Final = (1 << 31) - 1
_FIELDS: Final = hpack.field("content-type", _MEDIA_TYPE) + hpack.field("te", "trailers")


class Code(IntEnum):
    """Status code of a call (google.golang.org/grpc `codes`)."""

    OK = 0
    CANCELED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16

    @property
    def text(self) -> str:
        """The code as Go prints it, e.g. `DeadlineExceeded`."""
        return _NAMES[self]


_NAMES: Final = {each: "".join(part.capitalize() for part in each.name.split("_")) for each in Code} | {Code.OK: "OK"}
_OF_HTTP: Final = {
    400: Code.INTERNAL,
    401: Code.UNAUTHENTICATED,
    403: Code.PERMISSION_DENIED,
    404: Code.UNIMPLEMENTED,
    429: Code.UNAVAILABLE,
    502: Code.UNAVAILABLE,
    503: Code.UNAVAILABLE,
    504: Code.UNAVAILABLE,
}
"""Status codes for HTTP statuses that come without a gRPC status."""


class CallError(Exception):
    """A call that failed.

    `is_unsent` is True if the other side has not processed the call. `lost` is the error of the stream if the stream
    ended without a status.
    """

    def __init__(self, code: Code, details: str, *, is_unsent: bool = False, lost: BadAnswer | None = None) -> None:
        super().__init__(f"rpc error: code = {code.text} desc = {details}")
        self.code = code
        self.details = details
        self.is_unsent = is_unsent
        self.lost = lost


def head(
    authority: str,
    path: str,
    *,
    secure: bool = False,
    metadata: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> bytes:
    """Return the encoded head of a call of the method `path` (`/package.Service/Method`).

    `timeout` is the time in seconds that the other side is told the call may take.
    """
    fields = dict(metadata or {})
    if timeout is not None:
        fields["grpc-timeout"] = encode_timeout(timeout)
    return b"".join(
        (
            b"\x01",
            hpack.string(authority),
            _POST,
            b"\x04",
            hpack.string(path),
            _SCHEMES[secure],
            _FIELDS,
            *(hpack.field(name, value) for name, value in fields.items()),
        )
    )


def encode_timeout(seconds: float) -> str:
    """Return `seconds`, rounded up, in the finest unit of grpc-timeout in which eight digits suffice."""
    for unit, a_second in _UNITS:
        number = ceil(max(seconds, 0.0) * a_second)
        if number < _MOST_UNITS:
            return f"{number}{unit}"
    return f"{_MOST_UNITS - 1}S"


def framed(message: bytes) -> bytes:
    """Return a message with its length prefix."""
    return b"\x00" + len(message).to_bytes(4) + message


async def call(connection: Http2Connection, block: bytes, message: bytes, *, most: int = LARGEST_MESSAGE) -> bytes:
    """Send one message and return the answer's message, which may have `most` bytes. Raises CallError."""
    if not connection.has_capacity:
        raise CallError(Code.UNAVAILABLE, "the connection takes no calls", is_unsent=True)
    answer = _Call(connection, most)
    connection.begin(answer, block, whole=framed(message))
    try:
        return await answer.done
    finally:
        if not answer.is_forgotten:  # the caller was cancelled
            await answer.close()


class _Ending(ClientStream):
    """A stream that ends with a gRPC status."""

    def __init__(self, connection: Http2Connection) -> None:
        super().__init__(connection, connection.next_id, connection.peer_window)
        self._trailers: dict[bytes, bytes] | None = None
        self._refusal: CallError | None = None
        """The error because of which the answer is read no further."""

    def on_head(self, fields: Fields, *, ends: bool) -> None:
        if ends:
            self.on_trailers(fields)
        super().on_head(fields, ends=ends)
        if self.has_head and not ends and (error := self._not_grpc()) is not None:
            raise self._refused(error)

    def on_trailers(self, fields: Fields) -> None:
        self._trailers = {bytes(name): bytes(value) for name, value, _ in fields}

    def _refused(self, error: CallError) -> frames.StreamFault:
        """Remember `error` as the call's outcome and return the fault that ends the stream."""
        self._refusal = error
        return frames.StreamFault(self.id, frames.ErrorCode.CANCEL, error.details)

    def _lost(self, error: BadAnswer) -> CallError:
        """Return the error of a stream that has ended with `error` of its connection."""
        return self._refusal or _lost(error)

    def on_data(self, data: bytes) -> None:
        self._connection.consumed(self, len(data))
        self.on_bytes(data)

    def on_bytes(self, data: bytes) -> None:
        """Process received bytes of messages."""
        raise NotImplementedError

    def outcome(self) -> CallError | None:
        """Return the error with which the other side has ended the call, or None for success."""
        if (error := self._not_grpc()) is not None:
            return error
        trailers = self._trailers
        if trailers is None:
            return CallError(Code.INTERNAL, "server closed the stream without sending trailers")
        if b"grpc-status" not in trailers:
            return CallError(Code.UNKNOWN, "")
        try:
            code = _read_status(trailers[b"grpc-status"])
        except ValueError as error:
            return CallError(Code.UNKNOWN, f"transport: malformed grpc-status: {error}")
        if code == Code.OK:
            return None
        details = unquote_to_bytes(trailers.get(b"grpc-message", b"")).decode("utf-8", "replace")[:_MAX_DETAILS]
        return CallError(Code(code) if code in Code._value2member_map_ else Code.UNKNOWN, details)

    def _not_grpc(self) -> CallError | None:
        """Return an error if the head is not that of a gRPC server, otherwise None."""
        if ("content-type", _MEDIA_TYPE) in self.headers:
            return None
        media_type = next((value for name, value in self.headers if name == "content-type"), None)
        if media_type is None:
            why = "malformed header: missing HTTP content-type"
        elif lower(media_type).startswith((f"{_MEDIA_TYPE}+", f"{_MEDIA_TYPE};")) or lower(media_type) == _MEDIA_TYPE:
            return None
        else:
            why = f"transport: received unexpected content-type {quoted(media_type[:_MAX_DETAILS].encode())}"
        status = f"{self.status} ({PHRASES.get(self.status, '')})"
        code = _OF_HTTP.get(self.status, Code.UNKNOWN)
        return CallError(code, f"unexpected HTTP status code received from server: {status}; {why}")


def _read_status(raw: bytes) -> int:
    """Return a status as Go's `strconv.ParseInt(text, 10, 32)` parses it. Raises ValueError."""
    text = text_of(raw)
    digits = text[1:] if text.startswith(("+", "-")) else text
    shown = quoted(raw[:_MAX_DETAILS])
    if not is_digits(digits):
        raise ValueError(f"strconv.ParseInt: parsing {shown}: invalid syntax")
    digits = digits.lstrip("0") or "0"
    is_negative = text.startswith("-")
    if len(digits) > len(str(_MOST_STATUS)) or int(digits) > _MOST_STATUS + is_negative:
        raise ValueError(f"strconv.ParseInt: parsing {shown}: value out of range")
    return -int(digits) if is_negative else int(digits)


class _Call(_Ending):
    """A unary call: one message each way."""

    def __init__(self, connection: Http2Connection, most: int) -> None:
        super().__init__(connection)
        self.done: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0
        self._expected: int | None = None
        """Bytes of the message; None until its prefix has arrived."""

    def on_bytes(self, data: bytes) -> None:
        self._size += len(data)
        self._parts.append(data)
        if self._expected is None and self._size >= _PREFIX:
            try:
                self._expected = _read_prefix(b"".join(self._parts)[:_PREFIX], self._most, self.headers)
            except CallError as error:
                raise self._refused(error) from None
        if self._expected is not None and self._size > self._expected + _PREFIX:
            raise self._refused(CallError(Code.INTERNAL, _SECOND_MESSAGE))

    def on_end(self) -> None:
        super().on_end()
        if (error := self.outcome()) is not None:
            self._settle(error)
        elif self._expected is None:
            self._settle(CallError(Code.INTERNAL, _NO_MESSAGE))
        elif self._size < self._expected + _PREFIX:
            self._settle(CallError(Code.INTERNAL, "unexpected EOF"))
        elif not self.done.done():
            data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            self.done.set_result(data[_PREFIX:])

    def fail(self, error: BadAnswer) -> None:
        super().fail(error)
        self._settle(self._lost(error))

    def _settle(self, error: CallError) -> None:
        if not self.done.done():
            self.done.set_exception(error)


class Messages:
    """Splitter of received bytes into messages of at most `most` bytes."""

    __slots__ = ("_most", "_partial")

    def __init__(self, most: int) -> None:
        self._most = most
        self._partial = bytearray()

    def feed(self, data: bytes) -> None:
        """Append received bytes."""
        self._partial += data

    def next(self) -> bytes | None:
        """Return the next message, or None if it is incomplete. Raises CallError for a malformed one."""
        partial = self._partial
        if len(partial) < _PREFIX:
            return None
        size = _read_prefix(partial, self._most)
        if len(partial) - _PREFIX < size:
            return None
        message = bytes(partial[_PREFIX : _PREFIX + size])
        del partial[: _PREFIX + size]
        return message


def _read_prefix(prefix: bytes | bytearray, most: int, headers: Sequence[tuple[str, str]] = ()) -> int:
    """Return the size of the message with this prefix. Raises CallError if the message is too large or compressed."""
    size = int.from_bytes(prefix[1:_PREFIX])
    if size > most:
        raise CallError(Code.RESOURCE_EXHAUSTED, f"grpc: received message larger than max ({size} vs. {most})")
    form = prefix[0]
    if form > 1:
        raise CallError(Code.INTERNAL, f"grpc: received unexpected payload format {form}")
    if form:
        encoding = next((value for name, value in headers if name == "grpc-encoding"), "")
        if encoding in ("", "identity"):
            raise CallError(Code.INTERNAL, "grpc: compressed flag set with identity or empty encoding")
        shown = quoted(encoding[:_MAX_DETAILS].encode())
        raise CallError(Code.INTERNAL, f"grpc: Decompressor is not installed for grpc-encoding {shown}")
    return size


def _lost(error: BadAnswer) -> CallError:
    if isinstance(error, NotProcessed) and error.reset == frames.ErrorCode.PROTOCOL_ERROR:
        # in grpc-go, only HTTP's own clients count this as a refused stream
        error = StreamReset(str(error), error.reset)
    return CallError(Code.UNAVAILABLE, str(error), is_unsent=isinstance(error, NotProcessed), lost=error)


class Stream(_Ending):
    """A call with messages both ways: `send` queues outgoing messages, `on_message` is called with each received one.

    `on_end` is called once at the end of the call, with None after success; it is not called after `cancel`.
    """

    def __init__(
        self,
        connection: Http2Connection,
        block: bytes,
        on_message: Callable[[bytes], None],
        on_end: Callable[[CallError | None], None],
    ) -> None:
        """Begin the call. Raises CallError."""
        if not connection.has_capacity:
            raise CallError(Code.UNAVAILABLE, "the connection takes no calls", is_unsent=True)
        super().__init__(connection)
        self._on_message = on_message
        self._on_end = on_end
        self._is_over = False
        self._outgoing: asyncio.Queue[bytes] = asyncio.Queue()
        self._incoming = Messages(LARGEST_MESSAGE)
        connection.begin(self, block, self._messages())

    async def _messages(self) -> AsyncIterator[bytes]:
        while True:
            yield framed(await self._outgoing.get())

    def send(self, message: bytes) -> None:
        """Queue a message; it is sent as soon as flow control permits."""
        self._outgoing.put_nowait(message)

    def cancel(self) -> None:
        """End the call; no callback is called any more."""
        self._is_over = True
        self._connection.abandon(self)
        self._stop_sending()

    def on_bytes(self, data: bytes) -> None:
        self._incoming.feed(data)
        try:
            while not self._is_over and (message := self._incoming.next()) is not None:
                self._on_message(message)
        except CallError as error:
            raise frames.StreamFault(self.id, frames.ErrorCode.ENHANCE_YOUR_CALM, error.details) from None

    def on_end(self) -> None:
        super().on_end()
        self._end(self.outcome())
        self._stop_sending()

    def fail(self, error: BadAnswer) -> None:
        super().fail(error)
        self._end(self._lost(error))

    def _end(self, error: CallError | None) -> None:
        if not self._is_over:
            self._is_over = True
            self._on_end(error)


class Exchange(_Ending):
    """A call with messages both ways, with backpressure in both directions."""

    def __init__(self, connection: Http2Connection, block: bytes, *, most: int = LARGEST_MESSAGE) -> None:
        """Begin the call. Raises CallError."""
        if not connection.has_capacity:
            raise CallError(Code.UNAVAILABLE, "the connection takes no calls", is_unsent=True)
        super().__init__(connection)
        self._carrier = connection
        self._body = IncomingBody(lambda size: connection.consumed(self, size))
        self._incoming = Messages(most)
        self._time_slice = TimeSlice()
        connection.begin(self, block, is_open=True)

    async def read(self) -> bytes | None:
        """Wait for a message and return it; return None once the other side has ended the call well. Raises
        CallError.
        """
        await (
            self._time_slice.pause_if_over()
        )  # many buffered small messages would otherwise be returned without a wait
        while (message := self._incoming.next()) is None:
            try:
                piece = await self._body.next()
            except BodyAborted as error:
                raise self._refusal or CallError(Code.UNAVAILABLE, str(error)) from None
            if piece:
                self._incoming.feed(piece)
                continue
            if (outcome := self.outcome()) is not None:
                raise outcome
            return None
        return message

    async def write(self, message: bytes) -> None:
        """Send a message as soon as flow control permits. Raises CallError if the call is over."""
        try:
            await self._carrier.send_piece(self, framed(message))
        except BodyAborted:
            raise CallError(Code.UNAVAILABLE, "the call is over") from None

    def on_data(self, data: bytes) -> None:
        self._body.feed(data)

    def on_end(self) -> None:
        super().on_end()
        self._body.finish()

    def fail(self, error: BadAnswer) -> None:
        self._body.fail(str(error))
        self.may_send()  # wakes a waiting sender, which then sees that the call is over
