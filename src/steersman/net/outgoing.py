"""The outgoing answer to a request, independent of the protocol."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Final, Protocol, cast

from steersman.net.body import EmptyBody, IncomingBody
from steersman.net.connection import Core, notify_closed, notify_end
from steersman.net.message import BodyAborted, Request, Stream

LITTLE: Final = 64 << 10
"""Bytes of a body that may be buffered before the writer has to wait."""
MANY_PIECES: Final = 2048
"""Number of pieces collected for one write above which they are flushed at once."""


_NOTHING: Final[deque[bytes]] = deque()
"""Shared empty deque of answers without pending pieces: most answers never need their own."""


class Carrier(Protocol):
    """The connection, as its answer uses it; see `Receiver`."""

    core: Core
    out: list[bytes]
    scheduled: bool
    blocked: bool

    def schedule(self) -> None:
        """Schedule one call of `flush` for the next time slice of this connection."""
        ...

    def sends_stream(self) -> None:
        """Announce a stream: small pieces are passed to the transport from now on, as many clients leave streams
        unread.
        """
        ...

    def flush(self) -> None:
        """Write the queued pieces now."""
        ...


class OutgoingAnswer:
    """State common to answers of all protocols: pending pieces, waiting writers, and the end."""

    __slots__ = (
        "_drain_waiters",
        "_loop",
        "_no_body",
        "_offset",
        "_sink",
        "body",
        "buffered",
        "cancelled",
        "closed",
        "ended",
        "pending",
        "request",
        "responded",
        "task",
        "wants_continue",
    )

    request: Request

    def __init__(self, loop: asyncio.AbstractEventLoop, body: IncomingBody | EmptyBody) -> None:
        self._loop = loop
        self.body = body
        self.task: asyncio.Task[None] | None = None
        """Task of the handler."""
        self.wants_continue = False
        """True while the client holds its body back until it gets 100 Continue."""
        self.responded = False
        """True once a head has been queued."""
        self.ended = False
        """True once the writer has ended; the end of the body follows the pending pieces."""
        self.closed = False
        """True once the whole answer has been passed to the transport, or the client wants no more of it."""
        self.cancelled = False
        """True if the answer was closed before all of it had been passed to the transport."""
        self.pending = _NOTHING
        """Pieces that wait to be sent, added by `keep`."""
        self.buffered = 0
        """Bytes of `pending`."""
        self._offset = 0
        """Bytes of the first pending piece that have been moved already."""
        self._no_body = False
        self._sink: Stream | None = None
        self._drain_waiters: list[asyncio.Future[None]] = []

    @property
    def is_over(self) -> bool:
        """True if nothing more can be written."""
        return self.ended or self.closed

    async def drain(self) -> None:
        """Wait until little is buffered. Raises BodyAborted if the client is gone."""
        while self.buffered > LITTLE and not self.closed:
            waiter = self._loop.create_future()
            self._drain_waiters.append(waiter)
            await waiter
        if self.cancelled:
            raise BodyAborted("the client has gone")

    def keep(self, pieces: Iterable[bytes], size: int) -> None:
        """Add pieces of `size` bytes in all to the pending ones."""
        if self.pending:
            self.pending.extend(pieces)
        else:
            self.pending = deque(pieces)
        self.buffered += size

    def move(self, out: list[bytes], room: int) -> int:
        """Move up to `room` pending bytes to `out`; return their number."""
        pending, offset = self.pending, self._offset
        left = room
        while pending and left > 0:
            piece = pending.popleft()
            rest = cast(bytes, memoryview(piece)[offset:]) if offset else piece
            size = len(rest)
            if size <= left:
                out.append(rest)
                left -= size
                offset = 0
            else:
                out.append(cast(bytes, memoryview(rest)[:left]))
                pending.appendleft(piece)
                offset += left
                left = 0
        self._offset = offset
        self.buffered -= room - left
        return room - left

    def forget_pending(self) -> None:
        """Drop the pending pieces, as the client wants no more of them."""
        self.pending = _NOTHING
        self.buffered = 0
        self.wake_writers()

    def wake_writers(self) -> None:
        """Wake waiters in drain() if little is buffered now or nothing will be sent any more."""
        if self._drain_waiters and (self.buffered <= LITTLE or self.closed):
            waiters, self._drain_waiters = self._drain_waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    def close(self, reason: str | None) -> int:
        """End the exchange, once, and return the number of unread bytes of the request's body.

        With a reason, the exchange is cut off: its handler is cancelled.
        """
        if self.closed:
            return 0
        self.closed = True
        self.cancelled = reason is not None
        dropped = 0
        if isinstance(body := self.body, IncomingBody):
            dropped = body.close(reason or "the response is complete")
        if self.pending or self._drain_waiters:
            self.forget_pending()
        if self._sink is not None:
            self.close_sink()
        if reason is not None and self.task is not None and not self.task.done():
            self.task.cancel()
        if self.request.on_request_end is not None:
            notify_end(self.request)
        return dropped

    def close_sink(self) -> None:
        """Call `closed()` of a pushed body, once."""
        if self._sink is not None:
            sink, self._sink = self._sink, None
            notify_closed(sink)
