"""gRPC over HTTP/2 connections of this package (github.com/grpc/grpc, doc/PROTOCOL-HTTP2.md): messages are bytes.

For what calls another server for most of its own requests: a call costs less than half of what grpcio's takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from enum import IntEnum
from typing import Final
from urllib.parse import unquote

from steersman.net.ascii import is_digits
from steersman.net.client.answer import BadAnswer
from steersman.net.client.http2.answer import ClientStream, NotProcessed
from steersman.net.client.http2.connection import Http2Connection
from steersman.net.http2 import frames, hpack
from steersman.net.http2.request import Fields, text_of

LARGEST_MESSAGE: Final = 512 << 20
"""Bytes of one message that comes."""
_PREFIX: Final = 5
_OK: Final = 200
_MAX_DETAILS: Final = 4096
"""Characters of what the other side says of an error."""
_POST: Final = b"\x83"
_SCHEMES: Final = {False: b"\x86", True: b"\x87"}
_FIELDS: Final = hpack.field("content-type", "application/grpc") + hpack.field("te", "trailers")


class Code(IntEnum):
    """How a call has ended (google.golang.org/grpc `codes`)."""

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
"""What a status of HTTP means that comes without one of gRPC."""


class CallError(Exception):
    """A call that failed. `is_unsent` says that the other side has done nothing for it."""

    def __init__(self, code: Code, details: str, *, is_unsent: bool = False) -> None:
        super().__init__(f"rpc error: code = {_NAMES[code]} desc = {details}")
        self.code = code
        self.details = details
        self.is_unsent = is_unsent


def head(authority: str, path: str, *, secure: bool, metadata: Mapping[str, str] | None = None) -> bytes:
    """The encoded head of the calls of a method (`/package.Service/Method`), the same for each."""
    return b"".join(
        (
            b"\x01",
            hpack.string(authority),
            _POST,
            b"\x04",
            hpack.string(path),
            _SCHEMES[secure],
            _FIELDS,
            *(hpack.field(name, value) for name, value in (metadata or {}).items()),
        )
    )


def framed(message: bytes) -> bytes:
    """A message as it is sent."""
    return b"\x00" + len(message).to_bytes(4) + message


async def call(connection: Http2Connection, block: bytes, message: bytes) -> bytes:
    """Sends one message and returns the one that answers it. Raises CallError."""
    if not connection.can_take:
        raise CallError(Code.UNAVAILABLE, "the connection takes no calls", is_unsent=True)
    answer = _Call(connection)
    connection.begin(answer, block, whole=framed(message))
    try:
        return await answer.done
    finally:
        if not answer.is_forgotten:  # nobody waits for it any more
            await answer.close()


class _Ending(ClientStream):
    """An answer that ends with a status of gRPC's."""

    def __init__(self, connection: Http2Connection) -> None:
        super().__init__(connection, connection.next_id, connection.peer_window)
        self._trailers: dict[bytes, bytes] = {}

    def take_head(self, fields: Fields, *, ends: bool) -> None:
        if ends:
            self.take_trailers(fields)
        super().take_head(fields, ends=ends)

    def take_trailers(self, fields: Fields) -> None:
        self._trailers = {bytes(name): bytes(value) for name, value, _ in fields}

    def take_data(self, data: bytes) -> None:
        self._connection.consumed(self, len(data))
        self.take_bytes(data)

    def take_bytes(self, data: bytes) -> None:
        """Takes a part of messages."""
        raise NotImplementedError

    def outcome(self) -> CallError | None:
        """What the other side has said of the end."""
        status = text_of(self._trailers.get(b"grpc-status", b""))
        if not is_digits(status):
            code = Code.UNKNOWN if self.status == _OK else _OF_HTTP.get(self.status, Code.UNKNOWN)
            return CallError(code, f"unexpected HTTP status code received from server: {self.status}")
        if int(status) == Code.OK and self.status == _OK:
            return None
        details = unquote(text_of(self._trailers.get(b"grpc-message", b""))[:_MAX_DETAILS])
        known = int(status) in Code._value2member_map_
        return CallError(Code(int(status)) if known else Code.UNKNOWN, details)


class _Call(_Ending):
    """A call of one message for one."""

    def __init__(self, connection: Http2Connection) -> None:
        super().__init__(connection)
        self.done: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._parts: list[bytes] = []
        self._size = 0

    def take_bytes(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > LARGEST_MESSAGE:
            raise frames.StreamFault(self.id, frames.ErrorCode.ENHANCE_YOUR_CALM, "the answer is too large")
        self._parts.append(data)

    def take_end(self) -> None:
        super().take_end()
        if self.done.done():
            return
        if (error := self.outcome()) is not None:
            self.done.set_exception(error)
            return
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        if len(data) < _PREFIX or data[0] or int.from_bytes(data[1:_PREFIX]) != len(data) - _PREFIX:
            self.done.set_exception(CallError(Code.INTERNAL, "the answer is not one message"))
        else:
            self.done.set_result(data[_PREFIX:])

    def fail(self, error: BadAnswer) -> None:
        super().fail(error)
        if not self.done.done():
            self.done.set_exception(CallError(Code.UNAVAILABLE, str(error), is_unsent=isinstance(error, NotProcessed)))


class Stream(_Ending):
    """A call of messages both ways: `send` takes ours, `on_message` is given theirs as they come.

    `on_end` is told once why it is over (None: the other side has ended it as it should), unless it is cancelled.
    """

    def __init__(
        self,
        connection: Http2Connection,
        block: bytes,
        on_message: Callable[[bytes], None],
        on_end: Callable[[CallError | None], None],
    ) -> None:
        """Begins it. Raises CallError."""
        if not connection.can_take:
            raise CallError(Code.UNAVAILABLE, "the connection takes no calls", is_unsent=True)
        super().__init__(connection)
        self._on_message = on_message
        self._on_end = on_end
        self._is_over = False
        self._outgoing: asyncio.Queue[bytes] = asyncio.Queue()
        self._partial = bytearray()
        connection.begin(self, block, self._messages())

    async def _messages(self) -> AsyncIterator[bytes]:
        while True:
            yield framed(await self._outgoing.get())

    def send(self, message: bytes) -> None:
        """Sends a message, as soon as there is room."""
        self._outgoing.put_nowait(message)

    def cancel(self) -> None:
        """Ends it; nothing is told any more."""
        self._is_over = True
        self._connection.abandon(self)
        self._stop_sending()

    def take_bytes(self, data: bytes) -> None:
        partial = self._partial
        partial += data
        at = 0
        while len(partial) - at >= _PREFIX and not self._is_over:
            size = int.from_bytes(partial[at + 1 : at + _PREFIX])
            if partial[at] or size > LARGEST_MESSAGE:
                raise frames.StreamFault(self.id, frames.ErrorCode.ENHANCE_YOUR_CALM, "not a message that can be taken")
            if len(partial) - at - _PREFIX < size:
                break
            message = bytes(partial[at + _PREFIX : at + _PREFIX + size])
            at += _PREFIX + size
            self._on_message(message)
        del partial[:at]

    def take_end(self) -> None:
        super().take_end()
        self._end(self.outcome())
        self._stop_sending()

    def fail(self, error: BadAnswer) -> None:
        super().fail(error)
        self._end(CallError(Code.UNAVAILABLE, str(error)))

    def _end(self, error: CallError | None) -> None:
        if not self._is_over:
            self._is_over = True
            self._on_end(error)
