"""The answer to a request on its way out, whichever protocol carries it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Final, Protocol, cast

from steersman.net.body import EmptyBody, IncomingBody
from steersman.net.connection import Core, notify_closed, tell_over
from steersman.net.message import BodyAborted, Request, Stream

LITTLE: Final = 64 << 10
"""Bytes of a body that may wait to be sent before its writer has to."""
MANY_PIECES: Final = 2048
"""Pieces that are collected for one write before they are written in the middle of a turn."""


_NOTHING: Final[deque[bytes]] = deque()
"""Pending pieces of every answer of which nothing has had to wait: most never need a deque of their own."""


class Carrier(Protocol):
    """The connection of an answer, as the answer uses it; see `Receiver`."""

    core: Core
    out: list[bytes]
    scheduled: bool
    blocked: bool

    def schedule(self) -> None: ...

    def sends_stream(self) -> None: ...

    def flush(self) -> None: ...


class OutgoingAnswer:
    """State that answers of all protocols share: what waits to be sent, who waits for that, and the end."""

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
        """The client holds its body back until it is told to go on."""
        self.responded = False
        """A head has been queued."""
        self.ended = False
        """The writer has ended; the end of the body follows what is pending."""
        self.closed = False
        """All of the answer has been handed over, or nobody wants it any more."""
        self.cancelled = False
        """It was closed before all of it had been handed over."""
        self.pending = _NOTHING
        """Pieces that wait to be sent, added by `keep`."""
        self.buffered = 0
        """Bytes of `pending`."""
        self._offset = 0
        """Bytes of the first piece that have been taken already."""
        self._no_body = False
        self._sink: Stream | None = None
        self._drain_waiters: list[asyncio.Future[None]] = []

    @property
    def over(self) -> bool:
        """True if nothing more can be written."""
        return self.ended or self.closed

    async def drain(self) -> None:
        """Wait until little is buffered. Raises BodyAborted if the client has gone."""
        while self.buffered > LITTLE and not self.closed:
            waiter = self._loop.create_future()
            self._drain_waiters.append(waiter)
            await waiter
        if self.cancelled:
            raise BodyAborted("the client has gone")

    def keep(self, pieces: Iterable[bytes], size: int) -> None:
        """Have pieces of `size` bytes wait to be sent."""
        if self.pending:
            self.pending.extend(pieces)
        else:
            self.pending = deque(pieces)
        self.buffered += size

    def move(self, out: list[bytes], room: int) -> int:
        """Move up to `room` pending bytes to `out`; return how many."""
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
        """Let go of what waits to be sent, as nobody wants it."""
        self.pending = _NOTHING
        self.buffered = 0
        self.wake_writers()

    def wake_writers(self) -> None:
        """Let drain() go on, if little is buffered now or nothing will be sent any more."""
        if self._drain_waiters and (self.buffered <= LITTLE or self.closed):
            waiters, self._drain_waiters = self._drain_waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    def close(self, reason: str | None) -> int:
        """End the exchange, once; with a reason, what was going on is cut off. Return the body's bytes never read."""
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
        tell_over(self.request)
        return dropped

    def close_sink(self) -> None:
        """Tell a pushed body, once, that it is over."""
        if self._sink is not None:
            sink, self._sink = self._sink, None
            notify_closed(sink)
