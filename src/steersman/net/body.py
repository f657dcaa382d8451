"""Incoming bodies: pieces arrive from a connection and are read once, with backpressure."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Final

from steersman.net.message import BodyAborted, BodyTooLarge

_NO_PIECES: Final[tuple[bytes, ...]] = ()
_SMALL: Final = 1024
_JOINED: Final = 16 << 10
"""Bytes up to which small unread pieces are joined: a million one-byte pieces would otherwise be a million objects."""


def _ignore(_: int) -> None:
    """Do nothing: nobody needs the flow control of a body that is complete already."""


class IncomingBody:
    """The body of a request (implements `message.RequestBody`) or of an answer.

    `consumed` is called with the number of bytes that the reader has read, for flow control. `wanted`, if given, is
    called when the reader first waits for bytes (100 Continue).
    """

    __slots__ = ("_consumed", "_empty", "_error", "_pieces", "_waiter", "_wanted", "buffered", "complete", "expected")

    def __init__(
        self,
        consumed: Callable[[int], None] = _ignore,
        wanted: Callable[[], None] | None = None,
        expected: int | None = None,
    ) -> None:
        self._pieces: deque[bytes | bytearray] = deque()
        self.complete = False
        """True once the last byte has arrived."""
        self._error: str | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._consumed = consumed
        self._wanted = wanted
        self._empty: asyncio.Future[None] | None = None
        self.buffered = 0
        """Bytes that have arrived and are not read."""
        self.expected = expected
        """The announced length, None if unknown."""

    def feed(self, data: bytes) -> None:
        """Append a piece that has arrived."""
        pieces = self._pieces
        size = len(data)
        if size < _SMALL and pieces and len(last := pieces[-1]) + size < _JOINED:
            if type(last) is not bytearray:
                last = pieces[-1] = bytearray(last)
            last += data
        else:
            pieces.append(data)
        self.buffered += size
        if self._waiter is not None:
            self._wake()

    def finish(self) -> None:
        """Mark the body as complete: all pieces have arrived."""
        self.complete = True
        if self._waiter is not None:
            self._wake()

    def fail(self, reason: str) -> None:
        """Mark the body as broken: the rest will never arrive. Readers get BodyAborted(reason)."""
        if not self.complete and self._error is None:
            self._error = reason
            self._wake()

    async def emptied(self) -> None:
        """Wait until all bytes that have arrived are read."""
        while self.buffered:
            self._empty = asyncio.get_running_loop().create_future()
            await self._empty

    def discard(self) -> int:
        """Drop the buffered bytes and return their number; `consumed` is not called."""
        dropped, self.buffered = self.buffered, 0
        self._pieces.clear()
        return dropped

    def close(self, reason: str) -> int:
        """End the body together with its request: fail it with `reason`, drop the unread bytes and return their number.

        The callbacks are released, as their owner refers to the body too.
        """
        self._consumed, self._wanted = _ignore, None
        if self.complete and not self._pieces:
            return 0
        self.fail(reason)
        return self.discard()

    def whole(self, limit: int) -> bytes | None:
        """Return the whole body if it has arrived in one piece of at most `limit` bytes, otherwise None."""
        if not self.complete or len(self._pieces) != 1 or self.buffered > limit:
            return None
        return self._take()

    async def read(self, limit: int) -> bytes:
        """Return the whole body. Raises BodyTooLarge over `limit` bytes and BodyAborted if the body never completes."""
        if self.expected is not None and self.expected > limit:
            raise BodyTooLarge(f"the body has {self.expected} bytes, the limit is {limit}")
        taken: bytes | bytearray = b""
        total = 0
        while True:
            while self._pieces:
                piece = self._take()
                total += len(piece)
                if total > limit:
                    raise BodyTooLarge(f"the body has more than {limit} bytes")
                if not taken:
                    taken = piece
                else:
                    if type(taken) is not bytearray:
                        taken = bytearray(taken)
                    taken += piece
            if self.complete:
                return bytes(taken)
            await self._more()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the pieces of the body. Raises BodyAborted."""
        while piece := await self.next():
            yield piece

    async def next(self) -> bytes:
        """Wait for the next piece; return b"" at the end. Raises BodyAborted."""
        while not self._pieces:
            if self.complete:
                return b""
            await self._more()
        return self._take()

    def rest(self) -> bytes:
        """Return the bytes that have arrived and are unread, and drop them; `consumed` is not called."""
        data = b"".join(self._pieces)
        self.discard()
        return data

    def _take(self) -> bytes:
        piece = self._pieces.popleft()
        self.buffered -= len(piece)
        self._consumed(len(piece))
        if self._empty is not None and not self.buffered:
            empty, self._empty = self._empty, None
            if not empty.done():
                empty.set_result(None)
        return bytes(piece)

    async def _more(self) -> None:
        """Wait for the next piece or the end. Raises BodyAborted on failure."""
        if self._error is not None:
            raise BodyAborted(self._error)
        if self._wanted is not None:
            wanted, self._wanted = self._wanted, None
            wanted()
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class EmptyBody:
    """The body of a request without a body; one instance serves all requests."""

    __slots__ = ()
    complete = True

    def whole(self, limit: int) -> bytes:
        """Return b""."""
        return b""

    async def read(self, limit: int) -> bytes:
        """Return b""."""
        return b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield nothing."""
        for piece in _NO_PIECES:
            yield piece


EMPTY_BODY = EmptyBody()
